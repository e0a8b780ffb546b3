"""The 344 worked numeric examples of the seed documents, as test vectors.

    v = vector("der-gelu")
    v.check(gelu(**v.inputs))

`recomputed` is the float64 reference. What a document printed (`expected`) may be rounded or wrong and is
never compared with; tests/conformance/test_vectors.py holds the two against each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "conformance" / "vectors.json"

used: set[str] = set()  # ids whose reference was read in this process; the conformance report counts them


class Vector:
    """One worked example: `inputs` with references resolved, and the reference value `recomputed`."""

    def __init__(self, id: str) -> None:
        record = records()[id]
        self.id = id
        self.op: str = record["op"]
        self.what: str = record["what"]
        self.inputs: dict[str, Any] = _inputs(id)
        self._recomputed = decode(record["recomputed"])

    @property
    def recomputed(self) -> Any:
        used.add(self.id)
        return self._recomputed

    def check(
        self, got: Any, rtol: float = 1e-9, atol: float = 1e-12, keys: Iterable[str] | None = None
    ) -> None:
        """Raise AssertionError at the first place where `got` differs from `recomputed`.

        `got` nests like the reference (arrays and tuples count as lists). With `keys` only those entries of
        a reference that is a dict are compared, and `got` must have exactly them.
        """
        want = self.recomputed
        if keys is not None:
            want = {key: want[key] for key in keys}
        _compare(got, want, rtol, atol, where=self.id)

    def __repr__(self) -> str:
        return f"vector({self.id!r})"


def vector(id: str) -> Vector:
    if id not in records():
        raise KeyError(f"no vector {id!r} in {PATH.name}")
    return Vector(id)


@cache
def records() -> dict[str, dict[str, Any]]:
    """The raw records by id."""
    content = json.loads(PATH.read_text(encoding="utf-8"))
    return {record["id"]: record for record in content["examples"] + content["derived"]}


def decode(value: Any) -> Any:
    """A fresh copy in which the strings "Infinity" and "-Infinity" are floats."""
    if isinstance(value, dict):
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decode(item) for item in value]
    return float(value) if value in ("Infinity", "-Infinity") else value


def _inputs(id: str) -> dict[str, Any]:
    own = decode(records()[id]["inputs"])
    return _inputs(own.pop("ref")) | own if "ref" in own else own


def _plain(value: Any) -> Any:
    """Tensors and arrays as nested lists, NumPy scalars as Python numbers."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


def _compare(got: Any, want: Any, rtol: float, atol: float, where: str) -> None:
    got = _plain(got)
    if isinstance(want, dict):
        assert isinstance(got, dict), f"{where}: got {got!r}, want a dict with keys {sorted(want)}"
        assert got.keys() == want.keys(), f"{where}: got keys {sorted(got)}, want {sorted(want)}"
        for key in want:
            _compare(got[key], want[key], rtol, atol, f"{where}.{key}")
    elif isinstance(want, list):
        assert isinstance(got, list | tuple), f"{where}: got {got!r}, want a list of {len(want)}"
        assert len(got) == len(want), f"{where}: got {len(got)} items, want {len(want)}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            _compare(g, w, rtol, atol, f"{where}[{i}]")
    elif isinstance(want, bool | str) or want is None:
        assert type(got) is type(want) and got == want, f"{where}: got {got!r}, want {want!r}"
    else:
        number = isinstance(got, int | float) and not isinstance(got, bool)
        close = number and (got == want or abs(got - want) <= atol + rtol * abs(want))  # == for infinities
        assert close, f"{where}: got {got!r}, want {want!r}"
