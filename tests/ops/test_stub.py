"""What type checkers and editors know of the ops is what the ops say themselves."""

from __future__ import annotations

import inspect

import pytest
from tools.ops_stub import STUB, stub

import chainrule as cr
from chainrule.autograd import Tensor

FUNCTIONS = {**cr.ops.all_ops(), **cr.ops.compositions()}


def test_the_stub_is_current() -> None:
    assert STUB.read_text(encoding="utf-8") == stub(), "run: python -m tools.ops_stub"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_signature(name: str) -> None:
    signature = inspect.signature(FUNCTIONS[name])
    assert signature.parameters and "Tensor" in str(signature.return_annotation)
    assert name in repr(FUNCTIONS[name]) and FUNCTIONS[name].__doc__


def test_tensors_by_position_and_constants_by_name() -> None:
    signature = inspect.signature(cr.ops.softmax)
    x, axis = signature.parameters["x"], signature.parameters["axis"]
    assert (x.kind, x.annotation) == (x.POSITIONAL_ONLY, Tensor)
    assert (axis.kind, axis.annotation, axis.default) == (axis.KEYWORD_ONLY, int, -1)
