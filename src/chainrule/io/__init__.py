"""Files of other programs, and our own: tokenizers, word vectors."""

from chainrule.io.tokenizers import load_tokenizer, save_tokenizer
from chainrule.io.vectors import read_vectors, write_vectors

__all__ = ["load_tokenizer", "read_vectors", "save_tokenizer", "write_vectors"]
