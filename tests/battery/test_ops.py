"""Every op, every check. And the other way round: planted mistakes must turn the battery red."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Example, Op
from tests.battery import checks as battery

OPS = cr.ops.all_ops()
ROOT = Path(__file__).parents[2]


@pytest.mark.requirement("R-020", "R-039")
@pytest.mark.parametrize("name", OPS)
def test_op(name: str, record_property) -> None:
    op = OPS[name]
    tried = battery.examples(op)
    assert tried, f"{name} has no example"
    worst = 0.0
    for example in tried:
        worst = max(worst, battery.check_gradient(op, example))
        for check in battery.CHECKS[1:]:
            check(op, example)
    record_property("battery", (name, len(tried), worst))


def test_every_op_file_is_exported() -> None:
    """An op in a file of chainrule.ops that is missing from cr.ops would escape the battery."""
    found = {}
    for module in pkgutil.walk_packages(cr.ops.__path__, "chainrule.ops."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Op):
                found[value.name] = value
    assert found == OPS
    for name in OPS:
        assert getattr(cr.ops, name) is OPS[name]


def test_every_op_is_documented() -> None:
    """Each op says what it computes, and each file of ops names a derivation page that exists."""
    for name, op in OPS.items():
        assert op.__doc__ and op.__doc__.strip(), f"{name} has no docstring"
        module = importlib.import_module(op.forward.__module__)
        page = re.search(r"docs/derivations/[\w]+\.md", module.__doc__ or "")
        assert page, f"{module.__name__} names no derivation page"
        assert (ROOT / page.group()).is_file(), f"{page.group()} does not exist"


TAG = re.compile(r"\[([A-Z]{2,4}\.\d+)\]")


def test_equation_tags() -> None:
    """A tag such as [LN.6] beside a line of code is an equation of a derivation page, and is used somewhere."""
    pages = "\n".join(p.read_text() for p in (ROOT / "docs" / "derivations").glob("*.md"))
    written = set(TAG.findall(pages))
    cited: dict[str, str] = {}
    for path in (ROOT / "src" / "chainrule").rglob("*.py"):
        for tag in TAG.findall(path.read_text()):
            cited[tag] = path.name
    assert cited, "no equation is cited anywhere"
    missing = {tag: where for tag, where in cited.items() if tag not in written}
    assert not missing, f"cited in code but not written in docs/derivations: {missing}"


def test_the_op_of_the_contributing_page_passes() -> None:
    """What an outsider is told to write is green as it stands."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example
    names: dict[str, object] = {"__name__": "square"}
    exec(example.group(1), names)
    square = names["square"]
    assert isinstance(square, Op) and not list(battery.failures(square))
    assert str(inspect.signature(square)).startswith("(x: chainrule.autograd.tensor.Tensor, /)")


# -- the battery must be able to fail ---------------------------------------------------------------------------


def cube_forward(x, w):
    return x**3 * w, (x, w)


def cube_backward(dy, saved, needs):
    x, w = saved
    return dy * 3 * x**2 * w, dy * x**3


def cube_example(rng):
    yield Example((rng.normal(size=(4, 3)), rng.normal(size=(4, 3))))


def planted(backward=cube_backward, forward=cube_forward, composed=None) -> Op:
    return Op("planted", forward, backward, cube_example, composed=composed)


def slightly_wrong(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return dx * 1.0001, dw


def wrong_sign(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return dx, -dw


def one_entry_wrong(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    dx[1, 2] *= 1.01
    return dx, dw


def missing_term(dy, saved, needs):
    _, dw = cube_backward(dy, saved, needs)
    return np.zeros_like(dw), dw


def transposed(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return dx[::-1], dw


def wrong_shape(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return dx.sum(0), dw


def not_a_number(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return dx + np.nan, dw


def upcasts(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return dx * np.float64(1), dw


def writes_into_saved(dy, saved, needs):
    grads = cube_backward(dy, saved, needs)
    saved[0][...] = 0
    return grads


def ignores_needs(dy, saved, needs):
    dx, dw = cube_backward(dy, saved, needs)
    return (dx if needs[1] else 2 * dx), dw


@pytest.mark.parametrize(
    "backward, red",
    [
        (slightly_wrong, "check_gradient"),
        (wrong_sign, "check_gradient"),
        (one_entry_wrong, "check_gradient"),
        (missing_term, "check_gradient"),
        (transposed, "check_gradient"),
        (wrong_shape, "check_gradient"),
        (not_a_number, "check_gradient"),
        (upcasts, "check_backward_keeps_float32"),
        (writes_into_saved, "check_inputs_untouched"),
        (ignores_needs, "check_needs"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_planted_mistake_turns_red(backward, red: str) -> None:
    assert red in set(battery.failures(planted(backward)))


def test_the_sound_op_is_green() -> None:
    assert list(battery.failures(planted())) == []


def test_wrong_composition_turns_red() -> None:
    assert "check_composed" in set(battery.failures(planted(composed=lambda x, w: x * x * x * w * 1.001)))


def test_overflow_turns_red() -> None:
    def forward(x, w):
        e = np.exp(x)  # the naive softmax: fine on examples, infinite at 1e4
        return e / e.sum(-1, keepdims=True) * w, (x, w)

    assert "check_extremes" in set(battery.failures(planted(forward=forward)))


def test_wrong_native_kernel_turns_red(monkeypatch) -> None:
    def kernel(x, w):
        return (x**3 * w * np.float32(1.001)), (x, w)

    op = Op("planted", cube_forward, cube_backward, cube_example, native=(kernel, cube_backward))
    monkeypatch.setattr("chainrule.native.available", lambda: True)
    assert "check_native" in set(battery.failures(op))


@pytest.mark.skipif(not native.available(), reason="no kernels to test")
def test_a_wrong_native_backward_turns_red() -> None:
    def backward(dy, saved, needs):
        dx, dw = cube_backward(dy, saved, needs)
        return dx * np.float32(1.001), dw

    right, wrong = (
        Op("planted", cube_forward, cube_backward, cube_example, native=(cube_forward, each))
        for each in (cube_backward, backward)
    )
    assert "check_native_gradient" not in set(battery.failures(right))
    assert "check_native_gradient" in set(battery.failures(wrong))


def test_an_output_computed_again_from_the_wrong_values_turns_red() -> None:
    op = Op(
        "planted", cube_forward, cube_backward, cube_example, recompute=lambda saved: (2 * saved[0], saved[1])
    )
    assert "check_again" in set(battery.failures(op))
