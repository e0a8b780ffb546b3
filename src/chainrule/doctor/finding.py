"""What a diagnosis says: what was measured, what it means, what to try.

A finding is known by its code. Its sentences are for people: rewording them changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, fields
from enum import StrEnum, auto
from typing import Any, Literal, Self, get_args

Level = Literal["ok", "note", "problem"]


class Code(StrEnum):
    """What a finding says. `messages.py` has the words."""

    # Before the first step: the data, the first loss, the cost.
    TARGETS_OK = auto()
    TARGETS_CHANCE = auto()
    TARGETS_MISSING = auto()
    LABELS_OK = auto()
    LABELS_FEW = auto()
    LENGTH_OK = auto()
    LENGTH_CUT = auto()
    VOCABULARY_OK = auto()
    VOCABULARY_ID = auto()
    VOCABULARY_SIZE = auto()
    STOP_TOKEN_OK = auto()
    STOP_TOKEN_MISSING = auto()
    STOP_TOKEN_IGNORED = auto()
    UNUSED_TOKENS_OK = auto()
    UNUSED_TOKENS = auto()
    INITIAL_LOSS_OK = auto()
    INITIAL_LOSS_NOT_FINITE = auto()
    INITIAL_LOSS_HIGH = auto()
    INITIAL_LOSS_LOW = auto()
    FORECAST = auto()
    FORECAST_MEMORY = auto()
    ONE_BATCH_OK = auto()
    ONE_BATCH_FAILS = auto()

    # While it trains.
    LOSS_SPIKE = auto()
    CLIPPING = auto()
    OVERFITTING = auto()
    CURVE_OK = auto()
    CURVE_NOT_FINITE = auto()
    CURVE_DIVERGES = auto()
    CURVE_HOCKEY_STICK = auto()
    CURVE_FLAT = auto()
    CURVE_RISES = auto()

    # A number that is not finite.
    NOT_FINITE_WEIGHT = auto()
    NOT_FINITE_FORWARD = auto()
    NOT_FINITE_BACKWARD = auto()
    NOT_FINITE_GRADIENT = auto()
    NOT_FINITE_SUM = auto()
    NOT_FINITE_UPDATE = auto()

    # A model.
    LOSS_OK = auto()
    LOSS_HIGH = auto()
    SPLITS_OK = auto()
    SPLITS_LEARNING = auto()
    SPLITS_APART = auto()
    SPLITS_LEVEL = auto()
    SPLITS_OVERFIT = auto()
    WEIGHTS_OK = auto()
    WEIGHTS_NOT_FINITE = auto()
    ACTIVATIONS_NOT_FINITE = auto()
    SATURATED = auto()
    SILENT = auto()
    DEAD_UNITS = auto()
    SPREAD_SHRINKS = auto()
    SPREAD_GROWS = auto()
    GRADIENTS_VANISH = auto()
    GRADIENTS_EXPLODE = auto()
    GRADIENT_NOT_FINITE = auto()
    GRADIENT_ZERO = auto()
    UPDATES_OK = auto()
    UPDATES_LARGE = auto()
    UPDATES_SMALL = auto()
    EMBEDDINGS_OK = auto()
    EMBEDDINGS_CONE = auto()


ABOUT = {
    "loss spike": {Code.LOSS_SPIKE},
    "clipping": {Code.CLIPPING},
    "overfitting": {Code.OVERFITTING},
    "loss curve": {Code.CURVE_NOT_FINITE, Code.CURVE_DIVERGES, Code.CURVE_HOCKEY_STICK, Code.CURVE_FLAT},
    "gradients": {Code.GRADIENT_NOT_FINITE, Code.GRADIENT_ZERO},
    "updates": {Code.UPDATES_SMALL},
}
"""Logs of versions without codes: `about` of what was found in training, and the codes it may stand for."""


@dataclass(frozen=True)
class Finding:
    """One statement about a model, its data or its training."""

    code: Code | None
    """None if it was read from the log of a version without codes."""
    level: Level
    about: str
    """The measurement, such as "initial loss"."""
    measured: str
    meaning: str
    advice: str = ""
    """What to try; empty when nothing needs to be done."""

    @property
    def codes(self) -> Set[Code]:
        """Its code; of an old log all it may stand for."""
        return {self.code} if self.code else ABOUT.get(self.about, set())

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """A finding of a log; a code that this version does not know counts as none, a damaged text as empty."""
        texts = {f.name: record.get(f.name) for f in fields(cls)}
        known: dict[str, Any] = {name: text if isinstance(text, str) else "" for name, text in texts.items()}
        code, level = known["code"], known["level"]
        known |= {"code": Code(code) if code in list(Code) else None}
        return cls(**known | {"level": level if level in get_args(Level) else "note"})

    def __str__(self) -> str:
        """One line, as training prints it."""
        level = "" if self.level == "ok" else f"{self.level}: "
        advice = f" Try: {self.advice}" if self.advice else ""
        return f"{level}{self.about}: {self.measured}. {self.meaning}{advice}"
