"""Text from a model, one token at a time."""

from chainrule.generate.decoder import Decoder
from chainrule.generate.documents import documents, known_share
from chainrule.generate.readers import reader
from chainrule.generate.sample import choose, generate, stream, write
from chainrule.generate.translate import Translation, translate

__all__ = [
    "Decoder",
    "Translation",
    "choose",
    "documents",
    "generate",
    "known_share",
    "reader",
    "stream",
    "translate",
    "write",
]
