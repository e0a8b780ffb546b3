"""The views that show one idea each on data of your own: n-grams, embeddings, diagnostics, alignment and scaling.

Each file answers for its view as plain dictionaries, with the program that computes the same numbers.
"""
