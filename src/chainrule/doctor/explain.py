"""Why a number is not finite: the findings of `nonfinite.search`, with the token and the text around it."""

from __future__ import annotations

import math

import numpy as np

from chainrule import random
from chainrule.autograd import precision
from chainrule.doctor.finding import Code, Finding
from chainrule.doctor.messages import finding
from chainrule.doctor.nonfinite import Entry, Origin, broken, search
from chainrule.doctor.settings import Settings
from chainrule.models import Model
from chainrule.models.microbatch import Batch
from chainrule.text import Tokenizer

AROUND = 12  # tokens to each side that are shown with the one that makes trouble
PHASES = {
    "forward": Code.NOT_FINITE_FORWARD,
    "backward": Code.NOT_FINITE_BACKWARD,
    "gradient": Code.NOT_FINITE_GRADIENT,
}


def explain(model: Model, batch: Batch, config: Settings, step: int, tokenizer: Tokenizer | None) -> Finding:
    """Why the batch of this step gave a number that is not finite: it is recomputed, op by op."""
    with random.step(step), precision(config.precision):
        origin = search(model, batch, accumulate=config.accumulate)
    return not_finite(origin, config, tokenizer)


def not_finite(origin: Origin | None, config: Settings, tokenizer: Tokenizer | None) -> Finding:
    """Which op, weight or gradient is the first that is not finite."""
    smaller = f"a smaller lr than {config.lr:g}, a longer warmup than {config.warmup}"
    if config.precision == "fp16":
        smaller = f"bf16 instead of fp16, {smaller}"
    if origin is None:
        return finding(Code.NOT_FINITE_SUM, smaller=smaller)
    entry, weight, where = origin.entry, origin.weight, _where(origin, tokenizer)
    said = {"name": entry.name, "where": where, "smaller": smaller}
    if weight:
        token = _token_of(weight, tokenizer)
        return finding(Code.NOT_FINITE_WEIGHT, **said, weight=weight.place, value=weight.value, token=token)
    return finding(PHASES[origin.phase], **said, value=entry.value, index=list(entry.index))


def broken_update(entry: Entry | None, config: Settings, step: int, validation: float) -> Finding:
    """An update has broken a weight, or the validation loss; the loss and gradient of the step may be finite."""
    loss = "" if math.isfinite(validation) else f"validation loss {validation}, "
    weight = "every weight is finite" if entry is None else f"{entry.place} is {entry.value}"
    said = {"step": step, "lr": config.lr, "weight_decay": config.weight_decay}
    return finding(Code.NOT_FINITE_UPDATE, validation=loss, weight=weight, **said)


def of_weights(model: Model) -> Finding:
    """Are all weights of a model finite?"""
    entry = broken(model)
    if entry is None:
        return finding(Code.WEIGHTS_OK, count=model.count())
    return finding(Code.WEIGHTS_NOT_FINITE, weight=entry.place, value=entry.value)


def _where(origin: Origin, tokenizer: Tokenizer | None) -> str:
    """The row, the position, the token and the text around it."""
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
    """The token of a row of an embedding."""
    if tokenizer is None or weight.shape[0] != tokenizer.vocab_size or len(weight.shape) != 2:
        return ""
    return f" (the row of token {tokenizer.piece(weight.index[0])!r})"
