"""The form of the playground, and who answers it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.errors import ConfigError
from chainrule.generate import Sampling
from chainrule.web.jobs import Tell
from chainrule.web.microscope.reading import kind_of, must_predict
from chainrule.web.models import Loaded

MOST = 400  # tokens of a prompt and its continuation
NUMBERS = {"temperature": float, "top_p": float, "top_k": int, "min_p": float, "seed": int}
WIDEST = 8  # beams that can still be read


@dataclass(frozen=True)
class Form:
    """What was asked for."""

    run: str
    step: int | None = None
    prompt: str | None = None
    """The text to continue, to translate or to fill; without one some that suits the model."""
    ids: Sequence[int] | None = None
    """The very tokens to continue, of a branch; of a translation those of the target."""
    messages: Sequence[Mapping[str, str]] | None = None
    """A conversation to answer."""
    length: int = 100
    beam: int = 0
    """Width of a search, rather than tokens that are drawn."""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> Form:
        """As the page sends it."""
        given = {key: form[key] for key in cls.__dataclass_fields__ if form.get(key) is not None}
        kinds = {
            "run": str,
            "step": int,
            "prompt": str,
            "ids": list,
            "messages": list,
            "length": int,
            "beam": int,
        }
        fits = all(type(value) is kinds.get(key, dict) for key, value in given.items()) and "run" in given
        ids, messages = given.get("ids", [0]), given.get("messages", ())
        fits = fits and all(type(message) is dict for message in messages)
        if not fits or not ids or any(type(id) is not int for id in ids):
            raise ConfigError(
                "playground: must have a run, a prompt, ids of tokens or messages, a length and options"
            )
        if not 1 <= given.get("length", 1) <= MOST:
            raise ConfigError(f"playground: length is {given['length']} (must be from 1 to {MOST})")
        if not 0 <= given.get("beam", 0) <= WIDEST:
            raise ConfigError(f"playground: beam is {given['beam']} (must be from 0, none, to {WIDEST})")
        _options(given.get("options", {}))
        return cls(**given)

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields of Sampling that were filled in."""
        return _options(self.options)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Sampling that the page offers; `Sampling` refuses what does not fit."""
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        if name not in NUMBERS:
            raise ConfigError(f"playground: no option {name[:40]!r} (must be one of {', '.join(NUMBERS)})")
        if value in (None, ""):
            continue
        try:
            chosen[name] = NUMBERS[name](value)
        except (TypeError, ValueError):
            raise ConfigError(f"playground: {name} is {str(value)[:40]!r} (must be a number)") from None
    Sampling(**chosen)
    return chosen


class Pace:
    """Tokens per second after the first, before which weights are packed and the prompt is read."""

    def __init__(self) -> None:
        self.tokens = 0
        self._times: list[float] = []  # of the first and of the newest

    def tick(self) -> None:
        """Another token."""
        self.tokens += 1
        self._times = [*self._times[:1], time.perf_counter()]

    @property
    def speed(self) -> float | None:
        if len(self._times) < 2:
            return None
        return (self.tokens - 1) / max(self._times[1] - self._times[0], 1e-9)


def answer(loaded: Loaded, form: Form, tell: Tell) -> dict[str, Any]:
    """The part of the playground that suits the model."""
    from chainrule.web.playground import beams, filling, translating, writing

    kind = kind_of(loaded)
    must_predict("playground", loaded, "the microscope shows it; choose another model to write")
    if kind == "masked":
        found = filling.filled(loaded, form)
    elif kind == "pair":
        found = translating.translated(loaded, form, tell)
    elif form.beam:
        found = beams.searched(loaded, form, tell)
    elif form.messages is not None:
        found = writing.answered(loaded, form, tell)
    else:
        found = writing.continued(loaded, form, tell)
    return found | {"kind": kind, "chat": loaded.tokenizer.conventions.chat_template is not None}
