"""Pairs of texts for a model that reads one and writes the other."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from chainrule.data import Pair, PairBatches, PairCorpus, Split, load_pairs, pad, spread
from chainrule.errors import DataError
from chainrule.generate import Translator, translate
from chainrule.models import Seq2Seq
from chainrule.tasks.scheduled_sampling import ScheduledSampling, known_steps
from chainrule.tasks.settings import Settings
from chainrule.tasks.task import Material
from chainrule.text import CharTokenizer, Tokenizer
from chainrule.types import Ids

SPLIT = Split(validation=0.05, test=0.0)
POOL = 32  # batches' worth of pairs that are sorted by length, so that little is padded
TOGETHER = 64  # sources that are translated at a time
# What begins and ends a target.
MARKS = (("<s>", "</s>"), ("[CLS]", "[SEP]"), ("<|endoftext|>", "<|endoftext|>"))


@dataclass(frozen=True)
class Translations(Material):
    """Sources with their targets; a twentieth of them, chosen by the hash of the source, is held back."""

    default: ClassVar[str] = "docstrings"
    corpus: PairCorpus
    tokenizer: Tokenizer
    training: list[tuple[str, str]]
    validation: list[tuple[str, str]]

    @classmethod
    def find(cls, name: str | os.PathLike[str]) -> PairCorpus:
        """The pairs of this name, file, or two files A+B."""
        return load_pairs(name if isinstance(name, str) else Path(name))

    @classmethod
    def of(cls, data: PairCorpus, tokenizer: Tokenizer | None = None, *, judge_only: bool = False) -> Self:
        """Every character of both sides is a token unless a tokenizer says otherwise."""
        if tokenizer is None:
            text = "".join({character for pair in data.pairs for side in pair for character in side})
            tokenizer = CharTokenizer.train(text, MARKS[0])
        marks(tokenizer)
        if judge_only:
            return cls(data, tokenizer, [], list(data.pairs))
        parts: dict[str, list[tuple[str, str]]] = {"train": [], "validation": []}
        for pair in data.pairs:
            parts[SPLIT.part(pair[0])].append(pair)
        if not all(parts.values()):
            raise DataError(
                f"{data.name}: {len(data.pairs)} pairs, {len(parts['validation'])} to judge by "
                "(must be enough to hold back one in twenty)"
            )
        return cls(data, tokenizer, parts["train"], parts["validation"])

    def sizes(self) -> dict[str, Any]:
        """Both sides share a vocabulary."""
        return {"vocab_size": self.tokenizer.vocab_size, "source_vocab_size": None}

    def batches(self, model: Seq2Seq, config: Settings) -> PairBatches | ScheduledSampling:
        """Pairs in random order, of like lengths."""
        pairs, share = self._batches(self.training, model, config), model.config.scheduled_sampling
        if not share:
            return pairs
        return ScheduledSampling(pairs, model, share=share, steps=known_steps(config), seed=config.seed)

    def exam(self, model: Seq2Seq, config: Settings) -> Sequence[tuple[Pair, Ids]]:
        """The pairs held back, at most as many as `eval_windows`."""
        return list(self._batches(self._judged(config.eval_windows), model, config).once())

    def _judged(self, limit: int) -> list[tuple[str, str]]:
        """Pairs from everywhere in the file: its beginning may be of one kind."""
        return [self.validation[i] for i in spread(len(self.validation), limit)]

    def _batches(self, pairs: list[tuple[str, str]], model: Seq2Seq, config: Settings) -> PairBatches:
        sources, targets = (
            [self.tokenizer.encode(text) for text in side] for side in zip(*pairs, strict=True)
        )
        start, end = marks(self.tokenizer)
        sizes = {"batch_size": config.batch_size, "block_size": model.config.block_size}
        return PairBatches(sources, targets, start=start, end=end, seed=config.seed, pool=POOL, **sizes)

    def amount(self) -> str:
        """How much there is, in words."""
        return f"{len(self.training):,} pairs of {self.corpus.name} and {len(self.validation):,} to judge by"

    def measures(self, nats: float, exam: Sequence[tuple[Pair, Ids]]) -> dict[str, float]:
        """In bits per byte of the targets in the exam, the same unit for every tokenizer."""
        targets = [target for _, target in self._judged(_rows(exam))]
        tokens = sum(len(self.tokenizer.encode(target)) + 1 for target in targets)
        size = sum(len(target.encode("utf-8", "surrogatepass")) for target in targets)
        return {"bits_per_byte": nats / math.log(2) * tokens / size}

    def sample(self, model: Seq2Seq, seed: int) -> str:
        """What the model makes of one of the sources held back."""
        source, _ = self.validation[seed % len(self.validation)]
        return f"{source} -> {translate_texts(model, self.tokenizer, [source])[0]}"

    def scores(self, model: Seq2Seq, exam: Sequence[tuple[Pair, Ids]]) -> dict[str, float]:
        """The share of sources that are translated as one of their targets, and BLEU if sacrebleu is there.

        The same source may have several targets: any of them will do.
        """
        wanted: dict[str, list[str]] = {}
        for source, target in self._judged(_rows(exam)):
            wanted.setdefault(source, []).append(target)
        sources = sorted(wanted, key=len)
        written: list[str] = []
        translator = Translator(model)
        for first in range(0, len(sources), TOGETHER):
            written += translate_texts(translator, self.tokenizer, sources[first : first + TOGETHER])
        right = sum(text in wanted[source] for source, text in zip(sources, written, strict=True))
        found = {"exact": right / len(sources)}
        try:
            from sacrebleu import corpus_bleu
        except ImportError:  # an extra
            return found
        return found | {"bleu": corpus_bleu(written, [[wanted[source][0] for source in sources]]).score}


def _rows(exam: Sequence[tuple[Pair, Ids]]) -> int:
    return sum(len(targets) for _, targets in exam)


def translate_texts(model: Seq2Seq | Translator, tokenizer: Tokenizer, sources: Sequence[str]) -> list[str]:
    """The likeliest target of each source, token by token; of a source beyond the context its beginning is read."""
    start, end = marks(tokenizer)
    ids, mask = pad([tokenizer.encode(text)[: model.config.block_size] for text in sources])
    return [tokenizer.decode(row) for row in translate(model, ids, mask, start=start, end=end)]


def marks(tokenizer: Tokenizer) -> tuple[int, int]:
    """The ids of the tokens that begin and end a target."""
    ids = tokenizer.special_ids
    for start, end in MARKS:
        if start in ids and end in ids:
            return ids[start], ids[end]
    raise DataError(
        f"tokenizer: special tokens {', '.join(ids) or 'none'} (must have <s> and </s>: train it with "
        "--special-tokens '<s>' '</s>')"
    )
