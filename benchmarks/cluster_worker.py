"""What a rank measures for `benchmarks.cluster`: steps of a training, or the link between two ranks.

    mpiexec -n 2 python -m benchmarks.cluster_worker steps COUNT [--whole] [--shard]
    mpiexec -n 2 python -m benchmarks.cluster_worker link COUNT

The first rank prints one line of JSON. With --whole gradients travel after backward, not during it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr
from benchmarks.harness import command_line
from chainrule.data import Batches
from chainrule.distributed import Communicator, world
from chainrule.machine import keep_freed_memory, one_blas_thread, peak_memory
from chainrule.models import make
from chainrule.train import TrainConfig, Trainer
from chainrule.train.share import RankShare

SIZES = {"n_layer": 6, "n_head": 6, "n_embd": 384, "block_size": 128, "vocab_size": 4096}
BATCH = 16  # windows of a step, of all ranks together
ALONE = 3  # steps before the first that counts


def steps(count: int, *, whole: bool, shard: bool) -> dict[str, Any]:
    """Milliseconds of each step, and the memory of this rank."""
    cr.seed(0)
    keep_freed_memory()
    model = make("gpt", **SIZES)
    ids = np.random.default_rng(0).integers(0, SIZES["vocab_size"], 200_000)
    batches = Batches(ids, batch_size=BATCH, block_size=SIZES["block_size"], seed=0)
    config = TrainConfig(max_steps=count, batch_size=BATCH, shard_optimizer=shard)
    trainer = Trainer(model, batches, [], config)
    if isinstance(share := trainer.gradient.share, RankShare):
        share.overlap = not whole
    times = []
    with one_blas_thread():
        for _ in range(ALONE + count):
            began = time.perf_counter()
            trainer.update(1e-4)
            times.append(1e3 * (time.perf_counter() - began))
    state = sum(array.nbytes for array in trainer.gradient.optimizer.arrays.values())
    return {"ms": times[ALONE:], "peak": peak_memory(), "state": state, "parameters": model.count()}


def link(count: int) -> dict[str, Any]:
    """Least seconds of a message there and back, halved; and of sums over the ranks, ours and MPI's own."""
    ranks: Any = world()
    found: dict[str, Any] = {"ranks": ranks.size}
    for size in (2, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24):
        array, other = np.ones(size, np.float32), np.empty(size, np.float32)
        found[str(4 * size)] = {
            "message": best(count, ranks, lambda a=array: _there_and_back(ranks, a)) / 2,
            "ours": best(count, ranks, lambda a=array: ranks.sum(a)),
            "mpi": best(count, ranks, lambda a=array, b=other: ranks.comm.Allreduce(a, b)),
        }
    return found


def _there_and_back(ranks: Any, array: Any) -> None:
    if ranks.rank == 0:
        ranks.comm.Send(array, dest=1)
        ranks.comm.Recv(array, source=1)
    elif ranks.rank == 1:
        ranks.comm.Recv(array, source=0)
        ranks.comm.Send(array, dest=0)


def best(count: int, ranks: Communicator, call: Callable[[], object]) -> float:
    """The least time of several: what the link can do, whatever else the machine does."""
    times = []
    for _ in range(count + 1):
        ranks.any(False)  # all begin together
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times[1:])


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("what", choices=("steps", "link"))
    parser.add_argument("count", type=int)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--shard", action="store_true")
    args = parser.parse_args()
    is_link = args.what == "link"
    found = link(args.count) if is_link else steps(args.count, whole=args.whole, shard=args.shard)
    if world().first:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
