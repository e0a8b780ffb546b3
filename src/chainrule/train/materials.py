"""What each family of models is trained on."""

from __future__ import annotations

from chainrule.train.config import TrainConfig
from chainrule.train.labels import Labels
from chainrule.train.masked_text import MaskedText
from chainrule.train.material import Material, Text
from chainrule.train.tags import Tags
from chainrule.train.translations import Translations

# Of the families that do not go on from a text; all others are language models.
MATERIALS: dict[str, type[Material]] = {
    "seq2seq": Translations,
    "bert": MaskedText,
    "bert-classifier": Labels,
    "bert-tagger": Tags,
}

# Those that read word pieces with [CLS] and [SEP]; all others read characters, unless told.
PIECED = ("bert", "bert-classifier", "bert-tagger")

# Highest learning rates where that of small language models is too high.
RATES = dict.fromkeys(("seq2seq", *PIECED), 1e-3)


def defaults(family: str) -> TrainConfig:
    """How a family is trained unless told otherwise."""
    return TrainConfig(lr=RATES[family]) if family in RATES else TrainConfig()


def material_of(family: str) -> type[Material]:
    """The kind of data of a family."""
    return MATERIALS.get(family, Text)
