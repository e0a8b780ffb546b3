"""Small trainable additions to a frozen model: LoRA, adapters, prefixes of attention, soft prompts and rows of tokens.

LoRA and adapters start as nothing: the model computes what it did before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from chainrule import native, ops
from chainrule.autograd import Param, Tensor, no_grad
from chainrule.autograd.mode import mode
from chainrule.autograd.recording import Input, constant, settled, stays
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, GraphError, ShapeError
from chainrule.nn.activation import Activation
from chainrule.nn.activation import activation as get_activation
from chainrule.nn.dropout import Dropout
from chainrule.nn.embedding import Embedding
from chainrule.nn.init import Init, normal, parameter, xavier_uniform, zeros
from chainrule.nn.layer import Layer
from chainrule.nn.linear import Linear


def scale_of(rank: int, alpha: float | None) -> float:
    """α/r, by which the change of LoRA is multiplied; 1 without α"""
    return 1.0 if alpha is None else alpha / rank


class LoRALinear(Layer):
    """W x + b + (α/r) B A x: a frozen linear layer and a trained change of rank r.

    A ~ N(0, 1/r) and B = 0, so it starts as the frozen layer. `dropout` is that of the x which A reads. `merge` adds
    the change into W, for inference at no extra cost; `unmerge` takes it out again, to the bit.
    """

    lora_A: Any
    lora_B: Any

    def __init__(self, base: Linear, rank: int, alpha: float | None = None, *, dropout: float = 0.0) -> None:
        self.base = base.freeze()
        self.rank = rank
        self.scale = scale_of(rank, alpha)
        self.dropout = Dropout(dropout)
        self.before_merge: Array | None = None
        self._draw()

    def _draw(self) -> None:
        self.lora_A, self.lora_B = _pair(self.rank, *self.base.weight.shape)

    def factors(self) -> tuple[Tensor, Tensor]:
        """A (R, in) and B (out, R), without the scale"""
        return self.lora_A, self.lora_B

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in) -> (..., out)"""
        y = self.base(x)
        if self.before_merge is not None:
            return y
        A, B = self.factors()
        inside = ops.linear(self.dropout(x), A)  # (..., R): scaled here, where it is narrow
        return y + ops.linear(inside if self.scale == 1 else inside * self.scale, B)

    def change(self) -> Array:
        """(α/r) B A, the change of W: (out, in)"""
        with no_grad():
            A, B = (factor.numpy() for factor in self.factors())
        return B @ A * self.scale

    def merge(self) -> None:
        """Add the change into W. Unmerge before training on or saving: a merged W is another model's."""
        if self.before_merge is not None:
            raise GraphError("LoRALinear: already merged (unmerge first)")
        self.before_merge = self.base.weight.data.copy()
        self.base.weight.data += self.change()

    def unmerge(self) -> None:
        """Put W back."""
        if self.before_merge is None:
            raise GraphError("LoRALinear: not merged")
        self.base.weight.data = self.before_merge
        self.before_merge = None


class PackedLoRALinear(LoRALinear):
    """LoRA for a layer that holds several matrices, one above the other, as queries, keys and values: a pair for each.

    `rows` are the first row of each of these matrices and the one after its last, by name; what is not named does not
    change. `factors` are those of the whole: all A, and B with a block for each pair.
    """

    def __init__(
        self,
        base: Linear,
        rank: int,
        alpha: float | None = None,
        *,
        rows: Mapping[str, tuple[int, int]],
        dropout: float = 0.0,
    ) -> None:
        self.rows = dict(sorted(rows.items(), key=lambda item: item[1]))
        super().__init__(base, rank, alpha, dropout=dropout)

    def _draw(self) -> None:
        n_in = self.base.weight.shape[1]
        pairs = {name: _pair(self.rank, stop - start, n_in) for name, (start, stop) in self.rows.items()}
        self.lora_A = {name: A for name, (A, _) in pairs.items()}
        self.lora_B = {name: B for name, (_, B) in pairs.items()}

    def factors(self) -> tuple[Tensor, Tensor]:
        columns = []
        for name, (start, stop) in self.rows.items():
            B, end = self.lora_B[name], self.base.weight.shape[0]
            above, below = (constant(np.zeros((n, self.rank), B.dtype)) for n in (start, end - stop))
            columns.append(ops.concat(*(part for part in (above, B, below) if len(part)), axis=0))
        return ops.concat(*self.lora_A.values(), axis=0), ops.concat(*columns, axis=1)


def _pair(rank: int, n_out: int, n_in: int) -> tuple[Param, Param]:
    """A (r, in) and B (out, r) of a matrix"""
    if not 1 <= rank <= min(n_in, n_out):
        raise ConfigError(
            f"LoRALinear: rank {rank} for a matrix {(n_out, n_in)} (must be from 1 to its size)"
        )
    return parameter(partial(normal, std=1 / math.sqrt(rank)), (rank, n_in)), parameter(zeros, (n_out, rank))


class Adapter(Layer):
    """x + up(f(down(x))) through a narrow middle, with up = 0 at the start."""

    def __init__(self, dim: int, size: int, *, activation: str | Activation = "relu") -> None:
        self.down = Linear(dim, size, init=xavier_uniform)
        self.up = Linear(size, dim, init=zeros)
        self.activate = get_activation(activation)

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C)"""
        return x + self.up(self.activate(self.down(x)))


class Adapted(Layer):
    """A frozen layer followed by an adapter: `block.mlp = Adapted(block.mlp, Adapter(dim, 16))`."""

    def __init__(self, base: Layer, adapter: Adapter) -> None:
        self.base = base.freeze()
        self.adapter = adapter

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """the base layer's inputs -> its output (..., C), adapted"""
        return self.adapter(self.base(*args, **kwargs))


