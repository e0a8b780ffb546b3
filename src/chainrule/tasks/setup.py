"""What a training begins with: of data a task, of its sizes a model, of both the batches.

A model may be new, or begin with the weights of another one, or with its body and a new head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

from chainrule.autograd import precision
from chainrule.data import BatchSource
from chainrule.errors import ConfigError, Setting, kind_of
from chainrule.machine import check_memory
from chainrule.models import Model, describe, fine_tune, make, n_params
from chainrule.models import family as family_of
from chainrule.models.bert.heads import body_of
from chainrule.models.heads import with_head
from chainrule.models.tuning import Method
from chainrule.nn.init import unfilled
from chainrule.tasks.memory import counted_with
from chainrule.tasks.named import Data
from chainrule.tasks.registry import task_of
from chainrule.tasks.task import EvalBatches, Task
from chainrule.text import Tokenizer

HEAD = ("classes", "labels")  # what the head of a classifier follows from

# Fields of a model's config that say how it learns, not what it computes once it has learned.
LEARNING = {"dropout", "label_smoothing", "scheduled_sampling"}


class Setup(NamedTuple):
    """A task and a model that fit each other, and the batches that are cut for the model."""

    task: Task
    model: Any
    batches: BatchSource | None
    """None if a step reads all data."""
    eval_batches: EvalBatches

    @classmethod
    def new(
        cls,
        family: str,
        data: Data,
        tokenizer: Tokenizer | None,
        training: Any,
        start: Model | None = None,
        name: str = "",
        method: Method | None = None,
        given_up: bool = False,
        **size: Any,
    ) -> Self:
        """For a model of a family, new or with the weights of `start`; `size` are fields of its config.

        The task is that of the family, or the one with this `name`. With a `method` only what it says learns. A start
        that is `given_up` is not copied: its parameters learn.

        The order is given: the vocabulary follows from the text, the size of the model from the vocabulary, and how
        examples are cut from the model.
        """
        kind = task_of(family, name)
        options = {name: size.pop(name) for name in kind.options if name in size}
        task = kind.of(data, tokenizer, **options)
        check_frozen(training, start)
        sizes = size | task.sizes()
        if start is None:
            check_memory(n_params({"model_type": family} | sizes))
            task.check(family_of(family).config(**sizes), training)
            model = make(family, **sizes)
            task.prepare(model)
        else:
            started = task.begun_with(start, training.seed, given_up=given_up)
            model = begun_with(started, family, sizes, given_up=given_up)
            if type(start) is not type(model):  # its head is new
                task.prepare(model)
            if method is not None:
                method = task.tuned_by(method)
                method.apply(model)
            with counted_with(method):
                if "block_size" not in size:
                    task = task.for_start(model, training)
                task.check(model.config, training)
        return cls.of(task, model, training)

    @classmethod
    def of(cls, task: Task, model: Any, training: Any) -> Self:
        """With a model that is there, as when a run is resumed."""
        if task.by_epoch:
            return cls(task.fitted(model), model, None, [])
        if training.freeze == "body":
            freeze_body(model)
        size, steps = training.batch_size, training.max_steps if training.budget is None else None
        with precision(training.precision):  # a frozen body, or a reference, reads the texts here
            task = task.fitted(model)
            held_out = task.eval_batches(model, batch_size=size, limit=training.eval_windows)
            batches = task.batches(model, batch_size=size, seed=training.seed, steps=steps)
        return cls(task, model, batches, held_out)


def check_frozen(config: Any, start: Model | None) -> None:
    """What does not learn must have learned before."""
    freeze = getattr(config, "freeze", "none")
    if start is None and freeze != "none":
        raise ConfigError.of(
            "train",
            {"freeze": freeze},
            "must be none for a new body, which knows nothing; or begin with a model that has learned",
        )


def begun_with(start: Model, family: str, sizes: Mapping[str, Any], *, given_up: bool = False) -> Model:
    """A model of a family with the weights of `start`: the same one, or its body with a new head.

    What only says how it learns may differ, and the context where no weight belongs to a position. All else must be
    the same: the weights would not fit, or would fit and mean something else, as with another number of heads.
    """
    start, sizes = _with_labels(start, sizes), _with_rows(start, sizes)
    kind = family_of(family).model
    # A new head reads the body in its own way.
    free = LEARNING if type(start) is kind else LEARNING | {"pooling"}
    for name, value in sizes.items():
        there = getattr(start.config, name, value)
        if there != value and name not in free and not _context_alone(start, name, value):
            said = f" is {value}, in the model to begin with {there} (must be the same: leave it out)"
            raise ConfigError("train: ", Setting(name), said)
    if type(start) is not kind:
        return with_head(start, kind, **sizes)
    with unfilled():
        model = kind(replace(start.config, **sizes))
    if given_up:
        model.share(start)
    else:
        model.load(start.arrays())
    return model


def _with_rows(start: Model, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes with the vocabulary of the model, which may have more rows than there are tokens."""
    rows, tokens = getattr(start.config, "vocab_size", 0), sizes.get("vocab_size", 0)
    return dict(sizes) | ({"vocab_size": rows} if rows > tokens > 0 else {})


def _context_alone(model: Model, name: str, value: Any) -> bool:
    """It is the context that differs, and the model has as many weights with the other one."""
    there = describe(model)
    return name == "block_size" and n_params(there | {name: value}) == n_params(there)


def _with_labels(start: Model, sizes: Mapping[str, Any]) -> Model:
    """The model itself if its head tells these labels apart, else its body with a new head for them."""
    head = {name: sizes[name] for name in HEAD if name in sizes and hasattr(start.config, name)}
    same = all(getattr(start.config, name) == value for name, value in head.items())
    return start if same else fine_tune(start, type(start), **head)


def freeze_body(model: Model) -> None:
    """Let the head learn alone: a classifier on what a trained body says of a text."""
    body = body_of(model)
    if body is None or body is model:
        rule = f"must be none for {kind_of(model)}: only a head on a BERT has a body"
        raise ConfigError.of("train", {"freeze": "body"}, rule)
    body.freeze()
    if hasattr(body, "pooler"):  # a part of the head: what it makes of [CLS] depends on the labels
        body.pooler.unfreeze()
