"""What `chainrule sample` does with a classifier: it says what each prompt is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from chainrule import ops
from chainrule.autograd import no_grad
from chainrule.data import SpecialIds, segmented
from chainrule.data.segmented import check_room
from chainrule.models import BERTClassifier
from chainrule.text import Tokenizer

TOGETHER = 32  # texts in one batch


def labelled(model: BERTClassifier, tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Of each text the likeliest label, its probability, and those of all labels

    Of a text beyond the model's context its beginning is read. A label without a name is its number.
    """
    special = SpecialIds.of(tokenizer.special_ids)
    room = check_room(model.config.block_size, 1)
    names = model.config.labels or tuple(map(str, range(model.config.classes)))
    for first in range(0, len(texts), TOGETHER):
        some = texts[first : first + TOGETHER]
        rows = [tokenizer.encode(text)[:room] for text in some]
        with no_grad():
            shares = ops.softmax(model.eval()(*segmented(rows, [None] * len(rows), special))).numpy()
        for text, share in zip(some, shares, strict=True):
            best = int(share.argmax())
            each = dict(zip(names, share.tolist(), strict=True))
            yield {"prompt": text, "label": names[best], "probability": each[names[best]], "labels": each}


def in_words(answer: dict[str, Any]) -> str:
    """A line for a person."""
    return f"{answer['label']}  {answer['probability']:.4f}"
