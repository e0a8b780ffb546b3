"""Multiple choice: the best choice by each measure, and how often it is the right one."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import Question
from chainrule.errors import ChainruleError, ConfigError, DataError
from chainrule.generate import answer, multiple_choice, score
from chainrule.text import CharTokenizer

LETTERS = CharTokenizer("abcdé= ")


def random_model(seed: int) -> cr.models.GPT:
    cr.seed(seed)
    config = cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=12, vocab_size=LETTERS.vocab_size)
    model = cr.models.GPT(config)
    rng = np.random.default_rng(seed)
    model.load({name: rng.normal(0, 0.5, value.shape) for name, value in model.state().items()})
    return model


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("between", ["", " ", "= "])
def test_the_choice_is_the_one_with_the_highest_score(seed: int, between: str) -> None:
    model = random_model(seed)
    question = Question("ab", ("c", "éé", "dab", "b a b c"), 0)
    before = LETTERS.encode("ab" + between.rstrip())
    space = between[len(between.rstrip()) :]
    totals = []
    for choice in question.choices:
        ids = np.concatenate([before, LETTERS.encode(space + choice)])
        totals.append(score(model, ids)[len(before) - 1 :].sum())
    tokens = [len(space + choice) for choice in question.choices]
    sizes = [len(choice.encode()) for choice in question.choices]
    assert answer(model, LETTERS, question, between) == {
        "total": int(np.argmax(totals)),
        "token": int(np.argmax(np.divide(totals, tokens))),
        "byte": int(np.argmax(np.divide(totals, sizes))),
    }


def test_measures_disagree_on_long_choices() -> None:
    """Each letter after the first is nearly certain: per token and per byte that speaks for the long choice."""
    text = "a=b a=b a=b a=bcd" + " a=ccd" * 2
    ends = cr.models.Terminals(LETTERS.vocab_size, None)
    model = cr.models.NGram.fit([LETTERS.encode(text)], order=3, vocab_size=LETTERS.vocab_size, ends=ends)
    found = answer(model, LETTERS, Question("a=", ("b", "ccd"), 0), between="")
    assert found["total"] == 0 and found["token"] == found["byte"] == 1


def test_shares_chance_and_progress() -> None:
    model, heard = random_model(0), list[int]()
    text, choices = "ab", ("c", "dab", "d")
    best = answer(model, LETTERS, Question(text, choices, 0))["total"]
    questions = [
        Question(text, choices, best),
        Question(text, choices, (best + 1) % 3),
        Question(text, choices[best : best + 1] * 2, 1),  # a copy of the right choice is right
    ]
    found = multiple_choice(model, LETTERS, questions, tell=heard.append)
    assert found["questions"] == 3 and found["accuracy"] == pytest.approx(2 / 3)
    assert found["chance"] == pytest.approx((1 / 3 + 1 / 3 + 1 / 2) / 3) and heard == [1, 2, 3]
    with pytest.raises(ConfigError, match="no questions"):
        multiple_choice(model, LETTERS, [])
    with pytest.raises(DataError, match=r"q\.csv: line 7: .*'x'"):
        multiple_choice(model, LETTERS, [Question("ab", ("x", "c"), 0, "q.csv: line 7")])


def test_of_equal_choices_each_is_a_share_of_the_answer() -> None:
    """Nothing of them was ever seen: ln P is -inf, and whoever stands first must not win."""
    ends = cr.models.Terminals(LETTERS.vocab_size, None)
    ids = LETTERS.encode("abab")
    model = cr.models.NGram.fit([ids], order=2, vocab_size=LETTERS.vocab_size, ends=ends)
    for right in range(3):
        found = multiple_choice(model, LETTERS, [Question("a", ("c", "d", "dd"), right)], between="")
        assert [found[name] for name in found if "accuracy" in name] == pytest.approx([1 / 3] * 3)


def test_a_model_that_diverged_answers_nothing() -> None:
    model = random_model(0)
    model.load({name: np.full_like(value, np.nan) for name, value in model.state().items()})
    for right in (0, 1):
        with pytest.raises(ChainruleError, match="logits are not finite"):
            multiple_choice(model, LETTERS, [Question("a", ("b", "c"), right)])
