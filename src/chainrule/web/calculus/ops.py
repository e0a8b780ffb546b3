"""One op on numbers that can be edited: its inputs, outputs, gradients, and the check of every entry.

The numbers begin as an example of the op itself. An edit is `NAME.PLACE = number` for an entry of an array, counted in
the order of its rows, or `NAME = text` for a constant; both stand in the address of the page.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Example, Op, check_entries
from chainrule.errors import ConfigError
from chainrule.suggest import did_you_mean
from chainrule.web.calculus import derivations, sources
from chainrule.web.jobs import Tell, silent

SEED = "dy"  # the name of the gradient that arrives at the outputs
MOST = 1000  # entries of all inputs: each costs four forward passes
EXAMPLES = 4  # of an op that are offered
FAMILIES = {"neural": "Networks", "losses": "Losses", "arrays": "Arrays"}


def listed() -> list[dict[str, Any]]:
    """All ops, as the room of ops lists them, with their family and first sentence."""
    return [
        {"name": name, "family": FAMILIES[_family(op)], "about": _about(op), "page": sources.page_of(op)}
        for name, op in sorted(ops.all_ops().items())
    ]


def named(name: str) -> Op:
    """The op of a name."""
    known = ops.all_ops()
    if name not in known:
        raise ConfigError(f"op: no op {name!r} ({did_you_mean(name, known) or 'see the list of ops'})")
    return known[name]


def described(name: str) -> dict[str, Any]:
    """What does not depend on numbers: formula, equations, code, derivation, and the examples there are."""
    op = named(name)
    code = sources.code_of(op)
    tags = dict.fromkeys(tag for function in code for line in function["lines"] for tag in line["tags"])
    known, page = derivations.equations(), sources.page_of(op)
    return {
        "name": name,
        "family": FAMILIES[_family(op)],
        "signature": f"{name}{op.__signature__}",
        "about": inspect.getdoc(op.forward) or "",
        "formula": sources.formula_of(op),
        "equations": [known[tag] for tag in sorted(tags, key=_in_order) if tag in known],
        "code": code,
        "page": page,
        "derivation": derivations.blocks_of(page) if page else [],
        "examples": len(_examples(op)),
    }


def checked(
    name: str, example: int = 0, edits: Mapping[str, str] | None = None, tell: Tell = silent
) -> dict[str, Any]:
    """Outputs, gradients and differences of an op on an example with edits, and the program that computes them."""
    op = named(name)
    found = _examples(op)
    if not 0 <= example < len(found):
        raise ConfigError(f"{name}: example {example} (must be from 0 to {len(found) - 1})")
    args, constants = [*found[example].args], _defaults(op) | dict(found[example].kwargs)
    names = _argument_names(op, len(args))
    left = _edited(name, dict(edits or {}), dict(zip(names, args, strict=True)), constants, args, names)

    def call(*inputs: Any) -> Any:
        tell("checking", None)
        return op(*inputs, **constants)

    made = call(*args)
    seeds = [_seed(i, np.asarray(y)) for i, y in enumerate(made if isinstance(made, tuple) else (made,))]
    labels = [SEED if len(seeds) == 1 else f"{SEED}{i + 1}" for i in range(len(seeds))]
    for key in left:
        label, _, place = key.partition(".")
        if label not in labels:
            raise ConfigError(
                f"{name}: nothing is called {label!r} (there are {', '.join([*names, *constants, *labels])})"
            )
        _set(name, seeds[labels.index(label)], label, place, str((edits or {})[key]))
    check = check_entries(call, *args, seeds=seeds)
    return {
        "inputs": [
            {"name": label, "value": _plain(value), "shape": _shape(value), "kind": _kind(value)}
            | {"grad": _plain(grad), "difference": _plain(difference)}
            for label, value, grad, difference in zip(
                names, args, check.grads, check.differences, strict=True
            )
        ],
        "constants": [
            {"name": key, "value": _literal(value), "array": _array(value), "editable": _simple(value)}
            for key, value in constants.items()
        ],
        "outputs": [
            {"name": "y" if len(seeds) == 1 else f"y{i + 1}", "value": _plain(y), "shape": _shape(y)}
            | {"seed": _plain(v), "seed_name": label}
            for i, (y, v, label) in enumerate(zip(check.outputs, seeds, labels, strict=True))
        ],
        "error": check.error,
        "python": _program(op, names, args, constants, seeds),
    }


def _examples(op: Op) -> list[Example]:
    """Examples with few numbers, rounded to be read; an op that refuses the rounded ones shows them as they are."""
    small = [e for e in op.example(np.random.default_rng(0)) if sum(np.size(a) for a in e.args) <= MOST]
    return [_rounded(op, each) for each in small[:EXAMPLES]]


def _rounded(op: Op, example: Example) -> Example:
    args = tuple(np.round(a, 2) if getattr(a, "dtype", None) == np.float64 else a for a in example.args)
    sums = [np.allclose(np.sum(a, -1), 1) for a in example.args if _kind(a) == "float" and np.ndim(a)]
    return (
        example if any(sums) else Example(args, dict(example.kwargs))
    )  # rows of probabilities must sum to 1


def _edited(
    op: str,
    edits: dict[str, str],
    inputs: dict[str, Any],
    constants: dict[str, Any],
    args: list[Any],
    names: list[str],
) -> list[str]:
    """Apply edits to the inputs and constants; the keys that are neither remain."""
    left = []
    for key, text in edits.items():
        label, _, place = key.partition(".")
        if label in inputs:
            position = names.index(label)
            if inputs[label] is args[position]:  # an example is not to be changed
                args[position] = np.array(args[position])
            _set(op, args[position], label, place, text)
        elif label in constants and place and isinstance(constants[label], np.ndarray):
            constants[label] = np.array(constants[label])
            _set(op, constants[label], label, place, text)
        elif label in constants and not place and _simple(constants[label]):
            constants[label] = _value(op, label, text)
        else:
            left.append(key)
    return left


def _set(op: str, array: Any, label: str, place: str, text: str) -> None:
    try:
        number = float(text)
        at = int(place or "0")
        if not np.isfinite(number) or not 0 <= at < array.size:
            raise ValueError
        array.flat[at] = array.dtype.type(number)
    except (ValueError, OverflowError):
        rule = f"must be a finite number at a place from 0 to {array.size - 1}"
        raise ConfigError(f"{op}: {label}.{place} is {text[:40]!r} ({rule})") from None


def _value(op: str, label: str, text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ConfigError(
            f"{op}: {label} is {text[:40]!r} (must be a number, a tuple, True, False or None)"
        ) from None
    if not _simple(value):
        raise ConfigError(
            f"{op}: {label} is {text[:40]!r} (must be a number, a word, a tuple of numbers or None)"
        )
    return value


def _seed(index: int, y: Any) -> Any:
    """A gradient that arrives at an output: any numbers will do but equal ones, which hide mistakes."""
    return np.round(np.random.default_rng(100 + index).normal(size=y.shape), 2) if y.ndim else np.ones(())


def _argument_names(op: Op, count: int) -> list[str]:
    given = [p for p in inspect.signature(op.forward).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    names = [p.name for p in given if p.kind is not p.VAR_POSITIONAL]
    more = [p.name for p in given if p.kind is p.VAR_POSITIONAL]
    return (
        [*names, *(f"{more[0]}{i + 1}" for i in range(count - len(names)))][:count] if more else names[:count]
    )


def _defaults(op: Op) -> dict[str, Any]:
    """Constants that can be left out; those that are None stand for nothing."""
    given = [p for p in inspect.signature(op.forward).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return {
        p.name: p.default
        for p in given
        if p.default is not p.empty and p.default is not None and _simple(p.default)
    }


def _family(op: Op) -> str:
    return op.forward.__module__.split(".")[2]


def _about(op: Op) -> str:
    doc = inspect.getdoc(op.forward) or ""
    return doc.partition("\n")[0]


def _in_order(tag: str) -> tuple[str, int]:
    page, _, number = tag.partition(".")
    return page, int(number)


def _kind(value: Any) -> str:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return {"f": "float", "i": "int", "u": "int", "b": "bool"}.get(kind, "")


def _shape(value: Any) -> list[int] | None:
    return None if value is None else list(np.shape(value))


def _plain(value: Any) -> Any:
    return None if value is None else np.asarray(value).tolist()


def _array(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else None


def _simple(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(each, int | float) for each in value)
    return value is None or isinstance(value, bool | int | float | str)


def _literal(value: Any) -> str:
    """A value as it is written in a program."""
    if isinstance(value, np.ndarray):
        dtype = "" if value.dtype == np.float64 else f", dtype=np.{value.dtype}"
        if value.dtype == bool:
            dtype = ", dtype=bool"
        return f"np.array({value.tolist()!r}{dtype})"
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"np.{value.__name__}"
    return repr(value.item() if isinstance(value, np.generic) else value)


def _program(op: Op, names: list[str], args: list[Any], constants: dict[str, Any], seeds: list[Any]) -> str:
    inputs = [f"{name} = {_literal(value)}" for name, value in zip(names, args, strict=True)]
    usual = _defaults(op)
    chosen = {key: value for key, value in constants.items() if key not in usual or usual[key] != value}
    called = ", ".join([*names, *(f"{key}={_literal(value)}" for key, value in chosen.items())])
    given, upstream = ", ".join(names), ", ".join(map(_literal, seeds))
    return "\n".join(
        [
            "import numpy as np",
            "from chainrule import ops",
            "from chainrule.autograd import check_entries",
            "",
            *inputs,
            "",
            f"check = check_entries(lambda {given}: ops.{op.name}({called}), {given}, seeds=[{upstream}])",
            "print(*check.outputs)",
            "print(*check.grads)",
            'print(f"largest error against central differences: {check.error:.1e}")',
            "",
        ]
    )
