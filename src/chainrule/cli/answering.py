"""What `chainrule sample` does with models that do not write: a classifier says what each prompt is, a tagger what each
word of it is, a BERT guesses the words that are hidden in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import ops
from chainrule.data import SpecialIds, encode_words, segmented
from chainrule.data.batches.segmented import check_room
from chainrule.errors import DataError
from chainrule.generate import Sampling, fill_masks
from chainrule.models import BERTClassifier, BERTPretraining, BERTTagger, Model
from chainrule.text import Tokenizer

TOGETHER = 32  # texts in one batch
GUESSES = 5  # words for each gap

Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """What a kind of model is asked."""

    who: str
    answers: Callable[[Any, Tokenizer, Sequence[str], Sampling], Answers]
    """To some prompts, read together."""
    in_words: Callable[[dict[str, Any]], str]
    """An answer for a person."""
    reads: tuple[str, ...] = ()
    """The fields of `Sampling` that mean something."""

    def run(
        self, model: Model, tokenizer: Tokenizer, prompts: Sequence[str], options: Sampling
    ) -> Iterator[dict[str, Any]]:
        """An answer to each prompt."""
        for first in range(0, len(prompts), TOGETHER):
            yield from self.answers(model, tokenizer, prompts[first : first + TOGETHER], options)


def label_names(model: BERTClassifier) -> tuple[str, ...]:
    """Labels by number; a label without a name is its number."""
    return model.config.labels or tuple(map(str, range(model.config.classes)))


def labelled(model: BERTClassifier, tokenizer: Tokenizer, texts: Sequence[str], _: Sampling) -> Answers:
    """Of each text the likeliest label, its probability, and those of all labels

    Of a text beyond the model's context its beginning is read.
    """
    special = SpecialIds.of(tokenizer.special_ids)
    room = check_room(model.config.block_size, 1)
    names = label_names(model)
    rows = [tokenizer.encode(text)[:room] for text in texts]
    with model.answering():
        shares = ops.softmax(model(*segmented(rows, [None] * len(rows), special))).numpy()
    found = []
    for text, share in zip(texts, shares, strict=True):
        best = int(share.argmax())
        each = dict(zip(names, share.tolist(), strict=True))
        found.append({"prompt": text, "label": names[best], "probability": each[names[best]], "labels": each})
    return found


def _label(answer: dict[str, Any]) -> str:
    return f"{answer['label']}  {answer['probability']:.4f}"


def tagged(model: BERTTagger, tokenizer: Tokenizer, texts: Sequence[str], _: Sampling) -> Answers:
    """Of each word of each text, as white space parts them, the likeliest tag and its probability"""
    room = check_room(model.config.block_size, 1)
    rows, places = zip(*(encode_words(tokenizer, text.split()) for text in texts), strict=True)
    for text, ids in zip(texts, rows, strict=True):
        if not 0 < len(ids) <= room:
            raise DataError(f"sample: prompt {text[:60]!r} has {len(ids)} tokens (must be from 1 to {room})")
    batch = segmented(rows, [None] * len(rows), SpecialIds.of(tokenizer.special_ids))
    with model.answering():
        shares = ops.softmax(model(*batch)).numpy()[:, 1:]  # (B, T - 1, classes), without that of [CLS]
    names = label_names(model)
    found = []
    for text, share, firsts in zip(texts, shares, places, strict=True):
        words = [
            {"word": word, "tag": names[each.argmax()], "probability": float(each.max())}
            for word, each in zip(text.split(), share[firsts], strict=True)
        ]
        found.append({"prompt": text, "words": words})
    return found


def _tags(answer: dict[str, Any]) -> str:
    return " ".join(f"{word['word']}/{word['tag']}" for word in answer["words"])


def filled(model: BERTPretraining, tokenizer: Tokenizer, texts: Sequence[str], options: Sampling) -> Answers:
    """Of each text the likeliest words for each [MASK] in it, `top_k` of them"""
    k = min(options.top_k or GUESSES, tokenizer.vocab_size)
    return [
        {
            "prompt": text,
            "text": found.text,
            "masks": [[guess._asdict() for guess in gap] for gap in found.gaps],
        }
        for text, found in zip(texts, fill_masks(model, tokenizer, texts, k), strict=True)
    ]


def _guesses(answer: dict[str, Any]) -> str:
    """A line for each gap."""
    gaps = ([f"{guess['token']} {guess['probability']:.4f}" for guess in gap] for gap in answer["masks"])
    return "\n".join("  ".join(gap) for gap in gaps)


TASKS: dict[type[Model], Task] = {
    BERTClassifier: Task("a classifier", labelled, _label),
    BERTTagger: Task("a tagger", tagged, _tags),
    BERTPretraining: Task("a BERT", filled, _guesses, reads=("top_k",)),
}
