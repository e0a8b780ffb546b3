"""Text to token ids and back."""

from chainrule.text.chars import CharTokenizer
from chainrule.text.tokenizer import Tokenizer, from_dict
from chainrule.text.words import WordTokenizer

__all__ = ["CharTokenizer", "Tokenizer", "WordTokenizer", "from_dict"]
