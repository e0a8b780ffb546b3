"""Data sets as instructions: the strings of the templates, and templates that cannot be filled."""

from __future__ import annotations

import pytest

from chainrule.data.read.chat.templates import TEMPLATES, either, of_labels, of_pairs
from chainrule.errors import ConfigError

REVIEWS = [("A joy.", "1"), ("Dull {and} long.", "0")]


@pytest.mark.requirement("R-380")
def test_a_review_and_its_label() -> None:
    names = {"1": "positive", "0": "negative"}
    found = of_labels(REVIEWS, TEMPLATES["sentiment"], ["1", "0"], names)
    asked = "Classify the sentiment of this review as positive or negative: "
    assert [(talk.question, talk.answer) for talk in found] == [
        (f"{asked}A joy.", "positive"),
        (f"{asked}Dull {{and}} long.", "negative"),  # braces of a text are a part of it
    ]


@pytest.mark.requirement("R-380")
def test_a_translation() -> None:
    (talk,) = of_pairs([("The sea.", "La mer.")], TEMPLATES["translate"], "French")
    assert (talk.question, talk.answer) == ("Translate to French: The sea.", "La mer.")


def test_choices_in_words() -> None:
    assert [either(list(words)) for words in ("a", "ab", "abc")] == ["a", "a or b", "a, b or c"]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("no place", "must have {text}, and may have {labels} or {language}; or be sentiment, classify"),
        ("{text} {other}", "must have {text}"),
        ("{text} {", "write {{ for a brace"),
        ("{text} in {language}", "has {language}, which is not known"),
    ],
)
def test_templates_that_cannot_be_filled(template: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        of_labels(REVIEWS, template, ["0", "1"])
    assert said in str(error.value)


def test_a_label_that_was_not_named() -> None:
    with pytest.raises(ConfigError, match="label '0' is not among 1"):
        of_labels(REVIEWS, TEMPLATES["classify"], ["1"])
