"""The parts of the page: tokens and predictions, attention, gates, logit lens, neurons, values, architecture."""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Any

import numpy as np

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.inspect.inside.checks import number
from chainrule.models.window.model import WindowModel
from chainrule.models.window.neural_ngram import NeuralNGram
from chainrule.web.jobs import Tell
from chainrule.web.microscope import outputs
from chainrule.web.microscope.edits import changes_of
from chainrule.web.microscope.program import program
from chainrule.web.microscope.reading import SILENT, Reading, kind_of, must_predict, read
from chainrule.web.models import Loaded

TOP = 8  # tokens that are shown of a prediction
MOVED = 6  # tokens whose probability an edit changed most
OTHER = "choose another model"
MOST_VALUES = 400_000  # numbers of an activation that are sent


class Look:
    """A model, what it reads and what was changed; the last view is kept, so that one forward pass serves the page."""

    def __init__(self, loaded: Loaded, text: str | None, target: str | None = None, edits: str = "") -> None:
        self.loaded = loaded
        self.changes = changes_of(edits)
        self._asked = text, target
        self._edits = edits

    @cached_property
    def reading(self) -> Reading:
        return read(self.loaded, *self._asked)

    @property
    def piece(self) -> Any:
        return self.loaded.tokenizer.piece

    def view(self) -> inspect.View:
        known = self.loaded.known
        key = ("view", self._edits, self.reading.target, self.reading.text)
        if key not in known:
            edits = [change.edit(self.loaded, self.reading) for change in self.changes]
            view = inspect.view(self.loaded.model, self.reading.ids, edits)
            if not np.isfinite(view.output).all():
                rule = "take back the last change" if edits else "an earlier checkpoint may have numbers"
                raise ConfigError(f"microscope: predictions are not finite ({rule})")
            self.loaded.known = {key: value for key, value in known.items() if key[0] != "view"}
            self.loaded.known[key] = view
        found: inspect.View = self.loaded.known[key]
        return found

    def tokens(self, pairs: Any) -> list[dict[str, Any]]:
        """Ids with probabilities, and how they are written."""
        return [{"id": id, "piece": self.piece(id), "p": p} for id, p in pairs]

    def summary(self) -> dict[str, Any]:
        """Tokens, predictions at every position, what there is to be looked at, and after edits what they change."""
        seen, reading, kind = self.view(), self.reading, kind_of(self.loaded)
        if kind in SILENT:
            found = {"tokens": seen.tokens.tolist(), **seen.parts(), **outputs.said(self.loaded, seen)}
        else:
            found = seen.summary(min(TOP, self.loaded.tokenizer.vocab_size))
            found["top"] = [self.tokens(row) for row in found["top"]]
        found["pieces"] = [self.piece(id) for id in found["tokens"]]
        found["kind"], found["text"], found["target"] = kind, reading.text, reading.target
        source = reading.source
        found["source"] = None if source is None else [self.piece(int(id)) for id in source]
        inside = {seen.sites.block_at(i) for i in seen.sites.source_spine}
        for block in found["blocks"]:
            block["of"] = "source" if block["name"] in inside else "text"
        found["predicts"] = kind not in SILENT
        found["lens"] = bool(found["predicts"] and seen.blocks and seen.sites.tail)
        found["sums"] = bool(seen.sites.parts and seen.sites.last_norm)
        found["window"] = isinstance(self.loaded.model, WindowModel)
        found["changed"] = self._changed(seen) if self.changes else None
        found["python"] = program(self.loaded, reading, self.changes)
        return found

    def _changed(self, seen: inspect.View) -> dict[str, Any]:
        said = [change.said for change in self.changes]
        before = inspect.view(self.loaded.model, self.reading.ids)
        if kind_of(self.loaded) in SILENT:
            return {"said": said, **outputs.moved(self.loaded, before, seen)}
        both = inspect.Comparison(before, seen)
        count = min(MOVED, self.loaded.tokenizer.vocab_size)
        rows = [both.changes(at, count) for at in range(len(seen.tokens))]
        return {
            "said": said,
            "kl": both.kl.tolist(),
            "moved": [
                [{"id": id, "piece": self.piece(id), "before": p, "after": q} for id, p, q in row]
                for row in rows
            ],
        }

    def attention(self, block: str, cross: bool = False) -> dict[str, Any]:
        """The attention maps of a block (H, T, S)."""
        return packed(self.view().attention(block, cross=cross))

    def gates(self, block: str) -> dict[str, Any]:
        """Gates and states of a recurrent layer, each (T, H)."""
        return {name: packed(values) for name, values in self.view().gates(block).items()}

    def lens(self, tell: Tell) -> dict[str, Any]:
        """What would be predicted after each block."""
        must_predict("logit lens", self.loaded, OTHER)
        top = min(3, self.loaded.tokenizer.vocab_size)
        found = inspect.lens_of(
            self.view(), top=top, progress=lambda done, total: tell("reading each block", done / total)
        ).to_dict()
        found["top"] = [[self.tokens(cell) for cell in row] for row in found["top"]]
        return found

    def neurons(self, block: str) -> dict[str, Any]:
        """Activations of the MLP of a block (T, F)."""
        return packed(self.view().neurons(block))

    def value(self, call: str) -> dict[str, Any]:
        """The value of a call while the text is read: its numbers, and what sums them up."""
        array = np.asarray(self.view().value(call))
        found = array[0] if array.ndim > 2 and len(array) == 1 else array  # without the axis of the batch
        last = found.reshape(-1, found.shape[-1]) if found.ndim else found.reshape(1, 1)
        if last.size > MOST_VALUES:
            last = last[:, : max(1, MOST_VALUES // len(last))]
        exact = array.astype(np.float64)
        return {
            "shape": list(array.shape),
            "rows": len(last),
            "mean": float(exact.mean()),
            "std": float(exact.std()),
            "least": float(exact.min()),
            "most": float(exact.max()),
            "values": packed(last),
            "cut": last.size < array.size,
        }

    def window(self, at: int) -> dict[str, Any]:
        """Of a model that sees a fixed number of tokens: those that it sees at a position, and what it looked up.

        An n-gram network looks up a row of logits for each of them, which add up; an MLP looks up vectors.
        """
        model, seen = self.loaded.model, self.view()
        if not isinstance(model, WindowModel):
            rule = "must be an n-gram network or an MLP"
            raise ConfigError(f"window: {type(model).__name__} sees the whole text ({rule})")
        at = number("position", at, len(seen.tokens))
        ids = model.contexts(seen.given[0])[0, at]  # (n,)
        sums = isinstance(model, NeuralNGram)
        rows = model.looked_up(ids)
        top = [id for id, _ in seen.top(min(TOP, self.loaded.tokenizer.vocab_size))[at]]
        nothing = model.config.vocab_size
        return {
            "sees": [None if id == nothing else self.piece(int(id)) for id in ids],
            "columns": [self.piece(id) for id in top] if sums else None,
            "rows": (rows[:, top] if sums else rows).tolist(),
            "logits": seen.logits[at, top].tolist() if sums else None,
        }

    def heads(self) -> dict[str, Any]:
        """Scores of all heads for the known patterns, and the best head of each."""
        known = self.loaded.known
        if ("heads",) not in known:
            found = inspect.head_scores(self.loaded.model)
            known[("heads",)] = found.to_dict() | {"best": {kind: found.best(kind) for kind in found.scores}}
        return dict(known[("heads",)])

    def architecture(self) -> dict[str, Any]:
        """The calls of a forward pass, with shapes and costs."""
        known = self.loaded.known
        if ("architecture",) not in known:
            known[("architecture",)] = inspect.architecture(self.loaded.model)
        return dict(known[("architecture",)])


def packed(values: Any) -> dict[str, Any]:
    """An array for the page: exact, and a tenth of the size of its digits."""
    array = np.ascontiguousarray(values, np.float32)
    return {"shape": array.shape, "data": base64.b64encode(array.tobytes()).decode()}


def check_token(loaded: Loaded, token: int) -> int:
    if not 0 <= token < loaded.tokenizer.vocab_size:
        raise ConfigError(f"microscope: token {token} (must be from 0 to {loaded.tokenizer.vocab_size - 1})")
    return token
