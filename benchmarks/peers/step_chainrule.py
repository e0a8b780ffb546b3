"""Our side of steps.py: a worker that makes training steps of a GPT. Those of lora.py and dpo.py are made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.harness import resident_mb
from benchmarks.peers.steps import SIZES, serve_steps, windows, worker_arguments


def worker(
    description: str | None,
    prepared: Callable[[Any, Any], Any] = lambda cr, gpt: gpt,
    batches: Callable[[Any, str], Iterator[tuple[Any, Any]]] | None = None,
    *,
    lr: float = 3e-4,
    weight_decay: float = 0.1,
) -> None:
    """Serve steps of what is `prepared` of a new GPT, on inputs and targets of `batches`, for a config."""
    args = worker_arguments(description).parse_args()
    import chainrule as cr
    from chainrule.models.microbatch import Batch

    imported = resident_mb()
    cr.set_threads(args.threads)
    cr.seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    size = {"n_layer": L, "n_head": H, "n_embd": C, "block_size": T, "vocab_size": V}
    model = prepared(cr, cr.models.GPT(cr.models.GPTConfig(**size, activation="gelu_tanh")))
    parameters = model.parameters()
    optimizer = cr.optim.AdamW(parameters, lr, (0.9, 0.95), weight_decay=weight_decay)
    given = (batches or next_words)(cr, args.config)
    compiled = cr.compile(model)

    def step() -> None:
        batch = Batch(*next(given))
        with cr.precision(args.dtype), parameters.replaced():
            compiled.backward(batch)  # as the trainer does
        norm = cr.optim.global_norm(parameters)
        optimizer.step(scale=cr.optim.clip_factor(norm, 1.0))

    serve_steps(step, args.config, imported)


def next_words(cr: Any, config: str) -> Iterator[tuple[Any, Any]]:
    """Windows, and what follows each token."""
    batch = windows(config)
    while True:
        ids = batch()
        yield ids[:, :-1], ids[:, 1:]


if __name__ == "__main__":
    worker(__doc__)
