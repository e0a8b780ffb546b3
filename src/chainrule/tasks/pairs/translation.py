"""Translation: pairs of texts for a model that reads one and writes the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from chainrule.data import PairBatches, PairCorpus
from chainrule.errors import ConfigError, Setting
from chainrule.generate import Sampling, Translator
from chainrule.models import EncoderDecoder
from chainrule.tasks.answer_options import Answer, AnswerOptions, Prompts, Tell, show_text, silent
from chainrule.tasks.pairs.pair_task import Pairs, PairTask, held_back, texts_of
from chainrule.tasks.pairs.scheduled_sampling import ScheduledSampling
from chainrule.tasks.pairs.translating import translate_texts, translations
from chainrule.tasks.task import EvalBatches
from chainrule.text import Marks, Tokenizer
from chainrule.text.training.recipe import Recipe

POOL = 32  # batches' worth of pairs that are sorted by length, so that little is padded
TOGETHER = 64  # sources that are translated at a time
LIKELIEST = AnswerOptions(sampling=Sampling(temperature=0.0))


@dataclass(frozen=True)
class TranslationTask(PairTask):
    """Sources with their targets; a twentieth of them, chosen by the hash of the source, is for evaluation."""

    model: ClassVar[str] = "an encoder-decoder"
    writes: ClassVar[bool] = True
    likeliest: ClassVar[bool] = True
    special_tokens: ClassVar[tuple[str, ...]] = ("<s>", "</s>")
    beam: int = 1
    """Width of the search for the translations that are scored; 1 takes the likeliest token again and again."""

    @classmethod
    def of(cls, data: PairCorpus, tokenizer: Tokenizer | None = None, *, eval_only: bool = False) -> Self:
        """Without a tokenizer byte pairs are learned from both sides of the pairs to train on."""
        training, validation = ([], list(data.pairs)) if eval_only else held_back(data)
        if tokenizer is None:
            tokenizer = Recipe("bpe").learn(texts_of(training or validation), cls.special_tokens)
        return cls(data, tokenizer, training, validation)

    def fitted(self, model: EncoderDecoder) -> Self:
        """Both sides have the tokens of one tokenizer."""
        own = getattr(model.config, "source_vocab_size", None)
        if own is not None:
            raise ConfigError(
                f"{type(model).__name__}: source_vocab_size is {own} (must be none: one tokenizer reads both)"
            )
        Marks.of(self.tokenizer.special_ids, model.config.target_start)
        return self

    def batches(
        self, model: EncoderDecoder, *, batch_size: int, seed: int = 0, steps: int | None = None
    ) -> PairBatches | ScheduledSampling:
        """Pairs in random order, of like lengths."""
        pairs = self.cut(self.training, model, batch_size, seed)
        fraction = model.config.scheduled_sampling
        if not fraction:
            return pairs
        if steps is None:
            raise ConfigError(
                f"train: scheduled_sampling is {fraction:g} with a budget (must be 0: it grows with the number of "
                "steps, which a budget leaves open; give max_steps instead of budget)"
            )
        return ScheduledSampling(pairs, model, fraction=fraction, steps=steps, seed=seed)

    def cut(self, rows: Pairs, model: EncoderDecoder, batch_size: int, seed: int = 0) -> PairBatches:
        """Pairs of like lengths."""
        sources, targets = (
            [self.tokenizer.encode(text) for text in side] for side in zip(*rows, strict=True)
        )
        marks = Marks.of(self.tokenizer.special_ids, model.config.target_start)
        sources = [marks.around(source, model.config.block_size) for source in sources]
        sizes = {"batch_size": batch_size, "block_size": model.config.block_size}
        return PairBatches(sources, targets, start=marks.start, end=marks.end, seed=seed, pool=POOL, **sizes)

    def measures(self, nats: float, batches: EvalBatches) -> dict[str, float]:
        """In bits per byte of the targets in these batches, the same unit for every tokenizer."""
        targets = [target for _, target in self.eval_examples(_rows(batches))]
        tokens = sum(len(self.tokenizer.encode(target)) + 1 for target in targets)
        size = sum(len(target.encode("utf-8", "surrogatepass")) for target in targets)
        return {"bits_per_byte": nats / math.log(2) * tokens / size}

    def sample(self, model: EncoderDecoder, seed: int) -> str:
        """What the model makes of one of the sources to evaluate on."""
        source, _ = self.validation[seed % len(self.validation)]
        return f"{source} -> {translate_texts(model, self.tokenizer, [source])[0]}"

    def scores(self, model: EncoderDecoder, batches: EvalBatches) -> dict[str, float | None]:
        """The fraction of sources translated as one of their targets, BLEU (None without sacrebleu), and counts.

        The same source may have several targets: any of them will do. `cut` counts pairs with a side that is longer
        than the context.
        """
        pairs = self.eval_examples(_rows(batches))
        wanted: dict[str, list[str]] = {}
        for source, target in pairs:
            wanted.setdefault(source, []).append(target)
        sources = sorted(wanted, key=len)
        written: list[str] = []
        translator = Translator(model)
        for first in range(0, len(sources), TOGETHER):
            some = sources[first : first + TOGETHER]
            written += translate_texts(translator, self.tokenizer, some, self.beam)
        right = sum(text in wanted[source] for source, text in zip(sources, written, strict=True))
        most, encode = model.config.block_size, self.tokenizer.encode
        marks = Marks.of(self.tokenizer.special_ids, model.config.target_start)
        cut = sum(  # the end of a target is a token too
            len(encode(source)) + marks.extra > most or len(encode(target)) + 1 > most
            for source, target in pairs
        )
        found: dict[str, float | None] = {"exact": right / len(sources)}
        try:
            from sacrebleu import corpus_bleu
        except ImportError:  # an extra
            return found | {"pairs": len(pairs), "cut": cut, "bleu": None}
        found["bleu"] = corpus_bleu(written, [[wanted[source][0] for source in sources]]).score
        return found | {"pairs": len(pairs), "cut": cut}

    @classmethod
    def answer(
        cls,
        model: EncoderDecoder,
        tokenizer: Tokenizer,
        prompts: Prompts,
        options: AnswerOptions = LIKELIEST,
        tell: Tell = silent,
    ) -> Iterator[Answer]:
        """Translations of the prompts: the likeliest tokens, drawn ones, or those that a search finds."""
        if options.beam and options.logprobs:
            raise ConfigError(
                *("sample: ", Setting("logprobs")),
                " is given with beam (a search knows only the sum, which it prints: leave it out)",
            )
        yield from translations(model, tokenizer, prompts, options)

    @classmethod
    def show(cls, answer: Answer, number: int, options: AnswerOptions) -> str:
        """A line for each source, or each of several translations with its seed or score."""
        if options.num_samples == 1 and not options.logprobs:
            return str(answer["text"])
        return show_text(answer, number, " -> ")


def _rows(batches: EvalBatches) -> int:
    return sum(len(targets) for _, targets in batches)
