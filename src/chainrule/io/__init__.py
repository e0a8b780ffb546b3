"""Files of other programs, and our own: tokenizers."""
