"""Op: a forward and a backward over plain arrays, made callable.

    y, saved = forward(*inputs, **constants)        positional arguments are differentiable, keywords are constants
    dinputs  = backward(dy, saved, needs)           one gradient per positional argument

Called with arrays an op only computes; called with Tensors it records itself on the tape.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from chainrule import native
from chainrule.autograd.call import FLOAT32, FOREIGN, check_dtypes, explained, operands, signature, unpacked
from chainrule.autograd.deferred import ValueAndGrad, defer
from chainrule.autograd.mode import mode, scope
from chainrule.autograd.recording import check_views, contiguous, fail, locked
from chainrule.autograd.tape import record
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.types import Array, Grads, Needs, Saved, Work, is_float
from chainrule.calls import renamed, shown
from chainrule.errors import ChainruleError

Forward: TypeAlias = Callable[..., tuple[Any, Saved]]
Backward: TypeAlias = Callable[[Any, Saved, Needs], Grads]
Cost: TypeAlias = Callable[..., Work]  # (needs, *inputs, **constants); needs only shapes


@dataclass(frozen=True)
class Example:
    """Inputs on which the test battery runs an op."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


Examples: TypeAlias = Callable[[np.random.Generator], Iterable[Example]]


class Recorder(Protocol):
    """Receives every call while a model is traced on abstract values."""

    def opened(
        self, args: tuple[Any, ...], constants: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]: ...

    def add(
        self, op: Op, name: str, args: tuple[Any, ...], constants: dict[str, Any], results: list[Any]
    ) -> list[Any]: ...


