"""Small trainable additions to a frozen model: LoRA and bottleneck adapters.

Both start as nothing: the model computes what it did before.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, GraphError
from chainrule.nn.activation import Activation
from chainrule.nn.activation import activation as get_activation
from chainrule.nn.init import normal, parameter, xavier_uniform, zeros
from chainrule.nn.layer import Layer
from chainrule.nn.linear import Linear


class LoRALinear(Layer):
    """W x + b + (α/r) B A x: a frozen linear layer and a trained change of rank r.

    A ~ N(0, 1/r) and B = 0, so it starts as the frozen layer. `merge` adds the change into W, for inference
    at no extra cost; `unmerge` takes it out again, to the bit.
    """

    def __init__(self, base: Linear, rank: int, alpha: float | None = None) -> None:
        n_out, n_in = base.weight.shape
        if not 1 <= rank <= min(n_in, n_out):
            raise ConfigError(
                f"LoRALinear: rank {rank} for a matrix {base.weight.shape} (must be from 1 to its size)"
            )
        self.base = base.freeze()
        self.lora_A = parameter(partial(normal, std=1 / math.sqrt(rank)), (rank, n_in))
        self.lora_B = parameter(zeros, (n_out, rank))
        self.scale = 1.0 if alpha is None else alpha / rank
        self.before_merge: Array | None = None

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in) -> (..., out)"""
        y = self.base(x)
        if self.before_merge is not None:
            return y
        return y + ops.linear(ops.linear(x, self.lora_A), self.lora_B) * self.scale

    def change(self) -> Array:
        """(α/r) B A, the change of W: (out, in)"""
        return self.lora_B.data @ self.lora_A.data * self.scale

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
