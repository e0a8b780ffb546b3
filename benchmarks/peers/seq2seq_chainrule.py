"""Our side of seq2seq.py: a worker that makes training steps."""

from __future__ import annotations

import chainrule as cr
from benchmarks.harness import resident_mb
from benchmarks.peers.seq2seq import DROPOUT, SIZES, SMOOTHING, pair_batches, serve_steps, worker_arguments


def main() -> None:
    args = worker_arguments(__doc__)
    L, H, C, T, _, V = SIZES[args.config]
    config = cr.models.Seq2SeqConfig(
        L, H, C, block_size=T, vocab_size=V, norm="post", bias=True, dropout=DROPOUT,
        label_smoothing=SMOOTHING,
    )  # fmt: skip
    imported = resident_mb()
    cr.set_threads(args.threads)
    cr.seed(0)
    model = cr.models.Seq2Seq(config)
    parameters = model.parameters()
    optimizer = cr.optim.AdamW(parameters, 3e-4, (0.9, 0.98), weight_decay=0.1)
    batches = pair_batches(args.config)

    def step(number: int) -> None:
        parameters.zero_grad()
        with cr.random.step(number):
            model.loss(*batches.batch(number)).backward()
        norm = cr.optim.global_norm(parameters)
        optimizer.step(scale=cr.optim.clip_factor(norm, 1.0))

    serve_steps(step, imported)


if __name__ == "__main__":
    main()
