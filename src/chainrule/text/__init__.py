"""Text to token ids and back: one file per tokenizer, what they share, streaming of generated text, conversations.

`training/` holds how vocabularies are learned, `unicode/` what the C++ code needs to know about characters.
"""

from chainrule.text.bpe import BPETokenizer
from chainrule.text.chars import CharTokenizer
from chainrule.text.chat import FORMATS, ChatFormat, Message, chat_ids
from chainrule.text.conventions import Conventions
from chainrule.text.lowercase_words import LowercaseWordTokenizer
from chainrule.text.normalize import BertRules
from chainrule.text.pipeline import PipelineTokenizer
from chainrule.text.prompts import few_shot, prompt_ids
from chainrule.text.sentencepiece_bpe import SentencePieceBPETokenizer
from chainrule.text.streaming import TextStream
from chainrule.text.template import ChatTemplate
from chainrule.text.textbook_bpe import TextbookBPETokenizer
from chainrule.text.tokenizer import Tokenizer, from_dict
from chainrule.text.unigram import UnigramTokenizer
from chainrule.text.vocabulary import Vocabulary
from chainrule.text.wordpiece import WordPieceTokenizer
from chainrule.text.words import WordTokenizer

__all__ = [
    "FORMATS", "BPETokenizer", "BertRules", "CharTokenizer", "ChatFormat", "ChatTemplate", "Conventions",
    "LowercaseWordTokenizer", "Message", "PipelineTokenizer", "SentencePieceBPETokenizer", "TextStream",
    "TextbookBPETokenizer", "Tokenizer", "UnigramTokenizer", "Vocabulary", "WordPieceTokenizer", "WordTokenizer",
    "chat_ids", "few_shot", "from_dict", "prompt_ids"
]  # fmt: skip
