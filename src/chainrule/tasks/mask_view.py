"""The loss mask of conversations, token by token: which are trained, why, in which row, and what was cut.

It is read off the rows that a training gets, not computed beside them: what it shows is what is trained.

    view = mask_view(tokenizer, corpus.conversations, window=128)
    assert view[0].trained_text == " The capital of France is Paris.<|end|>"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from chainrule.data import Conversation, ConversationBatches
from chainrule.tasks.instruction import encode
from chainrule.text import Tokenizer
from chainrule.text.chat.roles import chat_tokenizer
from chainrule.types import IGNORE

ANSWER, END = "answer", "end of the answer"
GIVEN, MARK = "given", "mark of the format"
CUT, DROPPED = "cut: beyond the window", "dropped: no answer within the window"


class ShownToken(NamedTuple):
    """A token of a conversation, if it is trained, and why or why not."""

    id: int
    text: str
    trained: bool
    reason: str


@dataclass(frozen=True)
class ShownConversation:
    """A conversation as a training reads it."""

    number: int
    """Among all, from 0."""
    row: int | None
    """Of the packing; None if it is dropped."""
    start: int
    """Its first place in the row."""
    tokens: tuple[ShownToken, ...]

    @property
    def trained_text(self) -> str:
        """The tokens that are trained, joined."""
        return "".join(token.text for token in self.tokens if token.trained)

    @property
    def lost(self) -> int:
        """Tokens that no row holds."""
        return sum(token.reason in (CUT, DROPPED) for token in self.tokens)

    def runs(self) -> list[tuple[str, bool, list[str]]]:
        """Neighbors with the same reason: the reason, if they are trained, and their texts."""
        grouped = groupby(self.tokens, key=lambda token: (token.reason, token.trained))
        return [(reason, learned, [token.text for token in some]) for (reason, learned), some in grouped]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {"conversation": self.number, "row": self.row, "start": self.start, "lost": self.lost}
        return own | {"tokens": [token._asdict() for token in self.tokens]}


@dataclass(frozen=True)
class MaskView(Sequence[ShownConversation]):
    """Conversations with their masks, and what the packing of all of them is like."""

    window: int
    rows: int
    conversations: int
    cut: int
    dropped: int
    shown: tuple[ShownConversation, ...]

    def __len__(self) -> int:
        return len(self.shown)

    def __getitem__(self, index: Any) -> Any:
        return self.shown[index]


def mask_view(
    tokenizer: Tokenizer,
    conversations: Sequence[Conversation],
    window: int | None = None,
    limit: int | None = None,
) -> MaskView:
    """The masks of the first `limit` conversations, packed with all others into rows of `window` tokens.

    The tokenizer is used as `InstructionTask` does: without a chat template it gets that of roles. Without a window a
    row is as long as the longest conversation.
    """
    tokenizer = chat_tokenizer(tokenizer)
    chats = encode(tokenizer, list(conversations))
    window = window or max(1, int(chats.documents.lengths.max()) - 1)
    batches = ConversationBatches(chats, batch_size=1, block_size=window)
    fitted = batches.fitted
    placed: dict[int, tuple[int, int]] = {}
    for row, pieces in enumerate(batches.rows):
        starts = np.cumsum([0, *batches.lengths[pieces]])
        placed |= {int(fitted.kept[p]): (row, int(s)) for p, s in zip(pieces, starts, strict=False)}
    some = range(len(conversations) if limit is None else min(limit, len(conversations)))
    marks = set(tokenizer.special_ids.values())

    def shown(number: int) -> ShownConversation:
        ids = chats.documents[number].tolist()
        texts = [tokenizer.piece(id) if id in marks else tokenizer.decode([id]) for id in ids]
        if number not in placed:
            lost = (ShownToken(id, text, False, DROPPED) for id, text in zip(ids, texts, strict=True))
            return ShownConversation(number, None, 0, tuple(lost))
        row, start = placed[number]
        inputs, targets = batches.row(row)
        read = min(len(ids) - 1, window)
        assert inputs[start : start + read].tolist() == ids[:read]
        learned = [False, *(targets[start : start + read] != IGNORE).tolist()]
        reasons = [_reason(id in marks, flag) for id, flag in zip(ids, learned, strict=False)]
        beyond = len(ids) - len(learned)
        flags, why = [*learned, *[False] * beyond], [*reasons, *[CUT] * beyond]
        return ShownConversation(number, row, start, tuple(map(ShownToken, ids, texts, flags, why)))

    found = tuple(shown(number) for number in some)
    lost = len(fitted.cut), len(fitted.dropped)
    return MaskView(window, len(batches.rows), len(conversations), *lost, found)


def _reason(special: bool, learned: bool) -> str:
    if learned:
        return END if special else ANSWER
    return MARK if special else GIVEN
