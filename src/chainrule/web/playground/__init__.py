"""What the playground shows: completions, answers of chat models, translations, filled gaps, and beams.

`play` reads the form and asks the part that suits the model; each part answers with its tokens, their probabilities
and the same in Python.
"""
