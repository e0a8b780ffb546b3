"""Dominant eigenvalues: what happens to a state that passes the same matrix again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.errors import ConfigError, ShapeError
from chainrule.inspect.attention import maps
from chainrule.nn import Layer
from chainrule.types import Ids

GATES = {1: ("h",), 3: ("r", "z", "n"), 4: ("i", "f", "g", "o")}  # of RNN, GRU, LSTM


@dataclass(frozen=True)
class Spectrum:
    """The largest eigenvalues of a square matrix, by magnitude."""

    name: str
    eigenvalues: npt.NDArray[np.complex128]

    @property
    def radius(self) -> float:
        """The largest magnitude: repeated products vanish below 1 and explode above."""
        return float(np.abs(self.eigenvalues[0]))

    def to_dict(self) -> dict[str, Any]:
        pairs = [[float(v.real), float(v.imag)] for v in self.eigenvalues]
        return {"name": self.name, "radius": self.radius, "eigenvalues": pairs}


def spectrum(A: npt.ArrayLike, name: str = "", count: int = 5) -> Spectrum:
    """The `count` largest eigenvalues of A (n, n).

    >>> from chainrule.inspect.spectrum import spectrum
    >>> round(spectrum([[0.9, 0.0], [0.0, 1.1]]).radius, 6)
    1.1
    """
    A = np.asarray(A, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise ShapeError(f"spectrum: matrix {A.shape} (must be square)")
    if not np.isfinite(A).all():
        raise ConfigError(f"spectrum: {name or 'the matrix'} has entries that are not finite (all must be)")
    values = np.linalg.eigvals(A).astype(np.complex128)
    order = np.lexsort((-values.imag, -values.real, -np.abs(values).round(12)))
    return Spectrum(name, values[order][:count])


def recurrent_spectra(model: Layer) -> list[Spectrum]:
    """Of every matrix that carries a recurrent state on, one per gate: `rnn.weight_h[h]`."""
    found = []
    for name, param in model.named_parameters():
        if name.rpartition(".")[2] != "weight_h":
            continue
        gates = GATES.get(len(param.array) // param.shape[1], ())
        for gate, W in zip(gates, np.split(param.array, len(gates) or 1), strict=False):
            found.append(spectrum(W, f"{name}[{gate}]"))
    return found


def attention_spectra(model: Layer, ids: Ids) -> list[Spectrum]:
    """Of every attention map of the first sequence: the largest is 1, the next says how fast mixing forgets."""
    return [
        spectrum(A[0, head], f"{name}[{head}]")
        for name, A in maps(model, ids).items()
        for head in range(A.shape[1])
    ]
