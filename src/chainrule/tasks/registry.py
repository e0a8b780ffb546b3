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


def material_of(family: str) -> type[Material]:
    """The kind of data of a family."""
    return MATERIALS.get(family, Text)
