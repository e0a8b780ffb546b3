"""Models without layers: a bag of words, whose labels are sums over words, and vectors of words."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from chainrule.errors import ConfigError
from chainrule.inspect.bag import BagView
from chainrule.web.microscope.looks import Look, packed
from chainrule.web.microscope.outputs import likeliest, names
from chainrule.web.microscope.program import opening
from chainrule.web.microscope.reading import SILENT, kind_of
from chainrule.web.models import Loaded

NEIGHBORS = 10


class FlatLook(Look):
    """What the page asks of every model; what needs a layer is refused."""

    def view(self) -> NoReturn:
        gives = SILENT[kind_of(self.loaded)].gives
        raise ConfigError(f"microscope: this model gives {gives} and has no layers (choose another model)")

    def heads(self) -> dict[str, Any]:
        self.view()

    def architecture(self) -> dict[str, Any]:
        self.view()

    def summary(self) -> dict[str, Any]:
        """Tokens, and that there is no more to be looked at than what it gives."""
        if self.changes:
            self.view()
        tokens = [int(id) for id in self.reading.ids]
        nothing = dict.fromkeys(("predicts", "lens", "sums", "window"), False)
        return nothing | {
            "tokens": tokens,
            "pieces": [self.piece(id) for id in tokens],
            "kind": kind_of(self.loaded),
            "text": self.reading.text,
            "blocks": [],
            "target": None,
            "source": None,
            "changed": None,
            "python": "\n".join([*opening(self.loaded, self.reading), *self.python, ""]),
        }

    @property
    def python(self) -> list[str]:
        """The lines that print the same numbers."""
        raise NotImplementedError


class BagLook(FlatLook):
    """A bag of words."""

    @cached_property
    def seen(self) -> BagView:
        return BagView(self.loaded.model, self.reading.ids)

    def summary(self) -> dict[str, Any]:
        """With the labels, the likeliest first, and what each token adds to each."""
        said = likeliest(names(self.loaded), self.seen.logprobs[None])
        return super().summary() | said | {"adds": self.seen.by_token.tolist()}

    def whole(self) -> dict[str, Any]:
        """The sum: a term for each word and each run of words; and the labels without each word."""
        seen = self.seen
        return {
            "labels": names(self.loaded),
            "bias": seen.bias.tolist(),
            "terms": [
                vars(term) | {"words": [self.piece(id) for id in term.tokens], "adds": term.adds}
                for term in seen.terms
            ],
            "p": np.exp(seen.logprobs).tolist(),
            "without": np.exp(seen.without).tolist(),
        }

    @property
    def python(self) -> list[str]:
        return [
            "seen = cr.inspect.BagView(model, ids)",
            "print(seen.logprobs.tolist())",
            "print(seen.bias.tolist(), [(term.tokens, term.value, term.weights) for term in seen.terms])",
            "print(seen.by_token.tolist())",
            "print(seen.without.tolist())",
        ]


class WordsLook(FlatLook):
    """Vectors of words; a word that has none is left out."""

    @cached_property
    def places(self) -> list[int]:
        """Of the words that have a vector."""
        return [at for at, id in enumerate(self.reading.ids) if id != self.loaded.tokenizer.unknown_id]

    def summary(self) -> dict[str, Any]:
        words, size = self.loaded.model.matrix.shape
        return super().summary() | {"places": self.places, "vector": {"words": words, "size": size}}

    def whole(self) -> dict[str, Any]:
        """The neighbors of each word, how alike the words are, and their vectors."""
        vectors = self.loaded.model
        words = [self.piece(int(self.reading.ids[at])) for at in self.places]
        near = {word: vectors.neighbors(word, NEIGHBORS) for word in words}
        rows = vectors.matrix[[vectors.id(word) for word in words]]
        return {
            "places": self.places,
            "neighbors": [
                [{"word": each, "cosine": cosine} for each, cosine in near[word]] for word in words
            ],
            "cosines": packed(vectors.table(words)),
            "vectors": packed(rows),
            "lengths": np.linalg.norm(rows, axis=1).tolist(),
        }

    @property
    def python(self) -> list[str]:
        return [
            "words = [tokenizer.piece(id) for id in ids if id != tokenizer.unknown_id]",
            f"print([vectors.neighbors(word, {NEIGHBORS}) for word in words])",
            "print(vectors.table(words).tolist())",
            "print(vectors.matrix[[vectors.id(word) for word in words]].tolist())",
        ]


FLAT: dict[str, type[FlatLook]] = {"bag": BagLook, "words": WordsLook}


def look_at(loaded: Loaded, text: str | None, target: str | None = None, edits: str = "") -> Look:
    """A model, as its kind is looked at."""
    return FLAT.get(kind_of(loaded), Look)(loaded, text, target, edits)


def whole(look: Look) -> dict[str, Any]:
    """All that a model without layers has to show of a text."""
    if not isinstance(look, BagLook | WordsLook):
        rule = "choose a bag of words or vectors of words"
        raise ConfigError(
            f"microscope: {type(look.loaded.model).__name__} has layers, and is no sum over words ({rule})"
        )
    return look.whole()
