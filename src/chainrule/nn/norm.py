"""Normalization layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.nn.init import ones, parameter, zeros
from chainrule.nn.layer import Layer
from chainrule.nn.linear import Linear
from chainrule.ops.neural.batchnorm import update_running_in_place


class LayerNorm(Layer):
    """Each row (token) to mean 0 and variance 1 over its features, then a learned gain and bias."""

    def __init__(self, dim: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        self.weight = parameter(ones, (dim,))
        self.bias = parameter(zeros, (dim,)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C)"""
        beta = constant(np.zeros_like(self.weight.array)) if self.bias is None else self.bias
        return ops.layernorm(x, self.weight, beta, eps=self.eps)


class RMSNorm(Layer):
    """Each row divided by its root mean square, then a learned gain: no mean, no bias.

    The gain is the weight plus `offset`, and begins as 1.
    """

    def __init__(self, dim: int, *, eps: float = 1e-6, offset: float = 0.0) -> None:
        self.weight = parameter(zeros if offset else ones, (dim,))
        self.eps = eps
        self.offset = offset

    def forward(self, x: Tensor) -> Tensor:
        """x (..., C) -> (..., C)"""
        gain = self.weight + self.offset if self.offset else self.weight
        return ops.rmsnorm(x, gain, eps=self.eps)


class BatchNorm(Layer):
    """Each feature to mean 0 and variance 1 over the batch; in evaluation by the running statistics instead.

    In training one example's output depends on its batch. The running mean and variance follow the batch
    statistics, r ← (1 - momentum) r + momentum · (statistic), with the biased variance. A linear layer
    before it needs no bias: the mean takes it out again, so its gradient is zero.
    """

    buffers = ("running_mean", "running_var")

    def __init__(self, dim: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        if not 0 <= momentum <= 1:
            raise ConfigError(f"BatchNorm: momentum is {momentum!r} (must be from 0 to 1)")
        self.weight = parameter(ones, (dim,))
        self.bias = parameter(zeros, (dim,))
        self.running_mean: Array = np.zeros(dim, np.float32)
        self.running_var: Array = np.ones(dim, np.float32)
        self.eps = eps
        self.momentum = momentum

    def forward(self, x: Tensor, *, rows: Any = None) -> Tensor:
        """x (..., C) -> (..., C); the batch are its first `rows` rows, an array (1,), unless all of them"""
        mean, var = self.running_mean, self.running_var
        if not self.training:
            return ops.batchnorm_eval(x, self.weight, self.bias, mean=mean, var=var, eps=self.eps)
        y, *batch = ops.batchnorm(x, self.weight, self.bias, eps=self.eps, rows=rows)
        update_running_in_place(mean, var, *(statistic.array for statistic in batch), momentum=self.momentum)
        return y

    def fold_into(self, linear: Linear) -> Linear:
        """One linear layer that does what `linear` and then this layer do in evaluation mode."""
        b = None if linear.bias is None else linear.bias.data
        norm = (self.weight.data, self.bias.data, self.running_mean, self.running_var)
        weight, bias = ops.fold_batchnorm(linear.weight.data, b, *norm, eps=self.eps)
        n_out, n_in = linear.weight.shape
        folded = Linear(n_in, n_out).to(weight.dtype)
        folded.load({"weight": weight, "bias": bias})
        return folded


class GroupNorm(Layer):
    """Each example to mean 0 and variance 1 over all positions and the features of one group."""

    def __init__(self, groups: int, dim: int, *, eps: float = 1e-5) -> None:
        if groups < 1 or dim % groups:
            raise ConfigError(f"{type(self).__name__}: {dim} features in {groups} groups (must divide)")
        self.weight = parameter(ones, (dim,))
        self.bias = parameter(zeros, (dim,))
        self.groups = groups
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x (B, ..., C) -> (B, ..., C)"""
        return ops.groupnorm(x, self.weight, self.bias, groups=self.groups, eps=self.eps)


class InstanceNorm(GroupNorm):
    """Each feature of each example to mean 0 and variance 1 over its positions: a group for each feature."""

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__(dim, dim, eps=eps)
