"""checkpoint(fn, ...): the same gradients to the last bit, with less kept in between."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import random
from chainrule.autograd import Param, Tensor


def block(x: Tensor, w: Tensor) -> Tensor:
    return ((x * w).tanh() * x).exp()


def gradients(run) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, w = Tensor(rng.normal(size=(5, 3)), requires_grad=True), Param(rng.normal(size=3), dtype=np.float64)
    run(x, w).sum().backward()
    return x.grad, w.grad


def test_same_gradients_to_the_bit() -> None:
    plain = gradients(lambda x, w: block(block(x, w), w))
    saved = gradients(lambda x, w: cr.checkpoint(block, cr.checkpoint(block, x, w), w))
    closed = gradients(lambda x, w: cr.checkpoint(lambda t: block(block(t, w), w), x))  # w is a parameter
    for a, b, c in zip(plain, saved, closed, strict=True):
        assert np.array_equal(a, b) and np.array_equal(a, c)


def test_it_records_once_and_saves_only_its_inputs() -> None:
    x = Tensor(np.ones((4, 4)), requires_grad=True)
    y = cr.checkpoint(lambda t: t.exp().exp().exp(), x)
    assert y.record.name == "checkpoint" and [s.shape for s in y.record.saved] == [(4, 4)]


def test_nested_and_several_outputs() -> None:
    x = Tensor(np.array([0.3, 0.4]), requires_grad=True)
    a, b = cr.checkpoint(lambda t: (cr.checkpoint(lambda u: u * u, t), t * 3.0), x)
    (a + b).sum().backward()
    np.testing.assert_allclose(x.grad, 2 * x.data + 3)


def test_other_arguments_pass_through() -> None:
    x = Tensor(np.array([2.0]), requires_grad=True)
    cr.checkpoint(lambda t, power, label: t**power if label == "go" else t, x, 3, "go").backward()
    assert x.grad == [12.0]


def test_random_draws_repeat() -> None:
    drawn = []

    def noisy(t: Tensor) -> Tensor:
        key = random.next_key("dropout")
        drawn.append(key)
        return t * random.from_key(key).random()

    x = Tensor(np.ones(1), requires_grad=True)
    with random.step(5):
        y = cr.checkpoint(noisy, x)
        after = random.next_key("dropout")
        y.backward()
        assert random.next_key("dropout") != after
    assert drawn[0] == drawn[1] and x.grad == y.data


def test_without_gradients_it_just_computes() -> None:
    with cr.no_grad():
        y = cr.checkpoint(lambda t: t * 2.0, Tensor([1.0], requires_grad=True))
    assert y.record is None


def test_a_hidden_intermediate_is_refused() -> None:
    x = Tensor(np.ones(2), requires_grad=True)
    hidden = x * 2.0
    y = cr.checkpoint(lambda t: t * hidden, x)
    with pytest.raises(cr.GraphError, match="mul was computed outside checkpoint"):
        y.sum().backward()


def test_backward_under_no_grad_still_recomputes() -> None:
    x = Tensor(np.array([3.0]), requires_grad=True)
    y = cr.checkpoint(lambda t: t * t, x)
    with cr.no_grad():
        y.backward()
    assert x.grad == [6.0]


def test_captured_names_keep_their_scope() -> None:
    x = Tensor(np.array([3.0]), requires_grad=True)
    with cr.capture() as seen:
        with cr.scope("block"):
            y = cr.checkpoint(lambda t: t * t, x)
        y.backward()
    assert [name for name in seen if "mul" in name] == ["block.mul", "block.mul#2"]  # forward, and again
    assert seen["block.mul#2"].grad == [1.0]


def test_an_output_that_is_an_input() -> None:
    x, y = (Tensor(np.array(v), requires_grad=True) for v in ([1.0, 2.0], [3.0, 4.0]))
    a, b = cr.checkpoint(lambda a, b: (a, a * b), x, y)
    (a.sum() * 10.0 + b.sum()).backward()
    np.testing.assert_array_equal(x.grad, [13.0, 14.0])


def test_draws_repeat_in_another_step_and_under_another_seed() -> None:
    x = Tensor(np.ones(1), requires_grad=True)
    with random.step(5):
        y = cr.checkpoint(lambda t: t * random.from_key(random.next_key("dropout")).random(), x)
    with random.seeded(9):
        y.backward()
    assert x.grad == y.data
