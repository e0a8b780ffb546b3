"""Distillation: a student that learns from its teacher's answers comes nearer to it."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.align.distill import divergence, teacher_answers
from chainrule.data import Conversation, ConversationCorpus
from chainrule.errors import ConfigError
from chainrule.generate import Sampling
from chainrule.runs import Run
from chainrule.tasks import InstructionTask
from chainrule.text import CharTokenizer
from chainrule.text.chat.roles import chat_tokenizer
from chainrule.train import TrainConfig

WORDS = [a + b + c for a in "bdg" for b in "aeiou" for c in "klmn"]
CORPUS = ConversationCorpus("words", "test", tuple(Conversation.of(word, word[::-1]) for word in WORDS))
TOKENIZER = chat_tokenizer(CharTokenizer.train("".join(InstructionTask.texts(CORPUS, held_out=True))))


def model(seed: int, width: int) -> Any:
    cr.seed(seed)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": width, "block_size": 16}
    return cr.models.make("gpt", **sizes, vocab_size=TOKENIZER.vocab_size)


def tuned(folder: Path, corpus: ConversationCorpus, start: Any) -> Any:
    config = TrainConfig(max_steps=100, batch_size=8, lr=1e-2, warmup=5, eval_every=100, keep="last")
    run = Run.new(folder, corpus, config, "gpt", TOKENIZER, start, task="instruction")
    run.train()
    return run.model.eval()


@pytest.mark.requirement("R-381")
def test_a_student_comes_nearer_to_its_teacher(tmp_path: Path) -> None:
    teacher = tuned(tmp_path / "teacher", CORPUS, model(0, 32))
    drawn = [teacher_answers(teacher, TOKENIZER, WORDS, Sampling(max_new_tokens=8, seed=n)) for n in range(6)]
    assert [talk.question for talk in drawn[0]] == WORDS and len({talk.answer for talk in drawn[0]}) > 5
    samples = ConversationCorpus("samples", "test", tuple(dict.fromkeys(chain(*drawn))))
    held_out, student = samples.parts()[1], model(1, 16)
    before = divergence(teacher, student, TOKENIZER, held_out)
    after = divergence(teacher, tuned(tmp_path / "student", samples, student), TOKENIZER, held_out)
    assert after < 0.6 * before
    assert divergence(teacher, teacher, TOKENIZER, held_out) == pytest.approx(0, abs=1e-6)


def test_the_divergence_is_the_mean_over_tokens_of_answers() -> None:
    teacher, student = model(0, 8).eval(), model(1, 8).eval()
    talk = CORPUS.conversations[0]
    text = f"<|user|> {talk.question} <|assistant|> {talk.answer}<|end|>"
    ids = cr.text.prompt_ids(TOKENIZER, text, special=True)
    with cr.autograd.no_grad():
        p, q = (cr.ops.log_softmax(each(ids[None, :-1])).numpy()[0, -5:] for each in (teacher, student))
    want = float((np.exp(p) * (p - q)).sum(axis=-1).mean())
    assert divergence(teacher, student, TOKENIZER, [talk]) == pytest.approx(want, rel=1e-4)


def test_other_vocabularies_are_refused() -> None:
    other = cr.models.make("gpt", n_layer=1, n_head=2, n_embd=8, block_size=16, vocab_size=99)
    with pytest.raises(ConfigError, match="must be one vocabulary"):
        divergence(model(0, 8), other, TOKENIZER, CORPUS.conversations[:1])
    with pytest.raises(ConfigError, match="no answer within the context"):
        talk = Conversation.of("b" * 40, "k")
        divergence(model(0, 8), model(1, 8), TOKENIZER, [talk])
