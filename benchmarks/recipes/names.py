"""A list of names (one per line), from counting to attention: losses in nats per character, the end of a name included.

    CHAINRULE_DATA=FOLDER python -m benchmarks.recipes.names       FOLDER holds text/names.txt; about 80 minutes
    python -m benchmarks.recipes.names --only transformer --seeds 0          one transformer, about 25 minutes of a core
    python -m benchmarks.recipes.names --only transformer --split 1          other names for choosing and for testing
    python -m benchmarks.recipes.names --only transformer --state DIR        the same, continued when called again
    python -m benchmarks.recipes.names --data identifiers --steps 300        any list that `chainrule data list` knows

Each line is a JSON object with the number of parameters beside every loss. Eight names of ten are for training, one for
choosing (dev), one to read once at the end of each model (test).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import chainrule as cr
from benchmarks.harness import command_line, progress
from benchmarks.recipes.results import write
from chainrule.autograd.types import Array
from chainrule.data import load
from chainrule.doctor import verdict
from chainrule.generate import documents, known_fraction
from chainrule.machine import keep_freed_memory
from chainrule.models import (
    GPT,
    IGNORE,
    MLPLM,
    GPTConfig,
    KneserNey,
    LanguageModel,
    MLPConfig,
    NeuralNGram,
    NeuralNGramConfig,
    NGram,
)
from chainrule.optim import SGD, Adam, AdamW, choose, cosine, sweep
from chainrule.random import generator
from chainrule.random import step as draws_of_step
from chainrule.runs.records.seeds import Spread
from chainrule.text import CharTokenizer
from chainrule.train.ema import Average

BATCH = 512  # names per update
TELL = 250  # updates between two lines of progress
MEMORY = 0.995  # of the running mean of a transformer's weights
PARTS = ("counting", "mlp", "transformer")
TITLE = "Names: a transformer of 4 layers of width 128, nats per character, the end of a name included"


class Names:
    """Names as rows of ids, 0 before and after each, padded with targets that do not count."""

    def __init__(self, lines: list[str], split: int = 0) -> None:
        tokenizer = CharTokenizer.train("".join(lines))
        self.vocab_size = tokenizer.vocab_size + 1
        self.rows = [tokenizer.encode(line) + 1 for line in lines]
        self.length = 1 + max(map(len, self.rows))  # of the longest, with its end
        shuffled = generator("split", seed=split).permutation(len(self.rows))
        eight, nine = (round(share * len(shuffled)) for share in (0.8, 0.9))
        self.train, self.dev, self.test = (
            [self.rows[i] for i in part] for part in (shuffled[:eight], shuffled[eight:nine], shuffled[nine:])
        )

    def batch(self, rows: list[Array]) -> tuple[Array, Array]:
        shape = len(rows), self.length
        inputs, targets = np.zeros(shape, np.int64), np.full(shape, IGNORE)
        for row, before, after in zip(rows, inputs, targets, strict=True):
            before[1 : len(row) + 1] = after[: len(row)] = row
            after[len(row)] = 0
        return inputs, targets

    def loss(self, model: LanguageModel, rows: list[Array]) -> float:
        with cr.no_grad():
            return model.eval().loss(*self.batch(rows)).item()


def counted(names: Names) -> NGram:
    model = NGram.fit(names.rows, order=2, vocab_size=names.vocab_size)
    say("bigram, counted", model.table_size, whole_file=model.nll())
    for order in (2, 3, 4, 5, 6):
        smooth = NGram.fit(names.train, order=order, vocab_size=names.vocab_size, smoothing=KneserNey())
        say(f"order {order}, Kneser–Ney", smooth.stored, train=smooth.nll(), dev=smooth.nll(names.dev))
    return model


def bigram_by_gradient(names: Names, target: float, steps: int = 150) -> None:
    model = NeuralNGram(NeuralNGramConfig(block_size=1, vocab_size=names.vocab_size))
    inputs, targets = names.batch(names.rows)
    optimizer, rate = Adam(model.parameters(), 0.0), cosine(0.5, steps)
    began = time.perf_counter()
    for step in range(steps):
        optimizer.zero_grad()
        model.loss(inputs, targets).backward()
        optimizer.step(rate(step))
    loss = names.loss(model, names.rows)
    seconds = round(time.perf_counter() - began, 1)
    say("bigram, by gradient", model.count(), whole_file=loss, above_counted=loss - target, seconds=seconds)


def find_rate(names: Names, make: Callable[[], MLPLM]) -> None:
    """One step of plain SGD per rate, rates rising; the flat part below the start."""
    model = make()
    inputs, targets = names.batch(names.train)
    eval_batch = names.batch(names.train[:2000])
    optimizer = SGD(model.parameters(), 0.0)

    def loss_now() -> float:
        with cr.no_grad():
            return model.loss(*eval_batch).item()

    def step(rate: float) -> float:
        chosen = generator("sweep", optimizer.steps, seed=0).integers(len(inputs), size=BATCH)
        optimizer.zero_grad()
        model.loss(inputs[chosen], targets[chosen]).backward()
        optimizer.step(rate)
        return loss_now()

    choice = choose(sweep(step, loss_now(), low=1e-3, high=10.0, count=60))
    say("rates for plain SGD", model.count(), low=choice.low, high=choice.high, lowest_loss_at=choice.best)


def train(
    names: Names, model: LanguageModel, steps: int, lr: float = 0.01, parts: int = 1, seed: int = 0,
    average: Average | None = None, state: Path | None = None,
) -> float:  # fmt: skip
    """AdamW with a cosine to 0, one pass after the other over shuffled names; returns the CPU seconds it took.

    `average` follows the weights. The file `state` keeps all that a training needs to continue with the same bits.
    """
    keep_freed_memory()
    inputs, targets = names.batch(names.train)
    lengths = np.array([len(row) + 1 for row in names.train])
    optimizer = AdamW(model.parameters(), lr, weight_decay=0.3)
    rate, passes = cosine(lr, steps, warmup=steps // 20), max(1, len(inputs) // BATCH)
    began = time.process_time() - restore(state, model, optimizer, average)
    model.train()
    for step in range(optimizer.steps, steps):
        order = generator("order", step // passes, seed=seed).permutation(len(inputs))
        chosen = order[step % passes * BATCH :][:BATCH]
        optimizer.zero_grad()
        with draws_of_step(step):
            backward(model, inputs[chosen], targets[chosen], lengths[chosen], parts)
        optimizer.step(rate(step))
        if average is not None:
            average.update(step + 1)
        if (step + 1) % TELL == 0:
            progress(f"{step + 1:,} of {steps:,} steps, {time.process_time() - began:.0f} s of CPU time")
            keep(state, model, optimizer, average, time.process_time() - began)
    return time.process_time() - began


def backward(model: LanguageModel, inputs: Array, targets: Array, lengths: Array, parts: int) -> None:
    """The gradient of a batch, taken in parts of names of like length, so that little of it is padding.

    It is the same, unless the model mixes the names of a batch, as batch norm does.
    """
    if parts == 1:
        return model.loss(inputs, targets).backward()
    for part in np.array_split(np.argsort(lengths, kind="stable"), parts):
        T, share = lengths[part].max(), lengths[part].sum() / lengths.sum()
        (model.loss(inputs[part, :T], targets[part, :T]) * float(share)).backward()


def keep(
    path: Path | None, model: LanguageModel, optimizer: AdamW, average: Average | None, seconds: float
) -> None:
    if path is not None:
        mean = {} if average is None else {"mean": average.mean}
        new = path.with_suffix(".new.npz")
        np.savez(new, weights=model.parameters().data, seconds=seconds, **mean, **optimizer.views())
        new.replace(path)


def restore(path: Path | None, model: LanguageModel, optimizer: AdamW, average: Average | None) -> float:
    """Continue where `keep` was called last; the seconds until there."""
    if path is None or not path.exists():
        return 0.0
    with np.load(path) as file:
        found = dict(file)
    model.parameters().data[...] = found.pop("weights")
    if average is not None:
        average.mean[...] = found.pop("mean")
    seconds = float(found.pop("seconds"))
    optimizer.load(found)
    return seconds


def say(what: str, n_params: int, **numbers: object) -> None:
    rounded = {k: round(v, 6) if isinstance(v, float) else v for k, v in numbers.items()}
    print(json.dumps({"what": what, "n_params": n_params, **rounded}, ensure_ascii=False), flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--data", default="names")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--gpt-steps", type=int, default=4000)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the transformer")
    parser.add_argument(
        "--split", type=int, default=0, help="seed of the choice of names for training, dev and test"
    )
    parser.add_argument("--state", type=Path, help="directory in which transformers can be continued")
    args = parser.parse_args()
    lines = [line.strip() for line in load(args.data).text.splitlines() if line.strip()]
    names = Names(lines, args.split)
    if "counting" in args.only:
        bigram = counted(names)
        bigram_by_gradient(names, bigram.nll())
    if "mlp" in args.only:
        windows(names, args.steps)
    if "transformer" in args.only:
        state = args.state and args.state / f"split-{args.split}"
        if state is not None:
            state.mkdir(parents=True, exist_ok=True)
        rows = transformers(names, args.gpt_steps, args.seeds, state)
        if args.data == "names" and args.gpt_steps == parser.get_default("gpt_steps"):
            header = ["split", "seed", "train", "dev", "test", "CPU time"]
            command = "python -m benchmarks.recipes.names --only transformer --split N"
            write("names", TITLE, [command], header, [[str(args.split), *row] for row in rows], keys=2)


def windows(names: Names, steps: int) -> None:
    """MLPs that see the last few characters."""

    def make(context: int, n_embd: int) -> MLPLM:
        cr.seed(0)
        return MLPLM(MLPConfig(context, n_embd, vocab_size=names.vocab_size))

    find_rate(names, lambda: make(3, 10))
    for context, n_embd in ((3, 10), (8, 24)):
        model = make(context, n_embd)
        seconds = train(names, model, steps)
        before, dev = names.loss(model, names.train), names.loss(model, names.dev)
        samples = documents(model, 1000)
        say(
            f"MLP, context {context}", model.count(), train=before, dev=dev, verdict=verdict(before, dev),
            known_samples=known_fraction(samples, names.train), seconds=round(seconds, 1),
        )  # fmt: skip
    say(f"MLP, context {context}, once", model.count(), test=names.loss(model, names.test))


def transformers(names: Names, steps: int, seeds: list[int], folder: Path | None = None) -> list[list[str]]:
    """The same GPT with each seed, and the mean of their losses on the test names; rows of the table of results.

    Of its last weights and their running mean those are taken that do better on dev.
    """
    tests, rows = [], []
    for seed in seeds:
        cr.seed(seed)
        gpt = GPT(GPTConfig(4, 4, 128, block_size=names.length, vocab_size=names.vocab_size, dropout=0.35))
        average = Average(gpt.parameters(), MEMORY)
        state = None if folder is None else folder / f"seed-{seed}-of-{steps}-steps.npz"
        seconds = train(names, gpt, steps, lr=3e-3, parts=3, seed=seed, average=average, state=state)
        last = names.loss(gpt, names.dev)
        with average.in_place():
            mean = names.loss(gpt, names.dev)
        if mean < last:
            gpt.parameters().data[...] = average.mean
        losses = {part: names.loss(gpt, getattr(names, part)) for part in ("train", "dev", "test")}
        found = {"last_dev": last, "mean_dev": mean, **losses, "cpu_seconds": round(seconds, 1)}
        say("GPT, 4 layers of width 128", gpt.count(), seed=seed, **found)
        tests.append(losses["test"])
        rows.append([str(seed), *(f"{loss:.4f}" for loss in losses.values()), f"{seconds:.0f} s"])
    spread = Spread.of(tests)
    say(f"GPT, mean of {len(seeds)}", gpt.count(), test=spread.mean, standard_error=spread.error)
    return [*rows, [f"mean of {len(seeds)}", "", "", f"{spread.mean:.4f} ± {spread.error:.4f}", ""]]


if __name__ == "__main__":
    main()
