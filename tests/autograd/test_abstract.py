"""What an op says of itself by shapes alone, against what it does: outputs, what it saves, and its products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Example, Op, Tensor
from chainrule.autograd.abstract import abstract, memory_of
from tests.battery import checks as battery
from tests.trace.measured import step_products

OPS = cr.ops.all_ops()
ABSTRACT = [name for name, op in OPS.items() if op.abstract]
COSTLY = [name for name, op in OPS.items() if op.cost]


def looks(x: Any) -> Any:
    return (x.shape, x.dtype) if isinstance(x, np.ndarray | np.generic) else type(x)


def sharing(arrays: tuple[Any, ...]) -> list[tuple[int, int]]:
    """Which of these arrays are one and the same."""
    return [
        (i, j) for i, a in enumerate(arrays) for j, b in enumerate(arrays[:i]) if a is b and a is not None
    ]


def check_abstract(op: Op, example: Example) -> None:
    args = battery.as_float32(example)
    shapes = tuple(abstract(a.shape, a.dtype) if isinstance(a, np.ndarray) else a for a in args)
    found, kept = op.abstract(*shapes, **example.kwargs)  # type: ignore[misc]
    with cr.backend("reference"):
        real, saved = op.forward(*args, **example.kwargs)
    outputs = battery.outputs(real)
    assert [looks(np.asarray(y)) for y in battery.outputs(found)] == [looks(np.asarray(y)) for y in outputs]
    assert list(map(looks, kept)) == list(map(looks, saved))
    assert sharing((*shapes, *battery.outputs(found), *kept)) == sharing((*args, *outputs, *saved))


@pytest.mark.parametrize("name", ABSTRACT)
def test_outputs_and_saved_by_shapes_alone(name: str) -> None:
    for example in battery.examples(OPS[name]):
        check_abstract(OPS[name], example)


def test_a_wrong_shape_is_found() -> None:
    right = cr.ops.layernorm
    wrong = Op(
        "wrong", right.forward, right.backward, right.example, abstract=lambda x, g, b, **_: (x, (x, g, b))
    )
    with pytest.raises(AssertionError):
        check_abstract(wrong, battery.examples(right)[0])


@pytest.mark.parametrize("name", COSTLY)
def test_the_cost_is_the_products_that_are_made(name: str) -> None:
    op = OPS[name]
    for example in battery.examples(op):
        args = battery.as_float32(example)
        needs = tuple(battery.is_float(a) for a in args)

        def loss(op: Op = op, example: Example = example, args: Any = args) -> Tensor:
            inputs = [Tensor(a, requires_grad=True) if battery.is_float(a) else a for a in args]
            return sum((y.sum() for y in battery.outputs(op(*inputs, **example.kwargs))), Tensor(0.0))

        forward, backward = step_products(loss)
        cost = op.cost(needs, *args, **(example.kwargs | dense(example)))  # type: ignore[misc]
        assert forward[name] == cost.forward
        assert backward[name] == cost.backward + cost.recompute


def dense(example: Example) -> dict[str, Any]:
    """The reference computes the scores that a causal mask throws away."""
    causal = "causal" in example.kwargs or "heads" in example.kwargs
    return {"causal": False} if causal else {}


def test_memory_is_shared_by_views() -> None:
    x = abstract((3, 4, 5))
    assert memory_of(x)[1] == 240
    assert (
        memory_of(x.transpose(1, 0, 2).reshape(12, 5)[1:]) == memory_of(x) != memory_of(abstract((3, 4, 5)))
    )
