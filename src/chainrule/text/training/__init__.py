"""How subword tokenizers are learned, in plain Python; the C++ code does the same, faster."""
