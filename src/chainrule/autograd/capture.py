"""Captures: read any intermediate value and its gradient by name while a model runs, without changing the model.

>>> import chainrule as cr
>>> x = cr.Tensor([1.0, 2.0], requires_grad=True)
>>> with cr.capture() as seen:
...     (x * 3.0).exp().sum().backward()
>>> seen["mul"].value, seen["exp"].grad
(array([3., 6.], dtype=float32), array([1., 1.], dtype=float32))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from chainrule.autograd.mode import mode, switched
from chainrule.autograd.types import Array, Saved
from chainrule.errors import GraphError

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor


@dataclass
class Captured:
    """One call of an op: its output, its saved arrays, and after backward the gradient of the output."""

    name: str
    values: tuple[Array, ...]
    saved: Saved
    grads: list[Array | None]

    @property
    def value(self) -> Array:
        return self.values[0]

    @property
    def grad(self) -> Array | None:
        return self.grads[0]


class Calls:
    """Names of single calls: the second call of `h.0.add` is `h.0.add#2`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def unique(self, name: str) -> str:
        """The name of one more call of `name`."""
        self.counts[name] += 1
        return name if self.counts[name] == 1 else f"{name}#{self.counts[name]}"


class Capture(Mapping[str, Captured]):
    """Captured calls by name: `h.0.mlp.gelu`; the second call of that name is `...gelu#2`."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        self.found: dict[str, Captured] = {}
        self.calls = Calls()

    def add(
        self,
        name: str,
        args: tuple[Any, ...],
        values: tuple[Array, ...],
        saved: Saved,
        tensors: tuple[Tensor, ...],
    ) -> None:
        """Record a call of an op with `args` and results `values`; `tensors` are the results on the tape."""
        if self.patterns and not any(fnmatchcase(name, pattern) for pattern in self.patterns):
            return
        unique = self.calls.unique(name)
        entry = Captured(unique, values, saved, [None] * len(values))
        self.found[unique] = entry
        for i, tensor in enumerate(tensors):
            if tensor.requires_grad:
                tensor.register_hook(lambda grad, i=i: entry.grads.__setitem__(i, grad))  # type: ignore[misc]

    def __getitem__(self, name: str) -> Captured:
        if name not in self.found:
            near = [other for other in self.found if name.split(".")[-1].split("#")[0] in other]
            hint = f"; there are {', '.join(near[:5])}" if near else ""
            raise GraphError(f"capture: nothing named {name!r} among {len(self.found)} captured calls{hint}")
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


C = TypeVar("C", bound=Capture)


def capture(*patterns: str) -> AbstractContextManager[Capture]:
    """Keep the values and gradients of every op called inside, or only of names that match a pattern (`*.attn.*`)."""
    return shown_to(Capture(patterns))


@contextmanager
def shown_to(seen: C) -> Iterator[C]:
    """Pass every op called inside to the given capture, such as one that keeps less."""
    with switched(mode, "captures", (*mode.captures, seen)):
        yield seen
