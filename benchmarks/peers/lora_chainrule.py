"""Our side of lora.py: a worker that makes LoRA steps of a GPT."""

from __future__ import annotations

from benchmarks.harness import resident_mb
from benchmarks.peers.lora import RANK
from benchmarks.peers.steps import SIZES, serve_steps, windows, worker_arguments


def main() -> None:
    args = worker_arguments(__doc__).parse_args()
    import chainrule as cr
    from chainrule.models.gradient import backward
    from chainrule.models.microbatch import Batch

    imported = resident_mb()
    cr.set_threads(args.threads)
    cr.seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    size = {"n_layer": L, "n_head": H, "n_embd": C, "block_size": T, "vocab_size": V}
    model = cr.models.GPT(cr.models.GPTConfig(**size, activation="gelu_tanh"))
    cr.models.tuning.LoRA(rank=RANK).apply(model)
    parameters = model.parameters()
    optimizer = cr.optim.AdamW(parameters, 3e-4, (0.9, 0.95), weight_decay=0.0)
    batch = windows(args.config)

    def step() -> None:
        ids = batch()
        parameters.zero_grad()
        backward(model, Batch(ids[:, :-1], ids[:, 1:]))
        cr.optim.clip_global_norm(parameters, 1.0)
        optimizer.step()

    serve_steps(step, args.config, imported)


if __name__ == "__main__":
    main()
