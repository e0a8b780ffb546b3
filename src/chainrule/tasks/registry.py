"""What each family of models is trained on."""

from __future__ import annotations

from chainrule.tasks.classification import Labels
from chainrule.tasks.masked_lm import MaskedText
from chainrule.tasks.tagging import Tags
from chainrule.tasks.task import Material, Text
from chainrule.tasks.translation import Translations

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


def material_of(family: str) -> type[Material]:
    """The kind of data of a family."""
    return MATERIALS.get(family, Text)
