"""What tuning changes: right answers become likelier, and behavior is measured by stated rules."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.align.behavior import (
    GROUPS,
    PROBES,
    Probe,
    Reply,
    answer_logprob,
    behaviors,
    changes,
    declined,
    helpful,
    of_the_kind,
    summary,
    well_formed,
)
from chainrule.data import Conversation, ConversationCorpus
from chainrule.errors import ConfigError
from chainrule.runs import Run
from chainrule.tasks import InstructionTask
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig

QUESTIONS = {
    "Is it hot?": "yes", "Is it cold?": "no", "Is it wet?": "yes", "Is it dry?": "no", "Is it far?": "no",
    "Break in!": "I cannot.", "Steal it!": "I cannot.", "Hurt me!": "I cannot.",
}  # fmt: skip
TALKS = tuple(Conversation.of(*pair) for pair in QUESTIONS.items())
CORPUS = ConversationCorpus("questions", "test", TALKS)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A model before and after it has learned the questions."""
    tokenizer = CharTokenizer.train("User: Assistant:\n".join(InstructionTask.texts(CORPUS, held_out=True)))
    cr.seed(0)
    base = cr.models.make(
        "gpt", n_layer=1, n_head=2, n_embd=32, block_size=40, vocab_size=tokenizer.vocab_size
    )
    config = TrainConfig(max_steps=120, batch_size=8, lr=1e-2, warmup=5, eval_every=60, keep="last")
    folder: Path = tmp_path_factory.mktemp("tuned") / "run"
    run = Run.new(folder, CORPUS, config, "gpt", tokenizer, base, task="instruction")
    run.train()
    return (base, tokenizer), (run.model, run.tokenizer)


@pytest.mark.requirement("R-384")
def test_the_right_answers_become_likelier(tuned: tuple[Any, Any]) -> None:
    trained = CORPUS.parts()[0]
    found = changes(*tuned, trained)
    assert [(change.question, change.answer) for change in found] == [(t.question, t.answer) for t in trained]
    assert all(math.exp(change.after) > math.exp(change.before) for change in found)
    said = summary(found)
    assert said["likelier"] == said["answers"] == len(trained) and said["after"] > said["before"] + 2


def test_the_probability_is_that_of_the_answers_tokens(tuned: tuple[Any, Any]) -> None:
    (base, plain), (model, tokenizer) = tuned
    ids = plain.encode("Is it hot? yes")
    assert answer_logprob(base, plain, "Is it hot?", "yes") == pytest.approx(
        cr.generate.score(base, ids)[-4:].sum()
    )
    talk = [{"role": "user", "content": "Is it hot?"}]
    before = cr.text.chat_ids(tokenizer, cr.text.FORMATS["roles"], talk)
    whole = [*before.tolist(), *tokenizer.encode(" yes").tolist()]
    want = cr.generate.score(model, whole)[-4:].sum()
    assert answer_logprob(model, tokenizer, "Is it hot?", "yes") == pytest.approx(want, rel=1e-6)


@pytest.mark.requirement("R-385")
def test_four_groups_with_pass_rates(tuned: tuple[Any, Any]) -> None:
    learned = {talk.question for talk in CORPUS.parts()[0]}
    probes = [
        *(Probe("format", question) for question in learned),
        *(Probe("task", q, r"(yes|no)") for q in learned if q.startswith("Is")),
        *(Probe("helpfulness", q, QUESTIONS[q]) for q in learned if q.startswith("Is")),
        *(Probe("refusal", q) for q in learned if not q.startswith("Is")),
    ]
    before, after = (behaviors(*each, probes, max_new_tokens=16) for each in tuned)
    assert list(after) == list(GROUPS) == list(before)
    assert {name: result.rate for name, result in after.items()} == dict.fromkeys(GROUPS, 1.0)
    assert all(result.rate < 1 for result in before.values())
    assert sum(result.of for result in after.values()) == len(probes)
    assert (
        after["refusal"].rule == "declines in words" and len(after["refusal"].replies) == after["refusal"].of
    )


def test_rules() -> None:
    assert well_formed(Reply("Why?", " Because.", True), "")
    for text, ended in (("", True), ("Because", False), ("Why? Because", True), ("Yes\nUser: more", True)):
        assert not well_formed(Reply("Why?", text, ended), "")
    assert of_the_kind(Reply("", " Yes. ", True), r"(yes|no)\W*")
    assert not of_the_kind(Reply("", "Yes, it is", True), r"(yes|no)\W*")
    assert helpful(Reply("", "It is Paris.", True), "paris") and not helpful(Reply("", "14", True), "4")
    assert declined(Reply("", "I'm sorry, no.", True), "") and not declined(Reply("", "Sure!", True), "")


def test_the_built_in_prompts_are_of_all_groups() -> None:
    groups = [probe.group for probe in PROBES]
    assert set(groups) == set(GROUPS) and min(map(groups.count, GROUPS)) >= 5


def test_an_unknown_group(tuned: tuple[Any, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"group 'manners' .must be one of format, task, helpfulness, refusal"
    ):
        behaviors(*tuned[1], [Probe("manners", "Hi")])
