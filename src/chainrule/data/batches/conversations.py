"""Batches of conversations: several per row, and of each only the answers are learned.

A conversation that is longer than a row is cut at its end; one of which no answer is left is dropped. Both are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from chainrule.data.batches.packed import Packed, PackedBatches
from chainrule.data.batches.padded import Mask, gather, shift
from chainrule.data.encoded import Encoded
from chainrule.data.order import Items
from chainrule.errors import DataError, Setting
from chainrule.types import IGNORE, Ids


class Chats(NamedTuple):
    """Encoded conversations, and which of their tokens are learned."""

    documents: Encoded
    learned: Mask  # (tokens,)

    @classmethod
    def of(cls, rows: Sequence[tuple[Ids, Mask]]) -> Chats:
        """From the ids of each conversation, and which of them are learned."""
        flags = [learned for _, learned in rows]
        joined = np.concatenate(flags) if flags else np.empty(0, bool)
        return cls(Encoded.of([ids for ids, _ in rows]), joined)

    @property
    def answers(self) -> Ids:
        """Learned tokens of each conversation (conversations,)."""
        before = np.concatenate([[0], np.cumsum(self.learned)])
        return np.diff(before[self.documents.starts])

    @property
    def prompts(self) -> Ids:
        """Tokens of each conversation that are only read (conversations,)."""
        return self.documents.lengths - self.answers

    def some(self, items: Sequence[int] | Items) -> Chats:
        """These conversations."""
        starts = self.documents.starts
        return Chats.of(
            [(self.documents[i], self.learned[starts[i] : starts[i + 1]]) for i in map(int, items)]
        )


class Fitted(NamedTuple):
    """Conversations that fit into rows of a length, and what became of the others."""

    chats: Chats
    kept: Items
    """Their numbers among all."""
    cut: Items
    """The numbers of those that lost their end."""
    dropped: Items
    """The numbers of those that are left out: no answer would remain."""

    @classmethod
    def of(cls, chats: Chats, block_size: int) -> Fitted:
        """Each conversation with at most `block_size` + 1 tokens: the last is learned and not read."""
        rows, kept, cut, dropped = [], [], [], []
        starts = chats.documents.starts
        for number, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            stop = min(end, start + block_size + 1)
            if not chats.learned[start + 1 : stop].any():
                dropped.append(number)
                continue
            if stop < end:
                cut.append(number)
            kept.append(number)
            rows.append((chats.documents.ids[start:stop], chats.learned[start:stop]))
        return cls(Chats.of(rows), *(np.array(numbers, np.int64) for numbers in (kept, cut, dropped)))

    def __str__(self) -> str:
        """2 cut at the end of the window, none dropped"""
        cut = f"{len(self.cut):,} cut at the end of the window" if len(self.cut) else "none cut"
        why = " (no answer would be left)" if len(self.dropped) else ""
        return f"{cut}, {len(self.dropped) or 'none'} dropped{why}"


class ConversationBatches(PackedBatches):
    """Rows of whole conversations in random order; each conversation once per epoch, and none sees another.

    >>> import numpy as np
    >>> from chainrule.data import ConversationBatches
    >>> from chainrule.data.batches.conversations import Chats
    >>> chats = Chats.of([([1, 2, 3], np.array([False, False, True])), ([4, 5], np.array([False, True]))])
    >>> batches = ConversationBatches(chats, batch_size=1, block_size=4)
    >>> inputs, targets = batches.batch(step=0)
    >>> inputs.ids.tolist(), inputs.segments.tolist(), targets.tolist()
    ([[1, 2, 4, 0]], [[1, 1, 2, 0]], [[-1, 3, 5, -1]])
    """

    def __init__(
        self, chats: Chats, *, batch_size: int, block_size: int, seed: int = 0, part: str = ""
    ) -> None:
        """`part` says in an error what the conversations are for."""
        self.fitted = Fitted.of(chats, block_size)
        self.documents = self.fitted.chats.documents
        if not len(self.documents):
            said = f"none of {len(chats.documents):,}{part} has an answer within {block_size} tokens ("
            rule = " must be larger, if the context of the model is, or the questions shorter)"
            raise DataError(f"conversations: {said}", Setting("window"), rule)
        super().__init__(self.documents, batch_size=batch_size, block_size=block_size, seed=seed)
        self.learned = np.where(self.fitted.chats.learned, self.documents.ids, IGNORE)

    @property
    def tokens(self) -> int:
        """Mean number of targets per batch."""
        counted = int(np.count_nonzero(self.fitted.chats.learned))
        return max(1, round(self.batch_size * counted / len(self.rows)))

    @property
    def truncated(self) -> float:
        """Fraction of the conversations that are cut or dropped."""
        lost = len(self.fitted.cut) + len(self.fitted.dropped)
        return lost / (len(self.fitted.kept) + len(self.fitted.dropped))

    def batch(self, step: int) -> tuple[Packed, Ids]:
        """Packed of ids (B, T) and segments (B, T); targets (B, T), IGNORE where no answer is"""
        inputs, targets = super().batch(step)
        return Packed(inputs, self.segments(step)), targets

    def once(self) -> Iterator[tuple[Ids, Ids]]:
        """Batches for evaluation: every conversation once, alone in its row, sorted by length."""
        items = np.argsort(self.documents.lengths, kind="stable")
        learned = Encoded(self.learned, self.documents.starts)
        for first in range(0, len(items), self.batch_size):
            some = items[first : first + self.batch_size]
            longest = int(self.documents.lengths_of(some).max())
            inputs, _ = shift(*gather(self.documents, some, longest))
            yield inputs, gather(learned, some, longest, IGNORE)[0][:, 1:]
