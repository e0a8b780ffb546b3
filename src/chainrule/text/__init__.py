"""Text to token ids and back: one file per tokenizer, what they share, streaming of generated text.

`splitting/` cuts text into words, `training/` learns vocabularies, `pipeline/` runs a tokenizer.json step by step,
`chat/` writes prompts and conversations, `unicode/` knows characters for the C++ code.
"""

from chainrule import lazy
from chainrule.text.bpe import BPETokenizer
from chainrule.text.chars import CharTokenizer
from chainrule.text.chat.formats import FORMATS, ChatFormat, Message, chat_ids
from chainrule.text.chat.prompts import few_shot, prompt_ids
from chainrule.text.chat.template import ChatTemplate
from chainrule.text.conventions import Conventions
from chainrule.text.lowercase_words import LowercaseWordTokenizer
from chainrule.text.pipeline import PipelineTokenizer
from chainrule.text.sentencepiece_bpe import SentencePieceBPETokenizer
from chainrule.text.special_tokens import Marks, SpecialIds
from chainrule.text.splitting.normalize import BertRules
from chainrule.text.streaming import TextStream
from chainrule.text.textbook_bpe import TextbookBPETokenizer
from chainrule.text.tokenizer import Tokenizer, from_dict
from chainrule.text.unigram import UnigramTokenizer
from chainrule.text.vocabulary import Vocabulary
from chainrule.text.wordpiece import WordPieceTokenizer
from chainrule.text.words import WordTokenizer

__all__ = [
    "FORMATS", "BPETokenizer", "BertRules", "CharTokenizer", "ChatFormat", "ChatTemplate", "Conventions",
    "LowercaseWordTokenizer", "Marks", "Message", "PipelineTokenizer", "SentencePieceBPETokenizer", "SpecialIds",
    "TextStream", "TextbookBPETokenizer", "Tokenizer", "UnigramTokenizer", "Vocabulary", "WordPieceTokenizer",
    "WordTokenizer", "chat_ids", "few_shot", "from_dict", "prompt_ids"
]  # fmt: skip

lazy.names(__name__)
