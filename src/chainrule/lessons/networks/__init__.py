"""The small networks of the lessons: classifiers of sequences, recurrent encoders with decoders, and an induction
circuit."""
