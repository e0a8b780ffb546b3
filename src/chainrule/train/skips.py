"""Steps that are left out because their loss or gradient is not finite: how many in a row, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from chainrule import random
from chainrule.autograd import precision
from chainrule.doctor import Finding
from chainrule.doctor.nonfinite import Entry, Origin, broken, search
from chainrule.errors import ChainruleError, Setting
from chainrule.models import Model
from chainrule.models.microbatch import Batch
from chainrule.text import Tokenizer
from chainrule.train.config import TrainConfig
from chainrule.train.log import Logger

MOST = 20  # steps in a row that may be left out
AROUND = 12  # tokens to each side that are shown with one that makes trouble


class NotFinite(ChainruleError):
    """A step that was not taken, or a model that is no use any more, and why."""

    def __init__(self, *message: str, finding: Finding | None = None) -> None:
        super().__init__(*message)
        self.finding = finding


class Skips:
    """The steps left out since the last one that was taken."""

    def __init__(self) -> None:
        self.in_a_row = 0
        self.reason = ""  # of the last one

    def add(self, what: str, finding: Finding, *, stop: bool) -> None:
        """One more; an error if it is the last straw."""
        self.in_a_row += 1
        self.reason = f"{what} (must be finite): {finding.measured}; try: {finding.advice}"
        if stop or self.in_a_row > MOST:
            before = "" if stop else f" after {MOST} such steps in a row"
            raise NotFinite(f"train: {self.reason}; the step was not taken{before}", finding=finding)


@contextmanager
def noted(log: Logger, step: int) -> Iterator[None]:
    """What is not finite in here is written down; whoever catches it says so."""
    try:
        yield
    except NotFinite as error:
        if error.finding:
            log.note(step, {"finding": error.finding.to_dict()})
        raise


def check_sound(model: Model, config: TrainConfig, step: int, validation: float = 0.0) -> None:
    """Refuse to keep or to judge a model that an update has broken: its loss and gradient may have been finite."""
    entry = broken(model)
    if entry is None and math.isfinite(validation):
        return
    weight = (
        "every weight is finite" if entry is None else f"{entry.name}{list(entry.index)} is {entry.value}"
    )
    said = f"{weight} after step {step}"
    if not math.isfinite(validation):
        said = f"validation loss {validation}, {said}"
    smaller = (
        *("a smaller ", Setting("lr"), f" than {config.lr:g}, "),
        *("a smaller ", Setting("weight_decay"), f" than {config.weight_decay:g}"),
    )
    meaning = "The update itself took the weights where nothing can be computed."
    finding = Finding("problem", "not finite", said, meaning, "".join(smaller))
    said = f"train: {said} (must be finite): try "
    raise NotFinite(said, *smaller, "; the step is not kept", finding=finding)


def explain(
    model: Model, batch: Batch, config: TrainConfig, step: int, tokenizer: Tokenizer | None
) -> Finding:
    """Why the batch of this step gave something that is not finite: it is worked through again, and looked at."""
    with random.step(step), precision(config.precision):
        origin = search(model, batch, accumulate=config.accumulate)
    return not_finite(origin, config, tokenizer)


def not_finite(origin: Origin | None, config: TrainConfig, tokenizer: Tokenizer | None) -> Finding:
    """In words: who made the first number that is not finite."""
    smaller = f"a smaller lr than {config.lr:g}, a longer warmup than {config.warmup}"
    if config.precision == "fp16":
        smaller = f"bf16 instead of fp16, {smaller}"
    if origin is None:
        return Finding(
            "problem",
            "not finite",
            "every number of the batch is finite when it is worked through again",
            "The sum of the losses or of the squared gradients is too large.",
            smaller,
        )
    entry, weight = origin.entry, origin.weight
    if weight:
        said = f"{weight.name}{list(weight.index)} is {weight.value}{_token_of(weight, tokenizer)}"
        said += f"; it is first met in {entry.name}{_where(origin, tokenizer)}"
        meaning = "The weights were broken before this step."
        return Finding("problem", "not finite", said, meaning, f"begin with sound weights, {smaller}")
    what = {
        "forward": f"{entry.name} is the first op that makes {entry.value} of finite numbers",
        "backward": f"the loss is finite; of the gradients, that of {entry.name} is the first with {entry.value}",
        "gradient": f"the loss is finite; the gradient of {entry.name} has {entry.value} at {list(entry.index)}",
    }[origin.phase]
    meaning = "Numbers grew beyond what a float holds, or there was a 0 to divide by."
    return Finding("problem", "not finite", what + _where(origin, tokenizer), meaning, smaller)


def _where(origin: Origin, tokenizer: Tokenizer | None) -> str:
    if origin.row is None:
        return ""
    said = f", in row {origin.row}"
    if origin.position is not None:
        id, ids = origin.ids[origin.position], np.array(origin.ids)
        name = f"token {id}" if tokenizer is None else f"token {tokenizer.piece(id)!r} ({id})"
        said += f", position {origin.position}, {name}"
        if tokenizer is not None:
            near = ids[max(0, origin.position - AROUND) : origin.position + AROUND + 1]
            said += f" of {tokenizer.decode(near)!r}"
    return said


def _token_of(weight: Entry, tokenizer: Tokenizer | None) -> str:
    """Whose row of an embedding it is."""
    if tokenizer is None or weight.shape[0] != tokenizer.vocab_size or len(weight.shape) != 2:
        return ""
    return f" (the row of token {tokenizer.piece(weight.index[0])!r})"
