"""The small networks of the lessons: classifiers of sequences, and recurrent encoders with decoders."""
