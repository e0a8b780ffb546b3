"""Files of other programs, and our own: tokenizers."""

from chainrule.io.tokenizer_files import load_tokenizer, save_tokenizer

__all__ = ["load_tokenizer", "save_tokenizer"]
