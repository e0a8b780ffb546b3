"""Measures of a text, and the rules made of them."""

from __future__ import annotations

import pytest

from chainrule.data import RULES, Cleaner, Document, load
from chainrule.data.clean.quality import compressed, length, letters, repeated_lines, word_length

PROSE = load("pydoc").text


def documents(*texts: str) -> list[Document]:
    return [Document(text, "test", i) for i, text in enumerate(texts, start=1)]


def test_each_measure() -> None:
    assert length("  ab \n") == 2
    assert letters("ab 1!") == 0.5 and letters(" ") == 0.0
    assert word_length("ab abcd") == 3 and word_length("") == 0
    assert repeated_lines("a\nb\na\n\n") == pytest.approx(2 / 3) and repeated_lines("") == 0
    assert compressed("all work and no play " * 200) < 0.05 < 0.3 < compressed(PROSE[:4000])


POOR = {
    "short": "Read more",
    "few letters": "2024-01-01 17:03:59 0x7f3a 883 112 99.7% [17] (3) {4} 2024-01-02 18:00:00",
    "odd words": "https://example.org/a-very-long-address-without-a-single-space-in-it-at-all-and-more",
    "repeated lines": "Home\nAbout us\nContact\n" * 4 + "And a sentence that is here only once.",
    "repetition": "all work and no play makes Jack a dull boy " * 100,
}


@pytest.mark.parametrize("reason", POOR)
def test_each_rule_drops_what_it_is_for(reason: str) -> None:
    cleaner = Cleaner(RULES)
    assert not list(cleaner(documents(POOR[reason])))
    assert cleaner.report.dropped == {reason: 1}


def test_prose_passes_every_rule() -> None:
    paragraph = next(p for p in PROSE.split("\n\n") if len(p) > 500 and p.startswith("The "))
    assert not [rule.name for rule in RULES if rule.broken(paragraph)]
