"""Edits: changes of a forward pass in the words of the field, for any model: ablate heads, set patterns, patch, steer.

An edit finds its calls in the sites of a model; `cr.intervene` applies it. What is not here is a function of one's own:
wherever edits are taken, `{"h.0.mlp.gelu": f}` will do too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chainrule.autograd import intervene
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, ShapeError, kind_of
from chainrule.inspect.inside.checks import check_network, floats, number, numbers
from chainrule.inspect.inside.parts import Attention
from chainrule.inspect.inside.sites import Sites, sites
from chainrule.models.seq2seq.encoder_decoder import EncoderDecoder
from chainrule.nn import Layer

Change: TypeAlias = Callable[[Any], Any]
Numbers: TypeAlias = int | Sequence[int]


@dataclass(frozen=True)
class Edit:
    """Base of the edits: a subclass says which calls it changes, and how."""

    block: str | int
    """By name (`h.3`) or by number."""

    def changes(self, sites: Sites) -> dict[str, Change]:
        raise NotImplementedError


Edits: TypeAlias = Edit | Mapping[str, Any] | Sequence[Edit | Mapping[str, Any]] | None


def changes(edits: Edits, sites: Sites) -> dict[str, Change]:
    """What `cr.intervene` takes; several edits of one call follow each other."""
    found: dict[str, Any] = {}
    listed: Sequence[Any] = edits if isinstance(edits, list | tuple) else [] if edits is None else [edits]
    for edit in listed:
        if not isinstance(edit, Edit | Mapping):
            raise ConfigError(
                f"inspect: got {kind_of(edit)} (must be an edit or a dict of functions by name)"
            )
        for name, change in (edit.changes(sites) if isinstance(edit, Edit) else edit).items():
            found[name] = _both(found[name], change) if name in found else change
    return found


def _both(first: Any, second: Any) -> Any:
    def change(y: Any) -> Any:
        z = first(y) if callable(first) else first
        z = y if z is None else z
        found = second(z) if callable(second) else second
        return z if found is None else found

    return change


@dataclass(frozen=True)
class ZeroHeads(Edit):
    """Some heads of a block add nothing.

    >>> import chainrule as cr
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> before = cr.inspect.view(model, [1, 2, 3])
    >>> after = cr.inspect.view(model, [1, 2, 3], cr.inspect.ZeroHeads("h.0", 1))
    >>> bool((before.logits != after.logits).any())
    True
    """

    heads: Numbers
    cross: bool = False
    """Of the attention to a source."""

    def changes(self, sites: Sites) -> dict[str, Change]:
        attention = sites.attending(self.block, self.cross)
        return {attention.call: lambda y: y * (1 - _chosen(attention, self.heads, y))}


@dataclass(frozen=True)
class MeanHeads(ZeroHeads):
    """Some heads of a block add the same at every position: their mean over the text, or `means` (H, D)."""

    means: npt.ArrayLike | None = None

    def changes(self, sites: Sites) -> dict[str, Change]:
        attention = sites.attending(self.block, self.cross)

        def change(y: Any) -> Any:
            chosen = _chosen(attention, self.heads, y)
            mean = y.mean(axis=-2, keepdims=True) if self.means is None else self._given(attention, y)
            return y * (1 - chosen) + mean * chosen

        return {attention.call: change}

    def _given(self, attention: Attention, y: Any) -> Array:
        means = floats("means", self.means, y.dtype)
        size = y.shape[-1] // attention.heads if attention.packed else y.shape[-1]
        if means.shape != (attention.heads, size):
            raise ShapeError(f"inspect: means {means.shape} of heads (must be {(attention.heads, size)})")
        return _of_heads(attention, means, y)


def _chosen(attention: Attention, heads: Numbers, y: Any) -> Array:
    """1 for these heads and 0 for others, to be multiplied with the value of an attention call."""
    mask = np.zeros((attention.heads, 1), y.dtype)
    mask[numbers("head", heads, attention.heads, of=attention.call)] = 1
    return _of_heads(attention, mask, y)


def _of_heads(attention: Attention, rows: Array, y: Any) -> Array:
    """rows (H, D) or (H, 1) -> as they broadcast to a value (B, H, T, D), or (B, T, H D) if it is packed"""
    if not attention.packed:
        return rows[:, None]  # (H, 1, D)
    return np.broadcast_to(rows, (attention.heads, y.shape[-1] // attention.heads)).reshape(-1)


@dataclass(frozen=True)
class SetPattern(Edit):
    """The attention weights of a head are these (T, S), or what a function makes of them."""

    head: int
    pattern: npt.ArrayLike | Callable[[Array], npt.ArrayLike]
    cross: bool = False

    def changes(self, sites: Sites) -> dict[str, Change]:
        attention = sites.attending(self.block, self.cross)

        def change(A: Any) -> Any:
            head = number("head", self.head, attention.heads, of=attention.call)
            found = np.array(getattr(A, "array", A))  # (B, H, T, S)
            old = found[:, head]
            new = floats("a pattern", self.pattern(old) if callable(self.pattern) else self.pattern, A.dtype)
            if new.shape not in (old.shape, old.shape[1:]):
                raise ShapeError(f"inspect: a pattern {new.shape} for {old.shape[1:]} (must be equal)")
            found[:, head] = new
            return found

        return {attention.weights: change}


@dataclass(frozen=True)
class Patch(Edit):
    """The residual stream after a block is `value` (T, C) at some positions, such as that of another text."""

    value: npt.ArrayLike
    positions: Numbers | None = None
    """All, unless given."""
    part: str = "stream"
    """Or what the block's `attention`, `cross_attention` or `mlp` adds to it."""

    def changes(self, sites: Sites) -> dict[str, Change]:
        def change(y: Any) -> Any:
            rows = floats("a patch", self.value, y.dtype)
            at = _at(sites, self.positions, y)
            if (
                rows.shape[-1:] != y.shape[-1:]
                or rows.ndim < 2
                or rows.shape[-2] != y.shape[-2] - sites.before
            ):
                raise ShapeError(f"inspect: a patch {rows.shape} for {y.shape} (must be rows for each token)")
            full = np.zeros((*rows.shape[:-2], *y.shape[-2:]), y.dtype)
            full[..., sites.before :, :] = rows
            return y * (1 - at) + full * at

        return {patched_call(sites, self.block, self.part): of_first(change)}


