"""Embedding layer: a table with one learned row per token."""

from __future__ import annotations

from typing import ClassVar

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.nn.init import Init, normal, parameter
from chainrule.nn.layer import Layer


class Embedding(Layer):
    """Row `ids[i]` of a table (n, dim); a token that occurs twice gets the sum of both gradients."""

    length_before: ClassVar[int] = 0
    """Rows that it puts before those of the tokens."""

    def __init__(self, n: int, dim: int, *, init: Init = normal) -> None:
        self.weight = parameter(init, (n, dim))

    def forward(self, ids: Array) -> Tensor:
        """ids (...) integers -> (..., dim)"""
        return ops.embedding(self.weight, ids=ids)
