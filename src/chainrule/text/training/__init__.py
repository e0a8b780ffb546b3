"""How subword tokenizers are learned: the reference in Python, which the C++ code matches token by token."""
