"""What a diagnosis says: what was measured, what it means, what to try."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One statement about a model, in words."""

    level: Level
    about: str
    """The measurement, such as "initial loss"."""
    measured: str
    meaning: str
    advice: str = ""
    """What to try; empty when nothing needs to be done."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
