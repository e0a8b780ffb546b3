"""How tokenizers are learned: the reference in Python, which the C++ code matches token by token.

`bpe`, `textbook_bpe`, `wordpiece` and `unigram` are the algorithms, on `merges` and words from `counting`; `recipe`
knows them by name, such as bpe:4000.
"""
