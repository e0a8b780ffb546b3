"""What can be known before the first step: whether the data teach what they should, what it will cost, where it starts.

It reads a few batches and a bounded number of tokens, and computes a step that it forgets. The model, its
gradients and the random stream are as before.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.autograd import no_grad, precision
from chainrule.autograd.param import Parameters
from chainrule.autograd.types import Array
from chainrule.data import BatchSource, Encoded
from chainrule.doctor import limits
from chainrule.doctor.finding import Code, Finding, Level
from chainrule.doctor.messages import finding
from chainrule.doctor.rules import initial_loss
from chainrule.doctor.settings import Settings
from chainrule.inspect.probe import untouched
from chainrule.machine import clock, memory, one_blas_thread, peak_memory
from chainrule.models import Compiled, Model
from chainrule.models.gradient import Gradient, backward
from chainrule.models.microbatch import Batch, row_count, take
from chainrule.optim import global_norm
from chainrule.text import BPETokenizer, Tokenizer
from chainrule.types import IGNORE

BATCHES = 8  # that are read
TOKENS = 1 << 22  # that are counted at most
BLOCKS = 64  # places of a long text from which they are taken
SHOWN = 5  # labels or tokens that are named
LONG = 0.8  # seconds for trials of a step, of which the first is slow
SHORT = 0.1  # seconds: Python is a good part of such a step, and compiled it is much shorter
REPLAYS = 7  # trials of a short step: four before it is replayed alone, and some more
STOP = re.compile(r"end|eos|/s>", re.IGNORECASE)  # in the names of tokens that end a text


def examine(
    model: Model,
    batches: BatchSource,
    config: Settings,
    tokenizer: Tokenizer | None = None,
    *,
    eval_batches: int = 0,
    steps: int = 0,
    fresh: bool = True,
    compiled: bool = False,
) -> list[Finding]:
    """All that can be said before the next step, the ok findings included.

    An evaluation has `eval_batches` batches; `steps` have been made. Weights that are not `fresh` were trained: they
    know something, and the vocabulary is theirs. The steps to come are `compiled`, or op by op.
    """
    first = [batches.batch(step) for step in range(BATCHES)]
    rows = tokens_of(batches)
    chance = getattr(batches, "without_target", 0.0)
    found = [_targets(model, first, chance), *_labels(model.config, batches), *_truncated(batches)]
    fits = _fits(model.config, tokenizer, rows)
    if rows and fits.level == "ok" and tokenizer is not None:
        own = {name: ids for name, ids in rows.items() if _limit(model.config, name) is None}
        found += _stop(tokenizer, own, first)
        found += _unused(tokenizer, own) if fresh else ()
    found.append(fits)
    if fits.level == "ok":
        loss, seconds, needed = measure(model, Batch(*first[0]), config, compiled=compiled)
        if model.n_classes and fresh and not steps:
            found.append(initial_loss(loss, model.n_classes))
        found.append(_forecast(_plan(config, seconds, eval_batches, steps), needed))
    return found


# -- the data ---------------------------------------------------------------------------------------------------


def tokens_of(batches: Any) -> dict[str, Array]:
    """The rows of tokens behind the batches, by name: of a text, of documents, of sources and targets."""
    if isinstance(ids := getattr(batches, "ids", None), np.ndarray):
        return {"text": sample(ids)}
    return {name: sample(part.ids) for name, part in vars(batches).items() if isinstance(part, Encoded)}


def sample(ids: Array) -> Array:
    """All tokens; of a long row, those of some places spread over it."""
    if len(ids) <= TOKENS:
        return ids
    size = TOKENS // BLOCKS
    starts = np.linspace(0, len(ids) - size, BLOCKS).astype(np.int64)
    return np.concatenate([ids[start : start + size] for start in starts])


def _targets(model: Model, batches: list[tuple[Any, Array]], chance: float) -> Finding:
    """Has every row something to learn, in any part of the loss, but for those that chance leaves without a target?"""
    rows = [
        (step, row, any(model.counts(take(inputs, slice(row, row + 1)), targets[row : row + 1])))
        for step, (inputs, targets) in enumerate(batches)
        for row in range(row_count(inputs))
    ]
    empty = [(step, row) for step, row, counts in rows if not counts]
    said = {"empty": len(empty), "rows": len(rows), "batches": len(batches)}
    if not empty:
        return finding(Code.TARGETS_OK, **said)
    if len(empty) <= len(rows) * chance + limits.CHANCE * math.sqrt(len(rows) * chance * (1 - chance)):
        return finding(Code.TARGETS_CHANCE, **said)
    level: Level = "problem" if len(empty) > limits.EMPTY * len(rows) else "note"
    return finding(Code.TARGETS_MISSING, level, **said, row=empty[0][1], step=empty[0][0])


def _labels(config: Any, batches: Any) -> Iterator[Finding]:
    """Has every label that the model knows by name some examples?"""
    names, labels = getattr(config, "labels", ()), getattr(batches, "labels", None)
    if not names or labels is None:
        return
    flat = np.hstack(labels)
    counts = np.bincount(flat[flat != IGNORE], minlength=len(names))
    few = [f"{names[i]!r} ({counts[i]})" for i in np.flatnonzero(counts < limits.EXAMPLES)]
    said = {"classes": len(names), "least": limits.EXAMPLES, "few": len(few)}
    shown = ", ".join(few[:SHOWN]) + ", …" * (len(few) > SHOWN)
    yield finding(Code.LABELS_FEW if few else Code.LABELS_OK, **said, examples=shown)


def _truncated(batches: Any) -> Iterator[Finding]:
    fraction = getattr(batches, "truncated", None)
    if fraction is not None:
        yield finding(Code.LENGTH_OK if fraction <= limits.CUT else Code.LENGTH_CUT, fraction=fraction)


def _limit(config: Any, name: str) -> int | None:
    """The size of a vocabulary of its own, of the sources of pairs."""
    return getattr(config, "source_vocab_size", None) if name == "sources" else None


def _fits(config: Any, tokenizer: Tokenizer | None, rows: dict[str, Array]) -> Finding:
    """Do the tokens of the text, the tokenizer and the model have one vocabulary?"""
    size = getattr(config, "vocab_size", None)
    of_tokenizer = tokenizer.vocab_size if tokenizer is not None else size
    for name, ids in rows.items():
        allowed = _limit(config, name) or size
        if allowed and len(ids) and int(ids.max()) >= allowed:
            return finding(Code.VOCABULARY_ID, id=int(ids.max()), name=name, size=allowed)
    if of_tokenizer != size:
        return finding(Code.VOCABULARY_SIZE, tokenizer=of_tokenizer, model=size)
    return finding(Code.VOCABULARY_OK, size=size)


def _stop(
    tokenizer: Tokenizer, rows: dict[str, Array], batches: list[tuple[Any, Array]]
) -> Iterator[Finding]:
    """Does a token that ends a text occur, and does it count? Where there are several, one of them is enough."""
    stops = {name: id for name, id in tokenizer.special_ids.items() if STOP.search(name)}
    total = sum(len(ids) for ids in rows.values())
    occurs = {name: sum(int((ids == id).sum()) for ids in rows.values()) for name, id in stops.items()}
    for name, there in occurs.items():
        counted = sum(int((targets == stops[name]).sum()) for _, targets in batches)
        due = there / max(1, total) * sum(targets.size for _, targets in batches)
        if there:
            ignored = not counted and due > 10
            yield finding(Code.STOP_TOKEN_IGNORED if ignored else Code.STOP_TOKEN_OK, name=name, count=there)
        elif not any(occurs.values()):
            yield finding(Code.STOP_TOKEN_MISSING, name=name, total=total)


def _unused(tokenizer: Tokenizer, rows: dict[str, Array]) -> Iterator[Finding]:
    counts: npt.NDArray[Any] = np.zeros(tokenizer.vocab_size, np.int64)
    for ids in rows.values():
        counts += np.bincount(ids, minlength=tokenizer.vocab_size)
    spared = list(tokenizer.special_ids.values())
    if isinstance(tokenizer, BPETokenizer):  # single bytes must be there, so that any text can be encoded
        spared += [id for id, token in enumerate(tokenizer.tokens) if len(token) == 1]
    counts[spared] += 1
    missing = np.flatnonzero(counts == 0)
    fraction = len(missing) / tokenizer.vocab_size
    code = Code.UNUSED_TOKENS_OK if fraction <= limits.UNUSED else Code.UNUSED_TOKENS
    examples = ", ".join(repr(tokenizer.piece(int(id))) for id in missing[:SHOWN])
    said = {"missing": len(missing), "size": tokenizer.vocab_size, "fraction": fraction}
    yield finding(code, **said, examples=examples)


# -- the first step ----------------------------------------------------------------------------------------------


def measure(
    model: Model, batch: Batch, config: Settings, *, compiled: bool = False
) -> tuple[float, float, int]:
    """Compute a step and forget it: the first part of its loss, its seconds, and the bytes of memory it needs."""
    trial, block = Compiled(model), model.parameters()

    def timed(gradient: Gradient | None = None) -> tuple[float, float]:
        began = time.perf_counter()
        block.zero_grad()
        model.train()
        with random.seeded(config.seed):
            loss, _ = backward(model, batch, accumulate=config.accumulate, gradient=gradient)
        global_norm(block)  # for its time: a step asks for the norm, to clip by it
        return loss, time.perf_counter() - began

    with untouched(model), precision(config.precision), one_blas_thread(), np.errstate(all="ignore"):
        loss, first = timed()
        times = [first]
        replays = compiled and first < SHORT
        while len(times) < (REPLAYS if replays else 3) and sum(times) < LONG:
            other = replays and len(times) > 2  # a replay must be right on other weights
            with _negated(block) if other else nullcontext():
                times.append(timed(trial.gradient if replays else None)[1])
        trial.forget()  # training records its own
        if len(model.counts(batch.inputs, batch.targets)) > 1:
            with no_grad():
                loss = model.losses(batch.inputs, batch.targets)[0].item()
    # The optimizer's moments, of what learns, are not touched before the first step.
    return loss, min(times), peak_memory() + 2 * block.grad.nbytes


@contextmanager
def _negated(block: Parameters) -> Iterator[None]:
    """Other weights for a moment; to negate is exact, so they are the same afterwards, without a copy."""
    try:
        np.negative(block.data, out=block.data)
        yield
    finally:
        np.negative(block.data, out=block.data)


def _forecast(plan: str, bytes: int) -> Finding:
    needed, available = bytes / 2**30, memory() / 2**30
    code = Code.FORECAST_MEMORY if needed > limits.MEMORY * available else Code.FORECAST
    return finding(code, plan=plan, needed=needed, available=available)


def _plan(config: Settings, seconds: float, eval_batches: int, done: int) -> str:
    """How long the training will take: its budget, or what its steps take."""
    if config.budget is not None:
        return f"{clock(config.budget)} of training"
    evaluation = eval_batches * seconds / 3  # forward only
    steps = config.max_steps - done
    evaluations = -(-steps // config.eval_every)
    total = clock(steps * seconds + evaluations * evaluation)
    return f"about {total} for {steps:,} steps and {evaluations:,} evaluation{'s' * (evaluations != 1)}"
