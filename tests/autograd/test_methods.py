"""Methods and operators of a Tensor: comparisons, casts, and names from PyTorch."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.methods import Methods

x = cr.Tensor([[1.0, -2.0, 3.0], [0.0, 2.0, -1.0]])


def test_comparisons_are_elementwise_and_identity_is_is() -> None:
    assert (x == x).tolist() == [[True] * 3] * 2
    assert (x > 0).tolist() == [[True, False, True], [False, True, False]]
    assert (x != 0).tolist() == [[True] * 3, [False, True, True]]
    assert (x <= cr.Tensor([1.0, 0.0, 0.0])).tolist() == [[True, True, False], [True, False, True]]
    assert (~(x < 0)).tolist() == (x >= 0).tolist()
    assert x is not x.clone() and len({x, x, x.clone()}) == 2
    assert (x == None) is False and (x != None) is True  # noqa: E711
    assert not (x > 0).requires_grad
    with pytest.raises(cr.ShapeError, match=r"==: cannot compare shape \(2, 3\) with shape \(4,\)"):
        x == np.ones(4)  # noqa: B015
    with pytest.raises(cr.ShapeError, match="<: cannot compare"):
        x < "a"  # noqa: B015


def test_a_python_integer_beside_integers_is_one() -> None:
    ids = cr.Tensor(np.array([2**24 + 1, 7]))
    assert (ids + 1).tolist() == [2**24 + 2, 8] and (2 * ids).dtype == (ids + np.int64(1)).dtype == np.int64
    assert (ids * 0.5).dtype == (ids / 2).dtype == ((x > 0) * 2).dtype == np.float32
    assert (cr.Tensor(np.array([200], np.uint8)) + 300).tolist() == [500]
    assert (cr.arange(1, 3) ** 2).tolist() == [1, 4] and (cr.arange(1, 3) ** -1).tolist() == [1.0, 0.5]
    assert int(x.argmax()) == 2


def test_truth_of_several_elements_is_refused() -> None:
    assert (x == x).all() and not (x > 5).any()
    with pytest.raises(cr.ShapeError, match=r"use \.all"):
        bool(x > 0)


def test_values_are_not_changed_in_place() -> None:
    with pytest.raises(cr.GraphError, match="not changed in place"):
        x[0] = 1.0


@pytest.mark.parametrize(
    "name, meant", [("view", "reshape"), ("cuda", "CPU"), ("numel", "x.size"), ("add_", "x.data")]
)
def test_names_of_pytorch_say_what_they_are_called_here(name: str, meant: str) -> None:
    with pytest.raises(cr.ChainruleError, match=rf"Tensor has no '{name}' \(here: .*{meant}"):
        getattr(x, name)
    assert not hasattr(x, name) and name not in dir(x)


def test_an_op_that_is_no_method_is_named() -> None:
    with pytest.raises(AttributeError, match=r"cr\.ops\.softmax\(x\)"):
        x.softmax()  # type: ignore[attr-defined]


def test_wrong_arguments_name_the_right_ones() -> None:
    with pytest.raises(cr.ConfigError, match=r"unknown argument 'keepdim'; did you mean keepdims\?"):
        cr.ops.sum(x, keepdim=True)
    with pytest.raises(cr.ConfigError, match=r"it takes softmax\(x, /, \*, axis=-1"):
        cr.ops.softmax(x, -1)
    with pytest.raises(cr.ConfigError, match="both axis and dim"):
        cr.ops.sum(x, axis=0, dim=1)


def test_dim_is_axis() -> None:
    assert (cr.ops.softmax(x, dim=0) == cr.ops.softmax(x, axis=0)).all()
    assert x.sum(dim=1).tolist() == x.sum(axis=1).tolist() == [2.0, 1.0]


def test_axis_and_dim_together_are_refused() -> None:
    """By every method that takes both names, whether the axis is named or comes by its place."""
    both = [name for name, method in vars(Methods).items() if "dim" in _parameters(method)]
    assert len(both) > 10
    for name in both:
        before = [1] if name in ("topk", "split", "chunk") else []
        for given in ({"axis": 0}, {"axis": -1}, {}):
            with pytest.raises(cr.ConfigError, match=f"{name}: got both axis and dim"):
                getattr(x, name)(*before, *([] if given else [0]), **given, dim=1)
        assert str(getattr(x, name)(*before, dim=0)) == str(getattr(x, name)(*before, axis=0))


def _parameters(method: object) -> list[str]:
    return [*inspect.signature(method).parameters] if inspect.isfunction(method) else []


def test_methods_take_what_their_ops_take() -> None:
    """A method that forgot an argument of its op would hide it."""
    for name, op in {**cr.ops.all_ops(), **cr.ops.compositions()}.items():
        method = vars(Methods).get(name)
        if inspect.isfunction(method) and name not in ("reshape", "transpose", "expand", "repeat"):
            given = set(inspect.signature(method).parameters) - {"self", "dim"}
            taken = [*inspect.signature(op).parameters][1:]
            assert given == set(taken) - {"at_zero"}, name


def test_astype_passes_the_gradient_in_the_old_dtype() -> None:
    a = cr.Tensor([1.0, 2.0], requires_grad=True)
    y = a.astype(np.float64)
    assert y.dtype == np.float64
    (y * y).sum().backward()
    assert a.grad is not None and a.grad.dtype == np.float32 and a.grad.tolist() == [2.0, 4.0]
    assert a.astype(int).dtype.kind == "i" and not a.astype(int).requires_grad
    with pytest.raises(cr.ConfigError, match="must be a dtype"):
        a.astype("nonsense")
