"""Single kernels, forward and backward, in this package or in PyTorch.

    python -m benchmarks.peers.kernels --lib chainrule --serve

After {"ready": true, "cases": [...]} each line "CASE N" on standard input times N calls of a case and prints
{"ms": [...]}. benchmarks/run.py runs both libraries in turn and puts the limits of the machine beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """What a case must do at least: floating-point operations, bytes to and from memory."""

    title: str
    chainrule: Callable[..., Call]
    torch: Callable[..., Call]
    sizes: tuple[int, ...]
    gflop: float = 0.0
    gigabytes: float = 0.0


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


# This package


def op_call(name: str, *arrays: np.ndarray, **constants: object) -> Call:
    """The two passes of an op, with the gradient of every array, as the tape calls them."""
    import chainrule as cr

    op = getattr(cr.ops, name)
    needs = (True,) * len(arrays)
    dy = None

    def call() -> None:
        nonlocal dy
        y, saved = op.run_forward(arrays, constants)
        dy = np.asarray(normal(*np.shape(y))) if dy is None else dy
        op.run_backward(dy, saved, needs)

    return call


def our_product(M: int, N: int, K: int, kind: str) -> Call:
    from chainrule import native

    a = normal(K, M).T if kind == "TN" else normal(M, K)
    b = normal(N, K).T if kind == "NT" else normal(K, N)
    out = native.empty((M, N))
    return lambda: native.matmul(a, b, out=out)


def our_adamw(n: int) -> Call:
    import chainrule as cr

    parameters = cr.autograd.Parameters([("w", cr.Param(normal(n // 1000, 1000)))])
    parameters.grad[...] = 1e-3
    optimiser = cr.optim.AdamW(parameters, 3e-4)
    return lambda: optimiser.step()


def our_sequence(kind: str, B: int, T: int, C: int, H: int) -> Call:
    import chainrule as cr

    layer = getattr(cr.nn, kind)(C, H)
    parameters = layer.parameters()
    x = cr.Tensor(normal(B, T, C), requires_grad=True)

    def call() -> None:
        parameters.zero_grad()
        y = layer(x)
        (y[0] if isinstance(y, tuple) else y).sum().backward()

    return call


# PyTorch


def torch_call(function: Callable[..., object], *arrays: np.ndarray) -> Call:
    import torch

    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    dy = None

    def call() -> None:
        nonlocal dy
        y = function(*leaves)
        dy = torch.randn_like(y) if dy is None else dy
        for leaf in leaves:
            leaf.grad = None
        y.backward(dy)

    return call


def torch_product(M: int, N: int, K: int, kind: str) -> Call:
    import torch

    a = torch.tensor(normal(K, M)).T if kind == "TN" else torch.tensor(normal(M, K))
    b = torch.tensor(normal(N, K)).T if kind == "NT" else torch.tensor(normal(K, N))
    out = torch.empty(M, N)
    return lambda: torch.mm(a, b, out=out)


def torch_adamw(n: int) -> Call:
    import torch

    parameter = torch.nn.Parameter(torch.randn(n))
    parameter.grad = torch.full((n,), 1e-3)
    optimiser = torch.optim.AdamW([parameter], 3e-4, fused=True)
    return optimiser.step


def torch_sequence(kind: str, B: int, T: int, C: int, H: int) -> Call:
    import torch

    layer = getattr(torch.nn, kind)(C, H, batch_first=True)
    x = torch.randn(B, T, C, requires_grad=True)

    def call() -> None:
        layer.zero_grad()
        layer(x)[0].sum().backward()

    return call


def F():
    import torch.nn.functional

    return torch.nn.functional


def ids(n: int, V: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, V, n)


def torch_ids(n: int, V: int):
    import torch

    return torch.tensor(ids(n, V))


CASES = {
    **{
        f"gemm-{kind}-{M}x{N}x{K}": Case(
            f"matrix product {kind} {M}×{N}×{K}",
            lambda M, N, K, kind=kind: our_product(M, N, K, kind),
            lambda M, N, K, kind=kind: torch_product(M, N, K, kind),
            (M, N, K),
            gflop=2e-9 * M * N * K,
        )
        for kind, M, N, K in [
            ("NT", 768, 384, 128),
            ("NN", 768, 128, 512),
            ("TN", 512, 128, 768),
            ("NT", 4096, 1536, 384),
            ("NN", 4096, 384, 1536),
            ("TN", 1536, 384, 4096),
            ("NT", 1024, 3072, 768),
            ("NN", 1024, 768, 3072),
            ("TN", 3072, 768, 1024),
            ("NT", 512, 50257, 768),
            ("NN", 512, 768, 50257),
            ("TN", 50257, 768, 512),
        ]
    },
    **{
        f"attention-{config}": Case(
            f"causal attention B{B} H{H} T{T} D{D}",
            lambda *s: op_call("attention", normal(*s), normal(*s), normal(*s), causal=True),
            lambda *s: torch_call(
                lambda q, k, v: F().scaled_dot_product_attention(q, k, v, is_causal=True),
                normal(*s),
                normal(*s),
                normal(*s),
            ),
            (B, H, T, D),
            gflop=7e-9 * B * H * T * T * D,
        )
        for config, B, H, T, D in [("b", 16, 6, 256, 64), ("a", 12, 4, 64, 32)]
    },
    "gelu-tanh": Case(
        "GELU (tanh) 4096×1536",
        lambda *s: op_call("gelu_tanh", normal(*s)),
        lambda *s: torch_call(lambda x: F().gelu(x, approximate="tanh"), normal(*s)),
        (4096, 1536),
        gigabytes=5 * 4e-9 * 4096 * 1536,
    ),
    "gelu-erf": Case(
        "GELU (erf) 4096×1536",
        lambda *s: op_call("gelu", normal(*s)),
        lambda *s: torch_call(lambda x: F().gelu(x), normal(*s)),
        (4096, 1536),
        gigabytes=5 * 4e-9 * 4096 * 1536,
    ),
    "swiglu": Case(
        "SwiGLU 4096×1536",
        lambda *s: op_call("swiglu", normal(*s), normal(*s)),
        lambda *s: torch_call(lambda g, u: F().silu(g) * u, normal(*s), normal(*s)),
        (4096, 1536),
        gigabytes=8 * 4e-9 * 4096 * 1536,
    ),
    "cross-entropy": Case(
        "softmax + cross-entropy 1024×50257",
        lambda N, V: op_call("cross_entropy", normal(N, V), targets=ids(N, V)),
        lambda N, V: torch_call(lambda x: F().cross_entropy(x, torch_ids(N, V)), normal(N, V)),
        (1024, 50257),
        gigabytes=3 * 4e-9 * 1024 * 50257,
    ),
    "softmax": Case(
        "softmax 4096×512",
        lambda *s: op_call("softmax", normal(*s)),
        lambda *s: torch_call(lambda x: x.softmax(-1), normal(*s)),
        (4096, 512),
        gigabytes=5 * 4e-9 * 4096 * 512,
    ),
    "layernorm": Case(
        "layer norm 4096×384",
        lambda R, C: op_call("layernorm", normal(R, C), normal(C), normal(C)),
        lambda R, C: torch_call(
            lambda x, g, b: F().layer_norm(x, (C,), g, b), normal(R, C), normal(C), normal(C)
        ),
        (4096, 384),
        gigabytes=5 * 4e-9 * 4096 * 384,
    ),
    "rmsnorm": Case(
        "RMS norm 4096×384",
        lambda R, C: op_call("rmsnorm", normal(R, C), normal(C)),
        lambda R, C: torch_call(lambda x, g: F().rms_norm(x, (C,), g), normal(R, C), normal(C)),
        (4096, 384),
        gigabytes=5 * 4e-9 * 4096 * 384,
    ),
    "embedding": Case(
        "embedding 50257×768, 4096 ids",
        lambda V, C: op_call("embedding", normal(V, C), ids=ids(4096, V)),
        lambda V, C: torch_call(lambda w: F().embedding(torch_ids(4096, V), w), normal(V, C)),
        (50257, 768),
    ),
    "adamw": Case("AdamW, 10 M parameters", our_adamw, torch_adamw, (10_000_000,), gigabytes=7 * 4e-9 * 1e7),
    **{
        f"{kind.lower()}-{name}": Case(
            f"{kind} B{B} T{T} {C}→{H}",
            lambda *s, kind=kind: our_sequence(kind, *s),
            lambda *s, kind=kind: torch_sequence(kind, *s),
            (B, T, C, H),
            gflop=6e-9 * gates * B * T * H * (C + H),
        )
        for kind, gates in (("LSTM", 4), ("GRU", 3))
        for name, B, T, C, H in (("large", 32, 128, 256, 512), ("small", 12, 64, 128, 128))
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lib", choices=["chainrule", "torch"], default="chainrule")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("cases", nargs="*", help="without --serve: the cases to time (all)")
    args = parser.parse_args()
    if args.lib == "torch":
        import torch

        torch.set_num_threads(args.threads)
    else:
        import chainrule as cr

        cr.set_threads(args.threads)
    if args.serve:
        print(json.dumps({"ready": True, "cases": list(CASES)}), flush=True)
        for line in sys.stdin:
            name, count = line.split()
            print(json.dumps({"ms": timed(args.lib, name, int(count))}), flush=True)
        return
    for name in args.cases or CASES:
        print(f"{CASES[name].title:40s} {min(timed(args.lib, name, 7)):9.3f} ms", flush=True)


def timed(lib: str, name: str, count: int) -> list[float]:
    case = CASES[name]
    call = getattr(case, lib)(*case.sizes)
    call()
    call()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e3)
    return times


if __name__ == "__main__":
    main()
