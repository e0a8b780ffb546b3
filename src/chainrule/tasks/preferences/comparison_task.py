"""Comparisons: prompts with two answers each, of which one was preferred; what tasks on them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from chainrule.align.dpo import Preference
from chainrule.data import PreferenceCorpus, Split, load_preferences
from chainrule.data.batches.padded import Bucketed
from chainrule.data.order import Items
from chainrule.data.read.preferences import SIDES, TIES, Comparison
from chainrule.errors import ChainruleError, ConfigError, DataError
from chainrule.models import Model
from chainrule.models.suited import RULES, Begun, Suited
from chainrule.tasks.task import EvalBatches, Task
from chainrule.text import Tokenizer
from chainrule.text.chat.answers import AnswerCoder
from chainrule.types import Ids

SPLIT = Split(validation=0.1, test=0.0)


class Encoded(NamedTuple):
    """A comparison as the model reads it, and what the model that training begins with says of both answers."""

    ids: Preference
    reference: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class ComparisonTask(Task):
    """Comparisons to train on and to evaluate on: a tenth of the prompts, chosen by their hash."""

    find = staticmethod(load_preferences)
    default: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ("skip_ties",)
    unit: ClassVar[str] = "nats_per_pair"
    perplexity: ClassVar[bool] = False
    counted: ClassVar[str] = "pairs"
    own_loss: ClassVar[bool] = False
    verb: ClassVar[str]
    """As `chainrule align` calls it."""
    new_head: ClassVar[bool] = False
    """What is trained is a new head on the body of a model, not the model itself."""
    corpus: PreferenceCorpus
    tokenizer: Tokenizer
    training: Any
    """Comparisons, and once there is a model they are `Encoded`."""
    validation: Any
    skip_ties: bool = False
    """Leave out pairs whose answers are the same, which are refused otherwise."""
    ties: int = 0
    """Pairs whose answers are the same, and are left out."""
    too_long: int = 0
    """Pairs that do not fit into the context of the model, and are left out."""

    @classmethod
    def of(
        cls,
        data: PreferenceCorpus,
        tokenizer: Tokenizer | None = None,
        *,
        eval_only: bool = False,
        **options: Any,
    ) -> Self:
        """A model that compares has learned before: it comes with its tokenizer."""
        if tokenizer is None:
            raise unlearned(cls.verb)
        given = {name: value for name, value in options.items() if value is not None}
        if eval_only:  # of answers that are the same none is the better one
            given["skip_ties"] = True
        rows = data.without_ties(skip=given.get("skip_ties", False))
        if not rows:
            raise DataError(f"{data.name}: {_same(len(data.comparisons))}")
        training, validation = SPLIT.held_back(rows, lambda row: row.asked, eval_only=eval_only)
        if not eval_only and not (training and validation):
            prompts = len({row.asked for row in rows})
            said = f"{len(rows)} pairs of {prompts} prompt{'s' * (prompts != 1)}"
            raise DataError(f"{data.name}: {said} (must be enough prompts to hold back one in ten)")
        ties = len(data.comparisons) - len(rows)
        return cls(data, tokenizer, training, validation, ties=ties, **given)

    def facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.options}

    def prepare(self, model: Model) -> None:
        """Called for a new model, which could not have answered anything."""
        if not self.new_head:
            raise unlearned(self.verb)

    @classmethod
    def suited(cls, data: PreferenceCorpus, **begun: Unpack[Begun]) -> Suited:
        """A few passes: a model that has learned already soon knows each pair."""
        return RULES[cls.verb](round((1 - SPLIT.validation) * len(data.comparisons)))

    def fitted(self, model: Model) -> Self:
        """With the ids that the model reads, without pairs that are longer than its context."""
        longest = None if getattr(model, "any_length", False) else model.context
        parts, left_out, ties = [], 0, self.ties
        for rows in (self.training, self.validation):
            encoded = self.encoded(rows)
            ties += len(rows) - len(encoded)
            fits = [row for row in encoded if longest is None or length(row.ids) <= longest]
            if encoded and not fits:
                rule = f"must fit into the context of {longest} tokens"
                raise DataError(
                    f"{self.corpus.name}: {len(encoded)} pairs are longer than the model reads ({rule})"
                )
            left_out += len(encoded) - len(fits)
            parts.append(fits)
        return replace(self, training=parts[0], validation=parts[1], ties=ties, too_long=left_out)

    def encoded(self, rows: Sequence[Comparison]) -> list[Encoded]:
        """Comparisons as ids, in the chat format of the model if it has one.

        Answers that differ as texts may be the same ids: these are ties as well.
        """
        coder = AnswerCoder(self.tokenizer)
        try:
            asked = [row.prompt for row in rows]
            prompts = coder.prompts(asked)
            sides = [
                coder.answers(asked, [getattr(r, side) for r in rows], [side in r.cut for r in rows])
                for side in SIDES
            ]
        except DataError as error:
            raise DataError(f"{self.corpus.name}: {error}") from error
        found = []
        for row, ids in zip(rows, map(Preference, prompts, *sides), strict=True):
            where = f"{self.corpus.name}: line {row.line}"
            if not all(ids):
                empty = Preference._fields[list(map(bool, ids)).index(False)]
                raise DataError(f"{where}: {empty!r} has no tokens (must have at least one)")
            if ids.chosen != ids.rejected:
                found.append(Encoded(ids))
            elif not self.skip_ties:
                raise DataError(f"{where}: chosen and rejected are the same tokens ({TIES})")
        if rows and not found:
            raise DataError(f"{self.corpus.name}: {_same(len(rows))}")
        return found

    def amount(self) -> str:
        tied = f"; {self.ties:,} whose answers are the same are left out" if self.ties else ""
        long = f"; {self.too_long:,} are longer than the context and left out" if self.too_long else ""
        held_out = f"{len(self.validation):,} to evaluate on"
        return f"{len(self.training):,} pairs of {self.corpus.name} and {held_out}{tied}{long}"

    def evaluate(self, model: Any, batches: EvalBatches) -> dict[str, Any]:
        return super().evaluate(model, batches) | ({"ties": self.ties} if self.ties else {})


class ComparisonBatches(Bucketed):
    """Encoded comparisons in random order, of like lengths."""

    def __init__(self, rows: Sequence[Encoded], *, batch_size: int, block_size: int, seed: int = 0) -> None:
        self.encoded = rows
        lengths = np.array([length(row.ids) for row in rows])
        super().__init__(lengths, batch_size=batch_size, block_size=block_size, seed=seed, pool=8)

    def rows(self, items: Items) -> tuple[Any, Ids]:
        return self.batched([self.encoded[item] for item in items])

    def batched(self, rows: Sequence[Encoded]) -> tuple[Any, Ids]:
        """The inputs and targets of these comparisons."""
        raise NotImplementedError


def length(preference: Preference) -> int:
    """Tokens of the longer text."""
    return len(preference.prompt) + max(len(preference.chosen), len(preference.rejected))


def _same(pairs: int) -> str:
    return f"the answers of all {pairs} pairs are the same (some must differ)"


def unlearned(verb: str) -> ChainruleError:
    """Alignment is of a model that can answer already."""
    rule = "must begin with one that has learned: start=, on the command line BASE"
    return ConfigError(f"{verb}: a new model ({rule})")
