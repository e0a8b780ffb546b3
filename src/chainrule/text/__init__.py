"""Text to token ids and back."""

from chainrule.text.bpe import BPETokenizer
from chainrule.text.chars import CharTokenizer
from chainrule.text.streaming import TextStream
from chainrule.text.tokenizer import Tokenizer, from_dict
from chainrule.text.words import WordTokenizer

__all__ = [
    "BPETokenizer",
    "CharTokenizer",
    "TextStream",
    "Tokenizer",
    "WordTokenizer",
    "from_dict",
]
