"""What a task uses and a run finds again by its name: the data, and other models."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, Protocol

import numpy as np

from chainrule.text import Tokenizer


class Data(Protocol):
    """Where data come from: a name by which they are found again, and a hash that tells if they are still the same."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def sha256(self) -> str: ...


def facts_of(data: Data) -> dict[str, Any]:
    """What a run writes down about its data; of a table also the columns."""
    facts = {"name": data.name, "version": data.version, "sha256": data.sha256}
    reading = getattr(data, "reading", None)
    return facts if reading is None else facts | {"columns": reading.columns}


class NamedModel(NamedTuple):
    """Another model that a task uses, with the path where it is found again."""

    path: str
    model: Any
    tokenizer: Tokenizer

    @property
    def facts(self) -> dict[str, str]:
        """What a run writes down about it: the path, and a hash that tells if it is still the same."""
        hashed = hashlib.sha256()
        for name, array in sorted(self.model.state().items()):
            hashed.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return {"path": self.path, "sha256": hashed.hexdigest()}
