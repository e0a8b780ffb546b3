"""Hugging Face's `tokenizer.json`: one file for each kind of tokenizer that has a class of its own.

`pipeline` reads any other combination of parts; `parts` is what all of them share.
"""
