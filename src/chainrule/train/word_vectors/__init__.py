"""Training of word2vec: `trainer` is a step, which is an epoch over all words of a text.

`sampling` draws the words that are kept and those that are told apart from them, `update` learns a passage of the text.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.train.word_vectors.trainer import WordVectorStep

__all__ = ["WordVectorStep"]

lazy.names(__name__, rooms="sampling trainer update", trainer="WordVectorStep")
