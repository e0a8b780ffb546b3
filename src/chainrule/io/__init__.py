"""Files of other programs, and our own: tokenizers."""

from chainrule.io.tokenizers import load as load_tokenizer

__all__ = ["load_tokenizer"]
