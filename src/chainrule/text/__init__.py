"""Text to token ids and back."""

from chainrule.text.bpe import BPETokenizer
from chainrule.text.chars import CharTokenizer
from chainrule.text.lowercase_words import BareWordTokenizer
from chainrule.text.normalize import BertRules
from chainrule.text.prompts import few_shot
from chainrule.text.sentencepiece_bpe import PieceBPETokenizer
from chainrule.text.streaming import TextStream
from chainrule.text.textbook_bpe import PlainBPETokenizer
from chainrule.text.tokenizer import Tokenizer, from_dict
from chainrule.text.unigram import UnigramTokenizer
from chainrule.text.vocabulary import Vocabulary
from chainrule.text.wordpiece import WordPieceTokenizer
from chainrule.text.words import WordTokenizer

__all__ = [
    "BPETokenizer",
    "BareWordTokenizer",
    "BertRules",
    "CharTokenizer",
    "PieceBPETokenizer",
    "PlainBPETokenizer",
    "TextStream",
    "Tokenizer",
    "UnigramTokenizer",
    "Vocabulary",
    "WordPieceTokenizer",
    "WordTokenizer",
    "few_shot",
    "from_dict",
]
