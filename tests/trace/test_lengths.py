"""What changes with the length of a text and is neither a length nor a table is refused."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.generate.engine.plan import decoder_graph
from chainrule.trace.lengths import Size
from tests.trace.test_interpreter import Small, check_refused
from tests.trace.test_trace import check_decodes, model_of


def heads(hidden: Tensor) -> Tensor:
    B, T, C = hidden.shape
    return hidden.reshape(B, T, 2, C // 2).transpose(0, 2, 1, 3)


class Scaled(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q = heads(self.layer(hidden))
        mixed = ops.attention(q, q, q, causal=True, scale=hidden.shape[1] ** -0.5)
        return mixed.transpose(0, 2, 1, 3).reshape(*hidden.shape)


class Eps(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return ops.rmsnorm(hidden, Tensor([1.0] * 16), eps=0.1 * hidden.shape[1])


class Wired(Small):
    """The same ops, of other values."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        a, b = hidden.tanh(), hidden.tanh()
        return hidden + (a if hidden.shape[1] > 11 else b)


class Missing(Small):
    """A bias of long texts alone."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return ops.linear(hidden, self.layer.weight, self.layer.bias if hidden.shape[1] > 11 else None)


class Words(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        mode = "outside" if hidden.shape[1] > 11 else "inside"
        ones = Tensor([1.0] * 16)
        return ops.layernorm(hidden, ones, ones, eps_mode=mode)


@pytest.mark.parametrize("kind", [Scaled, Eps, Wired, Missing, Words])
def test_everything_is_compared(kind: type[Any]) -> None:
    check_refused(model_of(kind), "depends on the number of ids")


class Other(Small):
    """Another number of inputs."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        parts = [hidden] * (2 if hidden.shape[1] > 11 else 1)
        return ops.concat(*parts, axis=0)[:1]


def test_another_number_of_inputs() -> None:
    check_refused(model_of(Other), "depends on the number of ids")


class Plain(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        q = heads(self.layer(hidden))
        return ops.attention(q, q, q, causal=True, scale=0.3).transpose(0, 2, 1, 3).reshape(*hidden.shape)


def test_a_length_is_known() -> None:
    model = model_of(Plain)
    shapes = [node.constants["shape"] for node in decoder_graph(model).nodes if node.op.name == "reshape"]
    assert shapes == [(1, Size("ids"), 2, 8), (1, Size("ids"), 16)]
    check_decodes(model, compiled=False)
