"""The JAX side of steps.py: the whole step, from loss to AdamW, jitted as one function whose old state is given up."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.harness import resident_mb
from benchmarks.peers.steps import SIZES, serve_steps, windows, worker_arguments

BETAS, EPS, WEIGHT_DECAY, LR, CLIP = (0.9, 0.95), 1e-8, 0.1, 3e-4, 1.0


def initial(L: int, C: int, T: int, V: int) -> dict[str, Any]:
    """Parameters as arrays, matrices as (in, out)."""
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return 0.02 * rng.standard_normal((rows, columns), dtype=np.float32)

    def norm() -> dict[str, np.ndarray]:
        return {"gamma": np.ones(C, np.float32), "beta": np.zeros(C, np.float32)}

    def linear(rows: int, columns: int) -> dict[str, np.ndarray]:
        return {"w": matrix(rows, columns), "b": np.zeros(columns, np.float32)}

    blocks = [
        {"ln_1": norm(), "c_attn": linear(C, 3 * C), "attn_proj": linear(C, C),
         "ln_2": norm(), "c_fc": linear(C, 4 * C), "mlp_proj": linear(4 * C, C)}
        for _ in range(L)
    ]  # fmt: skip
    return {"wte": matrix(V, C), "wpe": matrix(T, C), "blocks": blocks, "ln_f": norm()}


def loss_of(params: dict[str, Any], ids: Any, targets: Any, heads: int) -> Any:
    import jax
    import jax.numpy as jnp

    def norm(x: Any, at: dict[str, Any]) -> Any:
        return jax.nn.standardize(x, epsilon=1e-5) * at["gamma"] + at["beta"]

    def linear(x: Any, at: dict[str, Any]) -> Any:
        return x @ at["w"] + at["b"]

    x = params["wte"][ids] + params["wpe"]
    B, T, C = x.shape
    for block in params["blocks"]:
        q, k, v = jnp.split(linear(norm(x, block["ln_1"]), block["c_attn"]), 3, -1)
        q, k, v = (y.reshape(B, T, heads, C // heads) for y in (q, k, v))
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(B, T, C)
        x = x + linear(mixed, block["attn_proj"])
        x = x + linear(jax.nn.gelu(linear(norm(x, block["ln_2"]), block["c_fc"])), block["mlp_proj"])
    logits = norm(x, params["ln_f"]) @ params["wte"].T
    hit = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - hit).mean()


def update(
    params: Any, means: Any, squares: Any, step: Any, ids: Any, targets: Any, heads: int
) -> tuple[Any, ...]:
    import jax
    import jax.numpy as jnp

    loss, grads = jax.value_and_grad(loss_of)(params, ids, targets, heads)
    length = jnp.sqrt(sum((g * g).sum() for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, CLIP / (length + 1e-6)), grads)
    means = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, means, grads)
    squares = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, squares, grads)

    def moved(p: Any, m: Any, v: Any) -> Any:
        decay = WEIGHT_DECAY if p.ndim == 2 else 0.0
        direction = m / (1 - BETAS[0] ** step) / (jnp.sqrt(v / (1 - BETAS[1] ** step)) + EPS)
        return p * (1 - LR * decay) - LR * direction

    return jax.tree.map(moved, params, means, squares), means, squares, step + 1, loss


def worker(description: str | None) -> None:
    args = worker_arguments(description).parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.threads])  # XLA takes as many threads
    import jax
    import jax.numpy as jnp

    imported = resident_mb()
    L, H, C, T, _, V = SIZES[args.config]
    params = jax.tree.map(jnp.asarray, initial(L, C, T, V))
    state = params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), 1
    jitted = jax.jit(update, static_argnames="heads", donate_argnums=(0, 1, 2))
    batch = windows(args.config)

    def step() -> float:
        nonlocal state
        ids = batch()
        *state, loss = jitted(*state, ids[:, :-1], ids[:, 1:], heads=H)
        return float(loss)

    serve_steps(step, args.config, imported)


if __name__ == "__main__":
    worker(__doc__)