class KeyValuePrefix(Layer):
    """Learned keys and values before those of every text, which all its tokens see: `block.attn.prefix = ...`

    Attention layers apply it after norms and rotations. `heads` are those of keys and values, `size` the numbers of
    each. (Li and Liang 2021)
    """

    def __init__(self, length: int, heads: int, size: int, *, init: Init = normal) -> None:
        if min(length, heads, size) < 1:
            raise ConfigError(
                f"KeyValuePrefix: length {length}, heads {heads}, size {size} (must be at least 1)"
            )
        self.keys = parameter(init, (heads, length, size))
        self.values = parameter(init, (heads, length, size))

    @property
    def length(self) -> int:
        """Positions before the text."""
        return self.keys.shape[1]

    def forward(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """k (B, H, T, D), v (B, H, T, D) -> both with P positions more, (B, H, P + T, D)"""
        H, _, D = self.keys.shape
        if any(x.shape[1::2] != (H, D) for x in (k, v)):
            raise ShapeError(
                f"KeyValuePrefix: keys {k.shape}, values {v.shape} (must have {H} heads of {D} numbers)"
            )
        return _before(self.keys, k), _before(self.values, v)

    def visible(self, mask: Any) -> Any:
        """A mask of keys (..., S) -> (..., P + S), in which the prefix is seen"""
        if mask is None:
            return None
        if stays(mask) and mask.dtype == bool:
            seen = native.empty((*mask.shape[:-1], self.length + mask.shape[-1]), bool)
            native.kernels().prefixed_mask(seen, settled(mask), self.length)
            return Input(seen)  # filled anew by each replay
        before = [(0, 0)] * (np.ndim(mask) - 1) + [(self.length, 0)]
        return np.pad(mask, before, constant_values=np.asarray(mask).dtype == bool)


class SoftPrompt(Layer):
    """Learned rows before the embeddings of every text: `model.wte = SoftPrompt(model.wte, 20)`

    They take the first positions of the context; the model drops what it computes of them. (Lester et al. 2021)
    """

    def __init__(self, base: Embedding, length: int, *, init: Init = normal) -> None:
        if length < 1:
            raise ConfigError(f"SoftPrompt: length is {length} (must be at least 1)")
        self.base = base.freeze()
        self.prompt = parameter(init, (length, base.weight.shape[1]))
        self.length_before = length

    @property
    def weight(self) -> Param:
        """The table of tokens, which a tied head reads."""
        return self.base.weight

    def forward(self, ids: Array) -> Tensor:
        """ids (B, T) -> (B, P + T, C)"""
        return _before(self.prompt, self.base(ids))


class TokenRows(Embedding):
    """A frozen table of tokens, or a frozen head, of which a few rows learn: `model.wte = TokenRows(model.wte, [65])`

    They start as the table has them. What they learn is written into the table before it is read, so that all who read
    it see one matrix; `restore` puts back what was there.
    """

    def __init__(self, base: Embedding | Linear, tokens: Sequence[int]) -> None:
        n, size = base.weight.shape
        wrong = [token for token in tokens if not 0 <= token < n]
        if wrong or not len(tokens) or len(set(tokens)) < len(tokens):
            rule = f"must be different rows, from 0 to {n - 1}"
            raise ConfigError(f"TokenRows: tokens {', '.join(map(str, tokens)) or 'none'} ({rule})")
        self.base = base.freeze()
        self.tokens = np.array(tokens)
        self.token_rows = parameter(zeros, (len(self.tokens), size))
        self.before: Array | None = (
            None  # what the table had there, once it is written to: a replay writes again
        )
        if self._is_there():
            self.token_rows.array[...] = base.weight.array[self.tokens]

    def _is_there(self) -> bool:
        """The table has numbers, not only a shape."""
        return type(self.base.weight.array) is np.ndarray

    def table(self) -> Param:
        """The matrix, with the rows as they are now."""
        table, rows = self.base.weight, self.token_rows.array
        recorded = mode.recording is not None
        if self._is_there() and (recorded or not np.array_equal(table.array[self.tokens], rows)):
            if self.before is None:
                self.before = table.array[self.tokens]
            if recorded:
                native.kernels().put_rows(table.array, rows, constant(self.tokens))
            else:
                table.array[self.tokens] = rows
        return table

    def restore(self) -> None:
        """Put back the rows that the table had."""
        if self.before is not None:
            self.base.weight.array[self.tokens] = self.before

    @property
    def weight(self) -> Any:  # type: ignore[override]
        """The table, whose gradient is that of the rows alone."""
        table = self.table()
        learns = mode.grad and self.token_rows.requires_grad
        return ops.put_rows(table, self.token_rows, ids=self.tokens, placed=True) if learns else table

    def forward(self, ids: Array) -> Tensor:
        """ids (...) integers -> (..., dim)"""
        return ops.embedding(self.weight, ids=ids)


def _before(rows: Param, x: Tensor) -> Tensor:
    """rows (..., P, C) before those of each text of x (B, ..., T, C)"""
    return ops.concat(ops.broadcast_to(rows, shape=(x.shape[0], *rows.shape)), x, axis=x.ndim - 2)
