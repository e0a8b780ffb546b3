"""Distillation: a student learns from answers that a teacher has written to the same questions.

The answers become an ordinary file of conversations, from which any model is tuned. How near a student is to its
teacher is the mean KL divergence per token of the answers, KL(teacher ‖ student).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from chainrule import ops
from chainrule.data import Conversation
from chainrule.data.batches.conversations import Chats
from chainrule.data.batches.padded import gather
from chainrule.errors import ConfigError
from chainrule.generate import Sampling, answers
from chainrule.models import LanguageModel
from chainrule.text import Tokenizer
from chainrule.text.chat.masking import masked_ids
from chainrule.text.chat.roles import own_format

TOGETHER = 16  # conversations in a batch


def teacher_answers(
    teacher: LanguageModel,
    tokenizer: Tokenizer,
    questions: Sequence[str],
    sampling: Sampling,
    tell: Callable[[int], None] = lambda tokens: None,
) -> list[Conversation]:
    """Each question with the teacher's answer; a question to which it says nothing is left out."""
    asked = [([{"role": "user", "content": question}], sampling) for question in questions]
    written = answers(teacher, tokenizer, asked, tell=tell)
    pairs = zip(questions, written, strict=True)
    return [Conversation.of(q, text) for q, request in pairs if (text := request.text.strip())]


def divergence(
    teacher: LanguageModel, student: LanguageModel, tokenizer: Tokenizer, talks: Sequence[Conversation]
) -> float:
    """Mean KL(teacher ‖ student) in nats per token of the answers; both must have this tokenizer."""
    rows = [model.config.vocab_size for model in (teacher, student)]
    if min(rows) < tokenizer.vocab_size or rows[0] != rows[1]:
        said = f"teacher of {rows[0]} tokens, student of {rows[1]}, tokenizer of {tokenizer.vocab_size}"
        raise ConfigError(f"distill: {said} (must be one vocabulary)")
    chats = Chats.of(masked_ids(tokenizer, own_format(tokenizer), [talk.messages for talk in talks]))
    total, count = 0.0, 0
    for first in range(0, len(talks), TOGETHER):
        each, n = _of_batch(teacher, student, chats, np.arange(first, min(first + TOGETHER, len(talks))))
        total, count = total + each, count + n
    if not count:
        raise ConfigError("distill: no answer within the context of the models (must be at least one)")
    return total / count


def _of_batch(
    teacher: LanguageModel, student: LanguageModel, chats: Chats, items: np.ndarray
) -> tuple[float, int]:
    """The sum of KL over the answers' tokens, and their number."""
    longest = min(int(chats.documents.lengths_of(items).max()), teacher.context, student.context)
    ids, _ = gather(chats.documents, items, longest)
    flags = type(chats.documents)(chats.learned.astype(np.int32), chats.documents.starts)
    counts = gather(flags, items, longest)[0][:, 1:].astype(bool)
    logits = []
    for model in (teacher, student):
        with model.answering():
            logits.append(model(ids[:, :-1]).numpy()[counts])
    return float(ops.kl_divergence_logits(*logits, reduction="sum").item()), int(counts.sum())