def patched_call(sites: Sites, block: str | int, part: str) -> str:
    """The call whose value is the stream after a block, or what a part of it adds."""
    if part == "stream":
        return sites.stream(block)
    kinds = ("attention", "cross_attention", "mlp")
    if part not in kinds:
        raise ConfigError(f"inspect: part {part!r} (must be stream, {', '.join(kinds)})")
    name = sites.block(block).name
    found = [each.call for each in sites.parts if each.kind == part and each.sum.startswith(f"{name}.")]
    if not found:
        raise ConfigError(f"inspect: block {name} adds no {part} (must be a block that has one)")
    return found[0]


@dataclass(frozen=True)
class Steer(Edit):
    """A vector (C,) is added to the residual stream after a block, at some positions or all."""

    vector: npt.ArrayLike
    scale: float = 1.0
    positions: Numbers | None = None

    def changes(self, sites: Sites) -> dict[str, Change]:
        def change(y: Any) -> Any:
            push = floats("a vector", self.vector, y.dtype) * y.dtype.type(self.scale)
            if push.shape != y.shape[-1:]:
                raise ShapeError(f"inspect: a vector {push.shape} for a stream {y.shape} (must be (C,))")
            return y + push * _at(sites, self.positions, y)

        return {sites.stream(self.block): of_first(change)}


def of_first(change: Change) -> Change:
    """A change of the first output of a call: of a recurrent layer what the layer above reads, not its state."""

    def changed(y: Any) -> Any:
        return (change(y[0]), *y[1:]) if isinstance(y, tuple) else change(y)

    return changed


def _at(sites: Sites, positions: Numbers | None, y: Any) -> Array:
    """1 at these positions of y (B, T, C), 0 elsewhere: (T, 1); rows of a soft prompt are not counted"""
    rows = y.shape[-2]
    mask = np.zeros((rows, 1), y.dtype)
    if positions is None:
        mask[sites.before :] = 1
        return mask
    mask[sites.before + numbers("position", positions, rows - sites.before)] = 1
    return mask


@contextmanager
def edited(model: Layer, edits: Edits) -> Iterator[None]:
    """Inside, the model computes as the edits make it, also where it generates text.

    >>> import chainrule as cr, numpy as np
    >>> cr.seed(0)
    >>> model = cr.models.make("llama", n_layer=2, n_embd=32, n_hidden=64, block_size=16, vocab_size=10)
    >>> push = 100 * model.embed_tokens.weight.numpy()[7]                   # towards token 7
    >>> with cr.inspect.edited(model, cr.inspect.Steer("layers.1", push)):
    ...     cr.generate.generate(model, [1, 2, 3], 4, temperature=0.0).tolist()
    [7, 7, 7, 7]
    """
    check_network(model)
    some = np.zeros((1, 1), np.int64)
    found = changes(edits, sites(model, (some, some) if isinstance(model, EncoderDecoder) else some))
    with intervene(found):
        yield
