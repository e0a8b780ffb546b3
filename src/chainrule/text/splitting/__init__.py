"""Text into words, before a tokenizer cuts the words into tokens.

`patterns` and `pretokenize` do it for byte-level BPE, `normalize` for BERT, `word_rules` for tokenizers of words.
"""
