"""A task: what a model is trained on, evaluated by and asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self, Unpack

from chainrule.data import BatchSource, spread
from chainrule.errors import ConfigError
from chainrule.models.suited import Begun, Suited
from chainrule.models.tuning import Method
from chainrule.tasks.answer_options import DEFAULTS, Answer, AnswerOptions, Prompts, Tell, show_text, silent
from chainrule.tasks.metrics import Share
from chainrule.text import Tokenizer
from chainrule.text.training.recipe import Recipe
from chainrule.types import Ids

EvalBatches = Sequence[tuple[Any, Ids]]
TOGETHER = 32  # prompts that are answered in one batch


class Task:
    """Training batches, evaluation batches and a metric, of one kind of training; a subclass for each kind.

    An object holds data. What needs none, such as answering a prompt, is a class method.
    """

    name: ClassVar[str] = ""
    """What a run writes down, if it is not the task of the model's family."""
    find: ClassVar[Callable[..., Any]]
    """The function of `data` that reads the data of a name or path, of a table these columns."""
    default: ClassVar[str]
    """The data that are there without a download."""
    options: ClassVar[tuple[str, ...]] = ()
    """Options of `of` beside the tokenizer, which a checkpoint keeps."""
    models: ClassVar[tuple[str, ...]] = ()
    """Those of the options that are paths of models; a run reads them, and `of` is given each as a `NamedModel`."""
    functions: ClassVar[tuple[str, ...]] = ()
    """Those of the options that are functions: a run keeps their names, and is given them again when it is resumed."""
    unit: ClassVar[str] = "nats_per_token"
    """What the loss is measured in."""
    perplexity: ClassVar[bool] = True
    """The loss, or its first part, is that of tokens, and its exponent a perplexity."""
    model: ClassVar[str]
    """A model of this task in words, such as "a classifier"."""
    command: ClassVar[str] = "train {family}"
    """The command that trains its models."""
    used_by: ClassVar[str] = "sample"
    """The command that uses a trained model."""
    writes: ClassVar[bool] = False
    """The answers are texts that the model writes, token by token; all options of sampling apply."""
    likeliest: ClassVar[bool] = False
    """Unless drawing is asked for, the answer is the likeliest token again and again."""
    reads: ClassVar[tuple[str, ...]] = ()
    """The fields of `Sampling` that matter to a model that does not write."""
    scored: ClassVar[str] = ""
    """The first of the scores, if they are measured at every evaluation of a training: it says which is best."""
    watched: ClassVar[bool] = False
    """The scores are measured at every evaluation, and the loss says which is best."""
    own_loss: ClassVar[bool] = True
    """The loss is that of the model itself and needs nothing beside the data, so any model of the family has one."""
    from_start: ClassVar[bool] = False
    """It compares with the model that its run began with, which `compared_with` is given when the run is resumed."""
    baseline: ClassVar[str] = ""
    """The family whose result every run is told first: it is trained in a second, and must be beaten."""
    counted: ClassVar[str] = "tokens"
    """What a rate counts. Where it is not tokens, a step reads `batch_size` of them."""
    by_epoch: ClassVar[bool] = False
    """Training reads all data in each step, not a batch."""
    special_tokens: ClassVar[tuple[str, ...]] = ()
    """What a tokenizer must have beside the tokens of texts."""
    corpus: Any
    tokenizer: Tokenizer
    training: Any
    validation: Any

    # -- data ------------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, data: Any, tokenizer: Tokenizer | None = None, *, eval_only: bool = False) -> Self:
        """The task with data as `find` reads them; with `eval_only` all of them are for evaluation."""
        raise NotImplementedError

    @classmethod
    def texts(cls, data: Any, *, held_out: bool) -> list[str]:
        """The texts to train on, with `held_out` also those to evaluate on, of data as `find` gives them."""
        raise NotImplementedError

    @classmethod
    def learned(cls, data: Any, name: str) -> Tokenizer | None:
        """The tokenizer of this name, such as bpe:4000, learned from the data; None if it is the name of a file."""
        recipe = Recipe.of(name)
        if recipe is None:
            return None
        return recipe.learn(cls.texts(data, held_out=recipe.kind == "char"), cls.special_tokens)

    def sizes(self) -> dict[str, Any]:
        """The fields of a model's config that follow from the data, with their values."""
        return {"vocab_size": self.tokenizer.vocab_size}

    @classmethod
    def suited(cls, data: Any, **begun: Unpack[Begun]) -> Suited:
        """Sizes and settings that suit the amount of data, for a new model or one with the weights of `start`."""
        return Suited({}, {})

    def check(self, sizes: Any, training: Any) -> None:
        """Refuse what the data or the memory are too small for, before a model of these sizes is made."""

    def begun_with(self, model: Any, seed: int, *, given_up: bool = False) -> Any:
        """The model that a training begins with, with what the task needs beside it, such as rows for new tokens.

        Of a model that is `given_up` it may take the parameters themselves.
        """
        return model

    def tuned_by(self, method: Method) -> Method:
        """The method with what follows from the task: which rows of tokens are new, and learn too."""
        return method

    def for_start(self, model: Any, training: Any) -> Self:
        """The task with windows of a length that suits the training of a model that has learned elsewhere."""
        return self

    def fitted(self, model: Any) -> Self:
        """The task with what the model knows already, such as the numbers of its labels."""
        return self

    def compared_with(self, start: Any) -> Self:
        """The task of a run that began with the model `start`, not with the one that is there now."""
        return self

    def prepare(self, model: Any) -> None:
        """Give a new model what is counted in the data, not learned."""

    @property
    def talks(self) -> bool:
        """The model answers what a person says, in a chat format."""
        return self.used_by == "chat"

    def amount(self) -> str:
        """How much data there are, in words."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """The values of `options`."""
        return {}

    # -- training and evaluation -----------------------------------------------------------------------------------

    def learner(self, model: Any) -> Any:
        """What is trained: the model itself, or one around it whose loss is another."""
        return model

    def batches(self, model: Any, *, batch_size: int, seed: int = 0, steps: int | None = None) -> BatchSource:
        """Training batches; `steps` is the length of the training, None while it is not known."""
        return self.cut(self.training, model, batch_size, seed)

    def eval_batches(self, model: Any, *, batch_size: int, limit: int) -> EvalBatches:
        """Evaluation batches, of at most `limit` windows or examples."""
        return list(self.cut(self.eval_examples(limit), model, batch_size).once())

    def eval_examples(self, limit: int) -> list[Any]:
        """Examples to evaluate on, from everywhere in the data: their beginning may be of one kind."""
        return [self.validation[i] for i in spread(len(self.validation), limit)]

    def cut(self, rows: Any, model: Any, batch_size: int, seed: int = 0) -> Any:
        """Batches of these examples, in random order or `once`, as long as the model reads them."""
        raise NotImplementedError

    def eval_rows(self, model: Any) -> int:
        """How many windows or examples there are to evaluate on."""
        return len(self.validation)

    def share(self, model: Any, batches: EvalBatches) -> Share:
        """How much of the evaluation data these batches are."""
        total = self.eval_rows(model)
        used = min(total, sum(len(targets) for _, targets in batches))
        return Share(used, total, "windows" if self.counted == "tokens" else self.counted)

    def measures(self, nats: float, batches: EvalBatches) -> dict[str, float]:
        """A loss on these batches in units that can be compared, by name; none if there is no such unit."""
        return {}

    def scores(self, model: Any, batches: EvalBatches) -> dict[str, float | None]:
        """How well the model does its task on these batches, beyond its loss."""
        return {}

    def evaluate(self, model: Any, batches: EvalBatches) -> dict[str, Any]:
        """The loss on these batches in all units, the scores, and what else is known, by name."""
        parts = model.eval().mean_losses(batches)
        found: dict[str, Any] = {self.unit: sum(parts), **self.measures(sum(parts), batches)}
        if self.perplexity:
            found["perplexity"] = math.exp(parts[0]) if parts[0] < 700 else math.inf
        return found | self.scores(model, batches)

    def loss_in_words(self, nats: float, batches: EvalBatches) -> str:
        """A loss on these batches with its units, for people."""
        units = {"nats": nats} | self.measures(nats, batches)
        return " = ".join(f"{value:.4f} {name.replace('_', ' ')}" for name, value in units.items())

    def baselines(self) -> dict[str, float]:
        """Losses that models without training reach on the evaluation data, by name."""
        raise ConfigError("baselines: not a task on plain text (counting is a baseline only there)")

    def vectors(self, model: Any) -> tuple[list[str], Any] | None:
        """Words and their vectors, which a run writes at its end; None if the model has none."""
        return None

    # -- answers ---------------------------------------------------------------------------------------------------

    def sample(self, model: Any, seed: int) -> str:
        """What the model writes without a prompt; nothing if it does not write."""
        return ""

    @classmethod
    def answer(
        cls,
        model: Any,
        tokenizer: Tokenizer,
        prompts: Prompts,
        options: AnswerOptions = DEFAULTS,
        tell: Tell = silent,
    ) -> Iterator[Answer]:
        """What a trained model answers to each prompt; `tell` is called with the number of tokens so far."""
        for first in range(0, len(prompts), TOGETHER):
            yield from cls.answer_some(model, tokenizer, prompts[first : first + TOGETHER], options)

    @classmethod
    def answer_some(
        cls, model: Any, tokenizer: Tokenizer, prompts: Prompts, options: AnswerOptions
    ) -> list[Answer]:
        """The answers to a few prompts, computed in one batch."""
        rule = "must be of a family that chainrule trains"
        raise ConfigError(f"{type(model).__name__}: does not answer prompts ({rule})")

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """An answer for people; `number` counts the answers from 0."""
        return show_text(answer, number)

    @classmethod
    def stream(
        cls, model: Any, tokenizer: Tokenizer, prompt: str, options: AnswerOptions
    ) -> Iterator[str] | None:
        """A single text as it is written, piece by piece; None if the model does not write in this way."""
        return None
