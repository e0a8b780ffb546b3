"""Our side of dpo.py: a worker that makes DPO steps of a GPT."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import resident_mb
from benchmarks.peers.dpo import BETA, pairs
from benchmarks.peers.steps import SIZES, serve_steps, worker_arguments


def main() -> None:
    args = worker_arguments(__doc__).parse_args()
    import chainrule as cr
    from chainrule.align.dpo import Pairs
    from chainrule.models.gradient import backward
    from chainrule.models.microbatch import Batch

    imported = resident_mb()
    cr.set_threads(args.threads)
    cr.seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    size = {"n_layer": L, "n_head": H, "n_embd": C, "block_size": T, "vocab_size": V}
    policy = cr.models.GPT(cr.models.GPTConfig(**size, activation="gelu_tanh"))
    model = cr.align.DPO(policy, cr.align.preference_loss("sigmoid", beta=BETA))
    parameters = model.parameters()
    optimizer = cr.optim.AdamW(parameters, 1e-5, (0.9, 0.95), weight_decay=0.0)
    batch = pairs(args.config)

    def step() -> None:
        ids, prompt, reference = batch()
        targets = ids[:, :, 1:].astype(np.int32)
        targets[:, :, : prompt - 1] = cr.data.IGNORE
        inputs = Pairs(ids[:, :, :-1].astype(np.int32), reference, np.ones(len(ids), np.float32))
        parameters.zero_grad()
        backward(model, Batch(inputs, targets))  # as the trainer does
        cr.optim.clip_global_norm(parameters, 1.0)
        optimizer.step()

    serve_steps(step, args.config, imported)


if __name__ == "__main__":
    main()
