"""Texts from files to batches: `read/` them, `clean/` them, split and encode them, cut `batches/`.

At this level: corpora, downloads and their cards, splits, the order of items, shards on disk, mixtures of domains.
"""

from chainrule import lazy
from chainrule.columns import CHOSEN, Columns
from chainrule.data.batches.bags import Bag, BagBatches, NGrams
from chainrule.data.batches.conversations import ConversationBatches
from chainrule.data.batches.labeled import LabeledBatches, TwinBatches, Twins
from chainrule.data.batches.masked import Masked, MaskedBatches, MaskingRule
from chainrule.data.batches.packed import PackedBatches
from chainrule.data.batches.padded import DocumentBatches, pad, padded, shift
from chainrule.data.batches.pairs import Pair, PairBatches
from chainrule.data.batches.segmented import Segmented, segmented
from chainrule.data.batches.source import BatchSource
from chainrule.data.batches.streams import Streams
from chainrule.data.batches.tagged import TaggedBatches, encode_words
from chainrule.data.batches.windows import Batches, windows
from chainrule.data.cards import CARDS, Card, card
from chainrule.data.clean.dedup import Cleaner, Report
from chainrule.data.clean.quality import RULES, Rule
from chainrule.data.corpora import BUILT_IN, Corpus, available, load
from chainrule.data.encoded import Encoded
from chainrule.data.labels import LabelCorpus, load_labels, load_tags
from chainrule.data.mixing import Mixture, balanced
from chainrule.data.order import Order, spread
from chainrule.data.read.chat.conversations import ConversationCorpus, load_conversations
from chainrule.data.read.chat.layouts import Conversation, Turn
from chainrule.data.read.documents import Document, read_documents
from chainrule.data.read.labeled import Labeled, label_ids, labeled_rows, read_labeled
from chainrule.data.read.names import Names, read_names
from chainrule.data.read.parallel import PairCorpus, load_pairs
from chainrule.data.read.preferences import Comparison, PreferenceCorpus, load_preferences
from chainrule.data.read.questions import Question, read_questions
from chainrule.data.read.tabular.reading import Reading
from chainrule.data.read.tagged import Tagged, read_tagged
from chainrule.data.shards import Shards, build, load_text
from chainrule.data.splits import Parts, Split, split
from chainrule.text.special_tokens import SpecialIds
from chainrule.types import IGNORE

__all__ = [
    "BUILT_IN", "CARDS", "CHOSEN", "IGNORE", "RULES", "Bag", "BagBatches", "BatchSource", "Batches", "Card", "Cleaner",
    "Columns",
    "Comparison", "Conversation", "ConversationBatches", "ConversationCorpus", "Corpus", "Document", "DocumentBatches",
    "Encoded", "LabelCorpus", "Labeled", "LabeledBatches", "Masked", "MaskedBatches", "MaskingRule", "Mixture",
    "NGrams", "Names", "Order", "PackedBatches", "Pair", "PairBatches", "PairCorpus", "Parts", "PreferenceCorpus",
    "Question", "Reading", "Report", "Rule", "Segmented", "Shards", "SpecialIds", "Split", "Streams", "Tagged",
    "TaggedBatches", "Turn", "TwinBatches", "Twins", "available", "balanced", "build", "card", "encode_words",
    "label_ids",
    "labeled_rows", "load", "load_conversations", "load_labels", "load_pairs", "load_preferences", "load_tags",
    "load_text", "pad", "padded", "read_documents", "read_labeled", "read_names", "read_questions", "read_tagged",
    "segmented", "shift", "split", "spread", "windows"
]  # fmt: skip

lazy.names(__name__)
