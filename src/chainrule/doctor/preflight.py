"""What can be known before the first step: whether the data teach what they should, what it will cost, where it starts.

A few batches are looked at, and a bounded number of tokens; one step is worked through and forgotten. The model, its
gradients and the random stream are as before.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import random
from chainrule.autograd import no_grad, precision
from chainrule.autograd.types import Array
from chainrule.data import Encoded
from chainrule.doctor import limits
from chainrule.doctor.finding import Finding
from chainrule.inspect.losses import initial_loss
from chainrule.inspect.probe import untouched
from chainrule.machine import clock, memory, one_blas_thread, peak_memory
from chainrule.models import Model
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch, row_count, take
from chainrule.text import BPETokenizer, Tokenizer

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

BATCHES = 8  # that are looked at
TOKENS = 1 << 22  # that are counted at most
BLOCKS = 64  # in so many places of the text
LONG = 0.5  # seconds: the first time is slow, so a step is worked through up to three times in this time
STOP = re.compile(r"end|eos|/s>", re.IGNORECASE)  # in the names of tokens that end a text


def examine(trainer: Trainer, *, fresh: bool = True) -> list[Finding]:
    """All that can be said before step 0, what is well included.

    Weights that are not `fresh` were trained: they know something, and the vocabulary is theirs.
    """
    batches = [trainer.batches.batch(step) for step in range(BATCHES)]
    rows = tokens_of(trainer.batches)
    found = [_targets(trainer.model, batches), *_truncated(trainer.batches)]
    fits = [_fits(trainer, rows)]
    if rows and fits[0].level == "ok" and trainer.tokenizer is not None:
        own = {name: ids for name, ids in rows.items() if _limit(trainer.model.config, name) is None}
        found += _stop(trainer.tokenizer, own, batches)
        found += _unused(trainer.tokenizer, own) if fresh else ()
    found += fits
    if fits[0].level == "ok":
        found += _first_step(trainer, fresh and not trainer.steps)
    return found


# -- the data ---------------------------------------------------------------------------------------------------


def tokens_of(batches: Any) -> dict[str, Array]:
    """The rows of tokens behind the batches, by name: of a text, of documents, of sources and targets."""
    if isinstance(ids := getattr(batches, "ids", None), np.ndarray):
        return {"text": sample(ids)}
    return {name: sample(part.ids) for name, part in vars(batches).items() if isinstance(part, Encoded)}


def sample(ids: Array) -> Array:
    """All tokens, or of a long row those in some places all over it."""
    if len(ids) <= TOKENS:
        return ids
    size = TOKENS // BLOCKS
    starts = np.linspace(0, len(ids) - size, BLOCKS).astype(np.int64)
    return np.concatenate([ids[start : start + size] for start in starts])


def _targets(model: Model, batches: list[tuple[Any, Array]]) -> Finding:
    """Has every row something to learn, in any part of the loss?"""
    rows = [
        (step, row, any(model.counts(take(inputs, slice(row, row + 1)), targets[row : row + 1])))
        for step, (inputs, targets) in enumerate(batches)
        for row in range(row_count(inputs))
    ]
    empty = [(step, row) for step, row, counts in rows if not counts]
    said = f"{len(empty)} of {len(rows)} rows of the first {len(batches)} batches have no target"
    if not empty:
        return Finding("ok", "targets", said, "Every row teaches something.")
    return Finding(
        "problem" if len(empty) > limits.EMPTY * len(rows) else "note",
        "targets",
        f"{said}, first row {empty[0][1]} of step {empty[0][0]}",
        "What is computed for them is computed for nothing, and a batch of nothing else has no loss.",
        "Leave out examples of fewer than two tokens; check what marks a target as ignored.",
    )


def _truncated(batches: Any) -> Iterator[Finding]:
    share = getattr(batches, "truncated", None)
    if share is None:
        return
    said = f"{share:.1%} of the examples are longer than the context and lose their end"
    if share <= limits.CUT:
        yield Finding("ok", "length", said, "Nearly all of them fit.")
    else:
        meaning = "What stands at their end is never learnt, nor that they end there."
        yield Finding("note", "length", said, meaning, "A larger block_size, or shorter examples.")


def _limit(config: Any, name: str) -> int | None:
    """The size of a vocabulary of its own, of the sources of pairs."""
    return getattr(config, "source_vocab_size", None) if name == "sources" else None


def _fits(trainer: Trainer, rows: dict[str, Array]) -> Finding:
    """Are the tokens of the text, the tokenizer and the model of one vocabulary?"""
    config = trainer.model.config
    size = getattr(config, "vocab_size", None)
    of_tokenizer = trainer.tokenizer.vocab_size if trainer.tokenizer is not None else size
    for name, ids in rows.items():
        allowed = _limit(config, name) or size
        if allowed and len(ids) and int(ids.max()) >= allowed:
            said = f"id {int(ids.max())} in the {name}, the model knows {allowed:,} tokens"
            meaning = "Data and model were made with different tokenizers."
            return Finding(
                "problem", "vocabulary", said, meaning, "Encode the data again with this tokenizer."
            )
    if of_tokenizer != size:
        said = f"the tokenizer has {of_tokenizer:,} tokens, the model {size:,}"
        meaning = "Some tokens can never be written, or ids have no embedding."
        return Finding(
            "problem", "vocabulary", said, meaning, "Make the model with the tokenizer's vocab_size."
        )
    return Finding("ok", "vocabulary", f"{size} tokens", "Data, tokenizer and model agree.")


def _stop(
    tokenizer: Tokenizer, rows: dict[str, Array], batches: list[tuple[Any, Array]]
) -> Iterator[Finding]:
    """Does the token that ends a text occur, and does it count?"""
    for name, id in tokenizer.special_ids.items():
        if not STOP.search(name):
            continue
        total = sum(len(ids) for ids in rows.values())
        there = sum(int((ids == id).sum()) for ids in rows.values())
        counted = sum(int((targets == id).sum()) for _, targets in batches)
        due = there / max(1, total) * sum(targets.size for _, targets in batches)
        if not there:
            said = f"{name} never occurs in {total:,} training tokens"
            meaning = "The model never learns to stop: what it writes ends at the limit of tokens."
            yield Finding(
                "note", "stop token", said, meaning, "Put it after every document (data build --end)."
            )
        elif not counted and due > 10:
            said = f"{name} occurs {there:,} times, but is never a target"
            meaning = "The model reads it and never learns to write it: it will not stop."
            yield Finding(
                "problem", "stop token", said, meaning, "Let the token that ends a text be a target."
            )
        else:
            yield Finding(
                "ok", "stop token", f"{name} occurs {there:,} times and counts", "It learns to stop."
            )


def _unused(tokenizer: Tokenizer, rows: dict[str, Array]) -> Iterator[Finding]:
    counts: npt.NDArray[Any] = np.zeros(tokenizer.vocab_size, np.int64)
    for ids in rows.values():
        counts += np.bincount(ids, minlength=tokenizer.vocab_size)
    spared = list(tokenizer.special_ids.values())
    if isinstance(tokenizer, BPETokenizer):  # single bytes must be there, so that any text can be encoded
        spared += [id for id, token in enumerate(tokenizer.tokens) if len(token) == 1]
    counts[spared] += 1
    missing = np.flatnonzero(counts == 0)
    share = len(missing) / tokenizer.vocab_size
    some = ", ".join(repr(tokenizer.piece(int(id))) for id in missing[:5])
    said = f"{len(missing):,} of {tokenizer.vocab_size:,} tokens never occur in training"
    if share <= limits.UNUSED:
        yield Finding("ok", "unused tokens", said, "The vocabulary fits the text.")
    else:
        yield Finding(
            "note",
            "unused tokens",
            f"{said} ({share:.0%}), such as {some}",
            "Their embeddings are never learnt, and each takes part in every prediction.",
            "Learn a tokenizer from this text (chainrule tokenize train), with a smaller vocabulary.",
        )


# -- the first step ----------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    loss: float
    """Of the first part, before any step."""
    seconds: float
    bytes: int


def _first_step(trainer: Trainer, fresh: bool) -> Iterator[Finding]:
    measured = measure(trainer)
    choices = trainer.model.choices
    if choices and fresh:
        yield initial_loss(measured.loss, choices)
    yield _forecast(trainer, measured)


def measure(trainer: Trainer) -> Measured:
    """Work through the first batch and forget it."""
    model, config = trainer.model, trainer.config
    batch = Batch(*trainer.batches.batch(0))
    times: list[float] = []
    with untouched(model), precision(config.precision), one_blas_thread(), np.errstate(all="ignore"):
        model.train()
        while not times or (len(times) < 3 and sum(times) < LONG):
            began = time.perf_counter()
            with random.seeded(config.seed):
                loss, _ = backward(model, batch, accumulate=config.accumulate)
            times.append(time.perf_counter() - began)
        if len(model.counts(batch.inputs, batch.targets)) > 1:
            with no_grad():
                loss = model.losses(batch.inputs, batch.targets)[0].item()
    # The optimiser's moments are not touched before the first step.
    return Measured(loss, min(times), peak_memory() + 2 * model.parameters().data.nbytes)


def _forecast(trainer: Trainer, measured: Measured) -> Finding:
    config, per_step = trainer.config, measured.seconds
    judged = len(trainer.eval_batches) * per_step / 3  # forward only
    if config.budget is not None:
        each = per_step + judged / config.eval_every
        said = f"about {max(1, round(config.budget / each)):,} steps in {clock(config.budget)}"
    else:
        steps = config.max_steps - trainer.steps
        evaluations = -(-steps // config.eval_every)
        total = steps * per_step + evaluations * judged
        said = f"about {clock(total)} for {steps:,} steps and {evaluations:,} evaluation{'s' * (evaluations != 1)}"
    gigabytes, there = measured.bytes / 2**30, memory() / 2**30
    said += f"; {gigabytes:.2g} GiB of memory of {there:.2g}"
    if gigabytes > limits.MEMORY * there:
        meaning = "Other programs are pushed out, and training may be ended by the system."
        advice = "More pieces per batch (accumulate), recompute, a smaller batch or model."
        return Finding("problem", "forecast", said, meaning, advice)
    return Finding("ok", "forecast", said, "Measured on the first batch.")
