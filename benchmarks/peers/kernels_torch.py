"""The PyTorch side of kernels.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.harness import resident_mb
from benchmarks.peers.kernels import Call, matmul_factors, normal, serve_kernels, token_ids, worker_arguments

IMPORTED = resident_mb()


def op_call(function: Callable[..., Tensor], *arrays: np.ndarray) -> Call:
    """Forward and backward, with the gradient of every array."""
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    dy = torch.randn_like(function(*leaves))

    def call() -> None:
        y = function(*leaves)
        for leaf in leaves:
            leaf.grad = None
        y.backward(dy)

    return call


def matmul(kernel: str, *sizes: int) -> Call:
    a, b = map(torch.from_numpy, matmul_factors(kernel, *sizes))
    out = torch.empty(a.shape[0], b.shape[1])
    return lambda: torch.mm(a, b, out=out)


def adamw(n: int) -> Call:
    parameter = torch.nn.Parameter(torch.randn(n))
    parameter.grad = torch.full((n,), 1e-3)
    return torch.optim.AdamW([parameter], 3e-4, fused=True).step


def recurrent(kernel: str, B: int, T: int, C: int, H: int) -> Call:
    layer = getattr(torch.nn, kernel.upper())(C, H, batch_first=True)
    x = torch.randn(B, T, C, requires_grad=True)

    def call() -> None:
        layer.zero_grad()
        layer(x)[0].sum().backward()

    return call


def three_ops(n: int) -> Call:
    x = torch.ones(n, requires_grad=True)

    def call() -> None:
        x.grad = None
        (x * 2.0).tanh().sum().backward()

    return call


def make(kernel: str, sizes: tuple[int, ...]) -> Call:
    if kernel.startswith("matmul"):
        return matmul(kernel, *sizes)
    if kernel in ("lstm", "gru"):
        return recurrent(kernel, *sizes)
    if kernel in ("adamw", "three_ops"):
        return {"adamw": adamw, "three_ops": three_ops}[kernel](*sizes)
    C = sizes[-1]
    if kernel == "attention":
        qkv = (normal(*sizes) for _ in range(3))
        return op_call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *qkv)
    if kernel == "swiglu":
        return op_call(lambda gate, up: F.silu(gate) * up, normal(*sizes), normal(*sizes))
    if kernel == "layernorm":
        return op_call(lambda x, g, b: F.layer_norm(x, (C,), g, b), normal(*sizes), normal(C), normal(C))
    if kernel == "rmsnorm":
        return op_call(lambda x, g: F.rms_norm(x, (C,), g), normal(*sizes), normal(C))
    if kernel == "cross_entropy":
        targets = torch.tensor(token_ids(*sizes))
        return op_call(lambda x: F.cross_entropy(x, targets), normal(*sizes))
    if kernel == "embedding":
        ids = torch.tensor(token_ids(4096, sizes[0]))
        return op_call(lambda w: F.embedding(ids, w), normal(*sizes))
    one_input = {
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "gelu": F.gelu,
        "softmax": lambda x: x.softmax(-1),
    }
    return op_call(one_input[kernel], normal(*sizes))


def main() -> None:
    torch.set_num_threads(worker_arguments(__doc__).parse_args().threads)
    serve_kernels(make, IMPORTED)


if __name__ == "__main__":
    main()
