"""gradcheck finds wrong gradients, names the guilty input, and is quiet about right ones."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Op, Param, Parameters
from chainrule.autograd.gradcheck import slope


@pytest.mark.requirement("R-023")
def test_five_point_slope_is_exact_for_quartics() -> None:
    assert slope(lambda h: (2 + h) ** 4, 0.1) == pytest.approx(32, abs=1e-11)


@pytest.mark.requirement("R-015", "R-033")
def test_right_gradients_pass() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 2))
    assert cr.gradcheck(lambda t: ((((t * 0.5).exp() + 1.0).log()) ** 2).sqrt(), x) < 1e-8  # five deep
    assert cr.gradcheck(lambda t: (t * t) * (t + 3.0).exp(), x) < 1e-9  # two paths, summed


def test_it_names_the_guilty_input() -> None:
    bad = Op(
        "bad", lambda a, b: (a * b, (a, b)), lambda dy, s, n: (dy * s[1], dy * s[0] * 1.01), lambda rng: ()
    )
    with pytest.raises(cr.GradientError, match=r"input 1: backward gives .* central difference"):
        cr.gradcheck(bad, np.array([2.0]), np.array([3.0]))
    assert cr.gradcheck(bad, np.array([2.0]), np.array([3.0]), wrt=(0,)) < 1e-9


@pytest.mark.parametrize("factor, caught", [(1 + 1e-5, True), (1 + 1e-9, False)])
def test_how_small_an_error_is_seen(factor: float, caught: bool) -> None:
    slightly = Op(
        "slightly", lambda a: (a * a, (a,)), lambda dy, s, n: (2 * factor * dy * s[0],), lambda rng: ()
    )
    x = np.random.default_rng(0).normal(size=(20, 20))
    w = Param(x, dtype=np.float64)
    block = Parameters([("w", w), ("v", Param(np.ones(3), dtype=np.float64))])
    for check in (
        lambda: cr.gradcheck(slightly, x),
        lambda: cr.gradcheck_model(block, lambda: slightly(w).sum() + 100.0 * block["v"].sum()),
    ):
        if caught:
            with pytest.raises(cr.GradientError):
                check()
        else:
            assert check() < 1e-6


def test_one_wrong_entry_of_four_hundred_is_seen() -> None:
    def backward(dy, saved, needs):
        grad = 2 * dy * saved[0]
        grad[3, 4] *= 1.001
        return (grad,)

    bad = Op("bad", lambda a: (a * a, (a,)), backward, lambda rng: ())
    with pytest.raises(cr.GradientError):
        cr.gradcheck(bad, np.random.default_rng(0).normal(size=(20, 20)))


def test_nan_gradients_fail() -> None:
    bad = Op("bad", lambda a: (a * 2, ()), lambda dy, s, n: (dy * np.nan,), lambda rng: ())
    with pytest.raises(cr.GradientError):
        cr.gradcheck(bad, np.array([2.0]))


def test_a_gradient_that_never_arrives_fails() -> None:
    with pytest.raises(cr.GradientError):
        cr.gradcheck(lambda a, b: a * b.detach(), np.array([2.0]), np.array([3.0]))


def test_several_outputs_and_integer_inputs() -> None:
    assert cr.gradcheck(lambda t, n: (t**n, t * 2.0), np.array([2.0, 3.0]), 3) < 1e-9


def test_whole_models() -> None:
    a, b = Param(np.array([[0.3, -0.2]]), dtype=np.float64), Param(np.array([0.5]), dtype=np.float64)
    block = Parameters([("a", a), ("b", b)])
    assert cr.gradcheck_model(block, lambda: ((a * b).tanh() * a).sum()) < 1e-9
    wrong = Op("wrong", lambda x: (x * x, (x,)), lambda dy, s, n: (dy * s[0],), lambda rng: ())
    with pytest.raises(cr.GradientError, match="gradcheck: b: "):
        cr.gradcheck_model(block, lambda: (a * a).sum() + wrong(b).sum())
    with pytest.raises(cr.GradientError, match="parameters are float32"):
        cr.gradcheck_model(Parameters([("w", Param([1.0]))]), lambda: a.sum())
    assert a.data[0, 0] == 0.3  # values are put back


def test_outputs_that_are_inputs() -> None:
    assert cr.gradcheck(lambda x: x, np.ones(2)) < 1e-9
    assert cr.gradcheck(lambda x: (x, x * 2.0), np.ones(2)) < 1e-9


def test_tensors_and_lists_are_checked_too() -> None:
    bad = Op("bad", lambda x: (x * x, (x,)), lambda dy, s, n: (dy * 0,), lambda rng: ())
    for values in (cr.Tensor([1.0, 2.0]), [1.0, 2.0]):
        with pytest.raises(cr.GradientError, match="input 0"):
            cr.gradcheck(bad, values)


@pytest.mark.parametrize("nothing", [np.array([1, 2]), np.ones(0), "x"])
def test_nothing_to_check_is_no_pass(nothing) -> None:
    with pytest.raises(cr.GradientError, match="nothing to check"):
        cr.gradcheck(lambda x: x, nothing)


def test_the_function_must_return_tensors() -> None:
    with pytest.raises(cr.GradientError, match="the function returned NoneType"):
        cr.gradcheck(lambda x: None, np.ones(2))
