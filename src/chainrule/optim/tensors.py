"""What an optimizer changes: the flat block of a model, a list of tensors, or groups with settings of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from chainrule.errors import ConfigError, kind_of
from chainrule.suggest import hinted
from chainrule.types import Array

GROUP_SETTINGS = ("lr", "weight_decay")
RULE = "must be tensors: model.parameters(), a list of tensors, or groups {'params': [...], 'lr': ...}"


# Values and gradients in one row each; where the optimizer keeps its state of them; whether they decay; the settings of
# their group, instead of the optimizer's own.
Piece: TypeAlias = tuple[Array, Array, slice, bool, Mapping[str, float]]


class Block(Protocol):
    """The interface of `chainrule.autograd.Parameters` that an optimizer uses."""

    data: Array
    grad: Array
    offsets: dict[int, int]

    def items(self) -> Iterable[tuple[str, Any]]: ...
    def kernels(self) -> Any: ...
    def pieces(self) -> Iterable[Piece]: ...
    def zero_grad(self) -> None: ...
    def changed(self) -> None: ...
    def moved(self) -> str: ...


class Leaf(Protocol):
    """What an optimizer uses of a Tensor."""

    array: Array
    grad: Array | None
    name: str
    version: int

    @property
    def requires_grad(self) -> bool: ...
    def zero_grad(self) -> None: ...


Learned: TypeAlias = Block | Iterable[Leaf] | Sequence[Mapping[str, Any]]


def as_block(owner: str, params: Learned, known: Iterable[str]) -> Block:
    """The block itself, or a list of tensors or groups as one; `known` are the settings of the optimizer."""
    if hasattr(params, "pieces"):
        return params  # type: ignore[return-value]
    given: Any = params
    if not isinstance(given, Iterable):
        raise ConfigError(f"{owner}: got {kind_of(given)} ({RULE})")
    listed: list[Any] = [given] if hasattr(given, "requires_grad") else list(given)
    if not listed:
        raise ConfigError(f"{owner}: got no parameters (must be at least one, such as model.parameters())")
    groups = [_group(owner, g, known) if isinstance(g, Mapping) else ([g], {}) for g in listed]
    tensors = [tensor for members, _ in groups for tensor in members]
    for tensor in tensors:
        if not hasattr(tensor, "requires_grad"):
            raise ConfigError(f"{owner}: got {kind_of(tensor)} among the parameters ({RULE})")
        if tensor.record is not None:
            raise ConfigError(
                f"{owner}: {tensor.name} is computed (must be a leaf: a Param, or a Tensor of your own)"
            )
    if len({id(tensor) for tensor in tensors}) < len(tensors):
        raise ConfigError(f"{owner}: a tensor is given twice (each must be in one group)")
    if len(kinds := {str(tensor.dtype) for tensor in tensors}) > 1:
        raise ConfigError(f"{owner}: parameters of dtypes {', '.join(sorted(kinds))} (must be equal)")
    return Tensors(groups)  # type: ignore[return-value]  # its rows are copies


def _group(owner: str, group: Mapping[str, Any], known: Iterable[str]) -> tuple[list[Any], dict[str, float]]:
    """The tensors of a group, and its settings."""
    if "params" not in group:
        raise ConfigError(f"{owner}: a group has no 'params' (must be {{'params': [...], 'lr': ...}})")
    allowed = [name for name in GROUP_SETTINGS if name in known]
    for name in group:
        if name != "params" and name not in allowed:
            rule = hinted(f"a group may have params, {', '.join(allowed)}", name, allowed)
            raise ConfigError(f"{owner}: {name!r} in a group ({rule})")
    given = {name: value for name, value in group.items() if name != "params"}
    for name, value in given.items():
        number = isinstance(value, int | float | np.integer | np.floating)
        if not number or not 0 <= value < np.inf:
            raise ConfigError(
                f"{owner}: {name} of a group is {value!r} (must be a finite number, at least 0)"
            )
    members, settings = group["params"], {name: float(value) for name, value in given.items()}
    return ([members] if hasattr(members, "requires_grad") else list(members)), settings


class Tensors:
    """Tensors where they are, each updated by itself; those without a gradient stay as they are."""

    def __init__(self, groups: list[tuple[list[Any], dict[str, float]]]) -> None:
        self.members = [(tensor, settings) for tensors, settings in groups for tensor in tensors]
        self.offsets: dict[int, int] = {}
        self.size = 0
        for tensor, _ in self.members:
            self.offsets[id(tensor)] = self.size
            self.size += tensor.size

    @property
    def data(self) -> Array:
        """All values in one row, a copy."""
        return _joined([tensor.array for tensor, _ in self.members])

    @property
    def grad(self) -> Array:
        """All gradients in one row, a copy; zeros where there is none."""
        return _joined([np.zeros_like(t.array) if t.grad is None else t.grad for t, _ in self.members])

    def items(self) -> Iterator[tuple[str, Any]]:
        """The tensors with their names; with numbers unless each has a name of its own."""
        names = [tensor.name for tensor, _ in self.members]
        if not all(names) or len(set(names)) < len(names):
            names = [str(i) for i in range(len(names))]
        return ((name, tensor) for name, (tensor, _) in zip(names, self.members, strict=True))

    def pieces(self) -> Iterator[Piece]:
        """Each tensor that has a gradient. In a group with a weight decay of its own all of them decay."""
        for tensor, settings in self.members:
            if tensor.requires_grad and tensor.grad is not None:
                start = self.offsets[id(tensor)]
                matrix = getattr(tensor, "decay", tensor.ndim >= 2)
                decays = bool(settings["weight_decay"]) if "weight_decay" in settings else matrix
                tensor.array, tensor.grad = _in_rows(tensor.array), _in_rows(tensor.grad)
                values, grads = tensor.array.reshape(-1), tensor.grad.reshape(-1)
                yield values, grads, slice(start, start + tensor.size), decays, settings

    def kernels(self) -> Any:
        """The C++ kernels, if all tensors lie in blocks that use them."""
        blocks = {id(t.block): t.block for t, _ in self.members}.values()
        found = [None if block is None else block.kernels() for block in blocks]
        return found[0] if found and None not in found else None

    def zero_grad(self) -> None:
        """Zero all gradients."""
        for tensor, _ in self.members:
            tensor.zero_grad()

    def changed(self) -> None:
        """Mark the values as changed, for pending backward passes."""
        for tensor, _ in self.members:
            tensor.version += 1

    def moved(self) -> str:
        """Nothing can move: the tensors are read where they are."""
        return ""


def _in_rows(array: Array) -> Array:
    """The array, or a copy of one in another order: `reshape` would give a copy, and changes of it would be lost."""
    return np.require(array, requirements=["C", "W"])


def _joined(arrays: list[Array]) -> Array:
    row = np.concatenate([array.reshape(-1) for array in arrays])
    row.setflags(write=False)
    return row
