"""Our side of kernels.py."""

from __future__ import annotations

import numpy as np

import chainrule as cr
from benchmarks.harness import resident_mb
from benchmarks.peers.kernels import Call, matmul_factors, normal, serve_kernels, token_ids, worker_arguments
from chainrule import native

IMPORTED = resident_mb()


def op_call(name: str, *arrays: np.ndarray, **constants: object) -> Call:
    """The two passes of an op, with the gradient of every array, as the tape calls them."""
    op = getattr(cr.ops, name)
    needs = (True,) * len(arrays)
    dy = np.asarray(normal(*np.shape(op.run_forward(arrays, constants)[0])))

    def call() -> None:
        _, saved = op.run_forward(arrays, constants)
        op.run_backward(dy, saved, needs)

    return call


def matmul(kernel: str, *sizes: int) -> Call:
    a, b = matmul_factors(kernel, *sizes)
    out = native.empty((a.shape[0], b.shape[1]))
    return lambda: native.matmul(a, b, out=out)


def adamw(n: int) -> Call:
    parameters = cr.autograd.Parameters([("w", cr.Param(normal(n // 1000, 1000)))])
    parameters.grad[...] = 1e-3
    return cr.optim.AdamW(parameters, 3e-4).step


def recurrent(kernel: str, B: int, T: int, C: int, H: int) -> Call:
    layer = getattr(cr.nn, kernel.upper())(C, H)
    parameters = layer.parameters()
    x = cr.Tensor(normal(B, T, C), requires_grad=True)

    def call() -> None:
        parameters.zero_grad()
        y = layer(x)
        (y[0] if isinstance(y, tuple) else y).sum().backward()

    return call


def three_ops(n: int) -> Call:
    x = cr.Tensor(np.ones(n, np.float32), requires_grad=True)

    def call() -> None:
        x.zero_grad()
        (x * 2.0).tanh().sum().backward()

    return call


def make(kernel: str, sizes: tuple[int, ...]) -> Call:
    if kernel.startswith("matmul"):
        return matmul(kernel, *sizes)
    if kernel in ("lstm", "gru"):
        return recurrent(kernel, *sizes)
    if kernel in ("adamw", "three_ops"):
        return {"adamw": adamw, "three_ops": three_ops}[kernel](*sizes)
    n_inputs = {"attention": 3, "swiglu": 2}.get(kernel, 1)
    inputs, constants = [normal(*sizes) for _ in range(n_inputs)], {}
    if kernel == "attention":
        constants["causal"] = True
    elif kernel == "cross_entropy":
        constants["targets"] = token_ids(*sizes)
    elif kernel == "embedding":
        constants["ids"] = token_ids(4096, sizes[0])
    elif kernel in ("layernorm", "rmsnorm"):
        inputs += [normal(sizes[1])] * (2 if kernel == "layernorm" else 1)
    return op_call(kernel, *inputs, **constants)


def main() -> None:
    cr.set_threads(worker_arguments(__doc__).parse_args().threads)
    serve_kernels(make, IMPORTED)


if __name__ == "__main__":
    main()
