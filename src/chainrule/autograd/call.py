"""The arguments of a call: turned into arrays, and named in errors. Shared by ops and by functions made of ops."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.recording import Input
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Results, is_float
from chainrule.calls import misfit
from chainrule.errors import ChainruleError, ConfigError, ShapeError

FLOAT32 = np.dtype(np.float32)  # nearly always this very object, so `is` is tried before `==`

# What NumPy and Python raise for arguments that do not fit. A FloatingPointError is asked for by the caller.
FOREIGN = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, ZeroDivisionError)


def signature(forward: Callable[..., Any]) -> inspect.Signature:
    """The signature of an op: Tensors by position, as the arrays of its `forward`, and constants by name."""
    plain = inspect.signature(forward, eval_str=True)
    taken = [
        p.replace(kind=p.POSITIONAL_ONLY, annotation=_tensors(p.annotation))
        if p.kind is p.POSITIONAL_OR_KEYWORD
        else p.replace(annotation=Tensor)
        if p.kind is p.VAR_POSITIONAL
        else p
        for p in plain.parameters.values()
    ]
    several = plain.return_annotation == Results
    return plain.replace(parameters=taken, return_annotation=tuple[Tensor, ...] if several else Tensor)


def _tensors(annotation: Any) -> Any:
    return Tensor | None if annotation == Array | None else Tensor


def operands(args: Sequence[Any], name: str, integers: bool) -> list[Any]:
    """Arguments as arrays of numbers whose dtypes fit together.

    A Python number takes the float dtype of the arrays beside it. Where an op gives `integers`, a Python integer beside
    integers alone stays one: ids + 1 are ids.
    """
    kinds = [a.dtype for a in args if isinstance(a, np.ndarray | np.floating | np.integer)]
    float_kind = next((kind for kind in kinds if kind.kind == "f"), None)
    whole = [kind for kind in kinds if kind.kind in "iu"] if integers and float_kind is None else []

    def kind_of(value: Any) -> np.dtype[Any]:
        if whole and isinstance(value, int | np.integer) and not isinstance(value, bool):
            kind = np.result_type(*whole, np.min_scalar_type(value))  # wide enough for it too
            return kind if kind.kind in "iu" else FLOAT32
        return float_kind or FLOAT32

    return as_floats([a if a is None else as_array(a, name, kind_of(a)) for a in args], integers)


def as_array(value: Any, name: str, dtype: Any = FLOAT32) -> Array:
    if isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, Input):
        array = value.values
    else:
        try:
            array = np.asarray(value, dtype=dtype)
        except (*FOREIGN, RecursionError) as error:
            if isinstance(error, ChainruleError):
                raise
            raise ConfigError(f"{name}: got {short(value)} as an operand (must be numbers)") from error
    if array.dtype.kind not in "fiub":
        raise ConfigError(f"{name}: got an array of dtype {array.dtype} (must be numbers)")
    return array


def as_floats(arrays: list[Any], integers: bool) -> list[Any]:
    """Integers and booleans beside floats become floats of the same dtype: x * mask stays float32.

    Without floats beside them they stay as they are, or become float32 where an op takes no `integers`.
    """
    kinds = {a.dtype for a in arrays if a is not None and is_float(a)}
    if not kinds and not integers:
        kinds = {FLOAT32}
    if not kinds or all(a is None or is_float(a) for a in arrays):
        return arrays
    return [a if a is None or is_float(a) else a.astype(next(iter(kinds))) for a in arrays]


def check_dtypes(name: str, args: Sequence[Any]) -> None:
    """Refuse float64 beside a float32 parameter: NumPy would compute in float64 from there on, without a word."""
    floats = [a for a in args if isinstance(a, Tensor | np.ndarray) and a.dtype.kind == "f" and a.size > 1]
    learned = next((a for a in floats if getattr(a, "decay", None) is not None), None)  # a Param
    if learned is None:
        return
    for other in floats:
        if other.dtype != learned.dtype:
            fix = f"x.astype(np.{learned.dtype}), or model.to(np.{other.dtype})"
            what = f"an input of shape {other.shape} is {other.dtype}"
            raise ConfigError(f"{name}: {what}, the parameter {learned.dtype} (must be equal: {fix})")


def unpacked(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a variadic function that may be given as one list."""
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else args


def explained(
    error: Exception, name: str, taken: inspect.Signature, args: Sequence[Any], constants: Mapping[str, Any]
) -> ChainruleError:
    """An error of NumPy or Python in a call, as one line that names the function and its arguments."""
    if wrong := misfit(name, taken, args, constants):
        return wrong
    if any(a is None for a in args) and isinstance(error, TypeError | AttributeError):
        return ConfigError(f"{name}: an operand is None (must be an array)")
    given = ", ".join(f"{key}={short(value)}" for key, value in constants.items())
    shapes = ", ".join(str(a.shape) if hasattr(a, "shape") else short(a) for a in args)
    if isinstance(error, TypeError | AttributeError | OverflowError) and given:
        return ConfigError(f"{name}: cannot take shapes {shapes} with {given} ({_reason(error)})")
    return ShapeError(
        f"{name}: cannot take shapes {shapes}{' with ' if given else ''}{given} ({_reason(error)})"
    )


def _reason(error: Exception) -> str:
    if "incompatible function arguments" in str(error):  # a kernel's own text is a page long
        return "a constant has the wrong type"
    return re.sub(r"\s+", " ", str(error)) or type(error).__name__


def short(value: Any) -> str:
    """A value in a message: one line, not too long."""
    if isinstance(value, Tensor | np.ndarray):
        return f"an array of shape {value.shape}"
    text = re.sub(r"\s+", " ", repr(value))
    return text if len(text) <= 60 else text[:57] + "..."
