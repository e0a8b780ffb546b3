"""The flat block: names, views, ties, groups."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Param, Parameters


def build() -> tuple[Parameters, Param, Param, Param]:
    bias, weight, frozen = Param(np.ones(3)), Param(np.full((2, 3), 2.0)), Param(np.full((4, 4), 3.0))
    frozen.requires_grad = False
    return Parameters([("bias", bias), ("weight", weight), ("frozen", frozen)]), bias, weight, frozen


def test_values_and_gradients_are_views_of_one_block() -> None:
    block, bias, weight, _ = build()
    block.data[...] = 7.0
    assert (bias.data == 7).all() and (weight.data == 7).all()
    (weight * 2.0 + bias).sum().backward()
    assert np.shares_memory(weight.grad, block.grad) and (weight.grad == 2).all() and (bias.grad == 2).all()
    block.zero_grad()
    assert (weight.grad == 0).all()


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_gradients_begin_anew_without_being_cleared(backend: str) -> None:
    rng = np.random.default_rng(0)
    shapes = {
        "used": (8, 4),
        "twice": (4, 4),
        "rows": (5, 4),
        "unused": (3, 4),
        "bias": (8,),
        "gain": (4,),
        "idle": (2,),
    }
    block = Parameters([(name, Param(rng.normal(size=shape))) for name, shape in shapes.items()])
    x = cr.Tensor(rng.normal(size=(6, 4)).astype(np.float32))
    ids = np.array([1, 4, 4, 0, 2, 1])

    def backward() -> None:
        hidden = cr.ops.linear(cr.ops.linear(x, block["twice"]), block["twice"])
        hidden = cr.ops.layernorm(
            hidden + cr.ops.embedding(block["rows"], ids=ids), block["gain"], block["gain"]
        )
        (cr.ops.linear(hidden, block["used"], block["bias"]) ** 2.0).sum().backward()

    with cr.backend(backend):
        block.zero_grad()
        backward()
        expected = block.grad.copy()
        for leftover in (np.nan, 7.0):
            for param in block:
                param.grad[...] = leftover
            with block.replaced():
                backward()
            np.testing.assert_array_equal(block.grad, expected)
        backward()  # afterwards gradients add up again
        np.testing.assert_allclose(block.grad, 2 * expected, rtol=1e-6)
        with pytest.raises(RuntimeError), block.replaced():
            raise RuntimeError
        assert not block.grad.any()


def test_an_op_of_ones_own_adds_to_a_place_that_is_cleared_for_it() -> None:
    def backward(dy: np.ndarray, saved: tuple, needs: tuple) -> tuple:
        place = needs[0].array
        place += dy * 3
        return (place,)

    triple = cr.Op("triple", lambda x: (x * 3, ()), backward, example=lambda rng: ())
    block = Parameters([("weight", Param(np.ones((2, 3))))])
    block["weight"].grad[...] = 7
    with block.replaced():
        (triple(block["weight"]) + triple(block["weight"])).sum().backward()
    assert (block["weight"].grad == 6).all()


def test_groups_are_contiguous() -> None:
    block, bias, weight, frozen = build()
    (matrices, decays), (vectors, other) = block.ranges()
    assert (decays, other) == (True, False)
    assert np.shares_memory(block.data[matrices], weight.data)
    assert np.shares_memory(block.data[vectors], bias.data)
    assert not np.shares_memory(block.data[: vectors.stop], frozen.data)
    assert block.count() == 25 and block.count(trainable=True) == 9


def test_every_parameter_starts_on_a_cache_line() -> None:
    block, *_ = build()
    assert all(offset % 16 == 0 for offset in block.offsets.values())


def test_tied_parameters_count_once_and_add_up() -> None:
    shared = Param(np.array([2.0, 3.0]))
    block = Parameters([("a", shared), ("b", shared)])
    (block["a"] * block["b"]).sum().backward()
    np.testing.assert_array_equal(shared.grad, [4.0, 6.0])
    assert block.count() == 2


def test_state_is_a_copy() -> None:
    block, bias, _, _ = build()
    state = block.state()
    block.data[...] = 0
    assert (state["bias"] == 1).all() and (bias.data == 0).all()


def test_changing_parameters_between_forward_and_backward_is_noticed() -> None:
    block, bias, weight, _ = build()
    loss = (weight * bias).sum()
    block.data += 0.1
    block.changed()
    with pytest.raises(
        cr.GraphError, match=r"weight of shape \(2, 3\) was changed in place after mul saved it"
    ):
        loss.backward()


def test_a_change_outside_the_samples_is_noticed_too() -> None:
    """The fingerprint of a large array is a sample; what an optimizer changes is announced as well."""
    weight = Param(np.ones(1000))
    block = Parameters([("weight", weight)])
    loss = (weight * weight).sum()
    block.data[1] = 5.0
    block.changed()
    with pytest.raises(cr.GraphError, match="changed in place"):
        loss.backward()


def test_neighbors_of_one_kind_are_one_range() -> None:
    block = Parameters(
        [
            (name, Param(np.ones(shape)))
            for name, shape in [("a", (2, 2)), ("b", 3), ("c", (4, 4)), ("d", 5), ("e", (1, 1))]
        ]
    )
    assert block.ranges() == ((slice(0, 48), True), (slice(48, 80), False))


def test_names_must_differ() -> None:
    with pytest.raises(cr.GraphError, match="two parameters are named 'w'"):
        Parameters([("w", Param(np.ones(1))), ("w", Param(np.ones(1)))])


def test_mixed_dtypes_need_a_decision() -> None:
    pair = [("a", Param(np.ones(1))), ("b", Param(np.ones(1), dtype=np.float64))]
    with pytest.raises(cr.GraphError, match=r"dtypes \['float32', 'float64'\] in one block"):
        Parameters(pair)
    assert Parameters(pair, dtype=np.float64).dtype == np.float64


def test_manual_gradient_descent() -> None:
    """The loop of a first lesson works on parameters as it does in any book."""
    w = Param([4.0])
    for _ in range(50):
        w.zero_grad()
        (w * w).sum().backward()
        w.data -= 0.1 * w.grad
    assert abs(w.item()) < 1e-3


def test_forgetting_a_gradient_keeps_it_in_the_block() -> None:
    block, _, weight, _ = build()
    weight.grad = None
    (weight * 2.0).sum().backward()
    assert np.shares_memory(weight.grad, block.grad) and (weight.grad == 2).all()