@dataclass(eq=False, repr=False)
class Op:
    """One differentiable operation.

    `native` is a pair of functions with the signatures of `forward` and `backward` and the same `saved`; it serves
    float32 C-contiguous arrays, with `strided` float32 arrays of any strides. `composed` builds the same result from
    smaller ops, for fused operations. `recompute` takes the inputs out of `saved`: the op is cheap, so backward
    recomputes a large output instead of keeping it. `value_and_grad` computes both in one pass; the call is then
    deferred until backward, or until its value is read. `keep` takes out of `saved` what backward needs for the
    gradients that are wanted: the input of a frozen matrix is not. `abstract` is `forward` on shapes alone, for
    tracing; `cost` counts the matmuls. With `integers` an op of integers gives integers; without it takes them as
    float32. With `views` the op only moves numbers: `forward` and `backward` take views, or copy by kernels while a
    step is recorded, whatever the values are.
    """

    name: str
    forward: Forward
    backward: Backward
    example: Examples
    _: KW_ONLY
    composed: Callable[..., Any] | None = None
    native: tuple[Forward, Backward] | None = None
    strided: bool = False
    recompute: Callable[[Saved], Sequence[Array]] | None = None
    value_and_grad: ValueAndGrad | None = None
    keep: Callable[[Saved, Needs], Saved] | None = None
    abstract: Forward | None = None
    cost: Cost | None = None
    integers: bool = False
    views: bool = False
    nested: ClassVar[bool] = False  # its backward is plain arithmetic

    def __post_init__(self) -> None:
        kinds = [p.kind for p in inspect.signature(self.forward).parameters.values()]
        self.arity = kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.__name__ = self.name
        self.__doc__ = self.forward.__doc__

    def __repr__(self) -> str:
        return f"<op {shown(self.name, self.__signature__)}>"

    # For a type checker one Tensor: arrays give arrays and several outputs a tuple, as the stub of chainrule.ops says.
    def __call__(self, *args: Any, **constants: Any) -> Tensor:
        if "dim" in constants and "axis" in self.__signature__.parameters:
            constants = renamed(self.name, constants)
        if len(args) < self.arity:  # an omitted optional argument (a bias) is None in both passes
            args += (None,) * (self.arity - len(args))
        if mode.trace is not None:
            args, constants = mode.trace.opened(args, constants)
        if mode.interventions and self._opened():
            return self._in_parts(args, constants)
        arrays: list[Any] = []
        wanted: list[bool] = []
        grad, tensors, plain, numbers = mode.grad, False, True, False
        for arg in args:
            if isinstance(arg, Tensor):
                tensors = True
                wanted.append(grad and arg.requires_grad)
                arg = arg.array
            else:
                wanted.append(False)
            if type(arg) is float:
                numbers = True
            elif arg is not None and not (type(arg) is np.ndarray and arg.dtype is FLOAT32):
                plain = False
            arrays.append(arg)
        if not plain:
            arrays = self._floats(arrays, args)
        elif numbers:  # beside float32 alone
            arrays = [np.asarray(a, FLOAT32) if type(a) is float else a for a in arrays]
        needs, recorded = tuple(wanted), True in wanted
        if recorded and self.value_and_grad and not (mode.captures or mode.interventions or mode.trace):
            waiting = self._called(self.value_and_grad.prepare, arrays, constants)
            if waiting is not None:
                return defer(self, self._name(), args, waiting, needs, arrays[0].dtype)
        outputs, saved = self.run_forward(arrays, constants)
        single = not isinstance(outputs, tuple)
        values = [np.asarray(y) for y in ((outputs,) if single else outputs)]
        name = self._name()

        results: list[Any]
        if recorded:
            kept = saved if self.keep is None else self.keep(saved, needs)
            entry = record(self, name, args, values, single, kept, needs, constants)
            results = [Tensor.recorded(y, entry, i) for i, y in enumerate(values)]
        elif tensors:
            results = [Tensor.wrap(y) for y in values]
        else:
            results = values
        if mode.interventions or mode.captures:
            results = self._seen(name, args, results, saved, single)
        if mode.trace is not None:
            results = mode.trace.add(self, name, args, constants, results)
        returned: Any = results[0] if single else tuple(results)
        return returned  # type: ignore[no-any-return]

    def _opened(self) -> bool:
        """True if an intervention changes a part of this call."""
        name = self._name()
        return self.composed is not None and any(each.opens(self.name, name) for each in mode.interventions)

    def _in_parts(self, args: tuple[Any, ...], constants: dict[str, Any]) -> Tensor:
        """The composition in place of the fused op; the names of its parts begin with the name of this call."""
        assert self.composed is not None
        with scope(self.name):
            outputs = self.composed(*args, **constants)
        single = not isinstance(outputs, tuple)
        results = self._seen(self._name(), args, [outputs] if single else list(outputs), (), single)
        returned: Any = results[0] if single else tuple(results)
        return returned  # type: ignore[no-any-return]

    def _seen(
        self, name: str, args: tuple[Any, ...], results: list[Any], saved: Saved, single: bool
    ) -> list[Any]:
        """The results as interventions change them, shown to the captures."""
        for each in mode.interventions:
            results = each.changed(name, results, single)
        tensors = tuple(r for r in results if isinstance(r, Tensor))
        values = tuple(r.array if isinstance(r, Tensor) else r for r in results)
        for capture in mode.captures:
            capture.add(name, args, values, saved, tensors)
        return results

    def _floats(self, arrays: list[Any], args: tuple[Any, ...]) -> list[Any]:
        """The arguments as arrays of dtypes that fit together."""
        check_dtypes(self.name, args)
        return operands(arrays, self.name, self.integers)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        return signature(self.forward)

    def _name(self) -> str:
        return f"{mode.scope}.{self.name}" if mode.scope else self.name

    def run_forward(self, arrays: Sequence[Array | None], constants: dict[str, Any]) -> tuple[Any, Saved]:
        """The forward pass on arrays, native if possible; on shapes alone in a trace."""
        forward = self.forward
        if mode.trace is not None and self.abstract is not None:
            forward = self.abstract
        elif self.native and self._native_serves(arrays, integers=False):
            forward = self.native[0]
        found: tuple[Any, Saved] = self._called(forward, arrays, constants)
        if mode.recording is not None and forward is self.forward:
            self._check_views(self.name, found[0] if isinstance(found[0], tuple) else (found[0],), arrays)
        return found

    def _called(
        self, function: Callable[..., Any], arrays: Sequence[Array | None], constants: dict[str, Any]
    ) -> Any:
        """function(*arrays, **constants), with errors that name the op and its arguments"""
        try:
            return function(*arrays, **constants)
        except ChainruleError:
            raise
        except FOREIGN as error:
            raise explained(error, self.name, self.__signature__, arrays, constants) from error

    def run_backward(self, dy: Any, saved: Saved, needs: Needs) -> Grads:
        """The backward pass on arrays, native if possible."""
        if mode.recording is not None:  # kernels only read them; what NumPy does in place is not seen
            dy = tuple(map(locked, dy)) if isinstance(dy, tuple) else locked(dy)
        if self.native and self._native_serves(saved):
            if not self.strided:
                dy = tuple(map(contiguous, dy)) if isinstance(dy, tuple) else contiguous(dy)
            if self._native_serves(dy if isinstance(dy, tuple) else (dy,)):
                return self.native[1](dy, saved, needs)
        grads = self.backward(dy, saved, needs)
        if mode.recording is not None:
            self._check_views(f"backward of {self.name}", grads, dy if isinstance(dy, tuple) else (dy,))
        return grads

    def _check_views(self, name: str, outputs: Iterable[Any], inputs: Iterable[Any]) -> None:
        """What NumPy computes cannot be repeated. An output may be its input and yet depend on the values: an op that
        only takes views must say so."""
        if self.views:
            check_views(name, outputs, inputs)
        else:
            fail(f"{name} is computed by NumPy")

    def run_value_and_grad(self, dy: Array | None, saved: Saved, needs: Needs) -> tuple[Any, Grads]:
        """A deferred value and its gradients on arrays, native if possible; without dy the value alone."""
        assert self.value_and_grad is not None
        _, reference, native = self.value_and_grad
        if self._native_serves(saved):
            return native(dy, saved, needs)
        fail(f"{self.name} is computed by NumPy")
        return reference(dy, saved, needs)

    def _native_serves(self, arrays: Iterable[Any], integers: bool = True) -> bool:
        """True if kernels take these arrays; `integers` may be among what was saved, not among inputs."""
        if mode.backend != "native" or not native.available():
            return False
        for a in arrays:
            if not isinstance(a, np.ndarray):
                if isinstance(a, np.floating):  # NumPy turns arrays without axes into numbers
                    return False
            elif a.dtype is FLOAT32 or a.dtype == FLOAT32:
                if not (self.strided or a.flags.c_contiguous):
                    return False
            elif is_float(a) or not integers:
                return False
        return True


class VariadicOp(Op):
    """An op of any number of arrays, which may also be given as one list: `concat(a, b)` or `concat([a, b])`."""

    def __call__(self, *args: Any, **constants: Any) -> Tensor:
        return super().__call__(*unpacked(args), **constants)
