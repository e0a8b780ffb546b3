"""Text to token ids and back."""

from chainrule.text.chars import CharTokenizer
from chainrule.text.tokenizer import Tokenizer, from_dict

__all__ = ["CharTokenizer", "Tokenizer", "from_dict"]
