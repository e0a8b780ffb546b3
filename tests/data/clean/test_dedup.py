"""Copies, near copies and poor texts: what is dropped, why, and that nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import RULES, Cleaner, Document, Rule
from chainrule.data.clean.minhash import signature, similarity
from chainrule.data.read import documents as reading
from chainrule.errors import ConfigError
from tests.data.clean.test_minhash import PROSE, WORDS, edited, jaccard

ANY_TEXT = st.text(st.characters(), max_size=60)


def documents(*texts: str) -> list[Document]:
    return [Document(text, "test", i) for i, text in enumerate(texts, start=1)]


@settings(max_examples=50)
@given(texts=st.lists(ANY_TEXT))
def test_exact_copies_are_dropped_and_nothing_else(texts: list[str]) -> None:
    cleaner = Cleaner(near=None)
    kept = [d.text for d in cleaner(documents(*texts))]
    assert kept == list(dict.fromkeys(texts))
    report = cleaner.report
    assert report.read == len(texts) and report.kept == len(kept)
    assert report.dropped.total() == len(texts) - len(kept)


@settings(max_examples=50)
@given(texts=st.lists(ANY_TEXT, max_size=12))
def test_cleaning_twice_changes_nothing(texts: list[str]) -> None:
    once = list(Cleaner()(documents(*texts)))
    assert list(Cleaner()(once)) == once


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_keep_the_same_documents_for_the_same_reasons(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 2000)  # characters: many batches, and copies in different ones
    texts = [text for seed in range(20) for text in (*edited(seed, 120, 2), *edited(seed, 60, 30), "short")]
    one, many = Cleaner(RULES), Cleaner(RULES)
    kept = list(one(documents(*texts)))
    assert list(many(documents(*texts), workers)) == kept and 0 < len(kept) < len(texts)
    assert many.report == one.report and {"near copy", "short"} <= one.report.dropped.keys()


def test_near_copies_are_found_and_different_texts_are_kept() -> None:
    pairs = [edited(seed, 400, 5) for seed in range(50)]  # similarity about 0.93
    assert min(jaccard(*pair) for pair in pairs) > 0.88
    found = 0
    for a, b in pairs:
        cleaner = Cleaner()
        found += len(list(cleaner(documents(a, b)))) == 1
    assert found == 50
    different = documents(*(" ".join(WORDS[i : i + 300]) for i in range(0, 15_000, 300)))
    assert list(Cleaner()(different)) == different


def test_case_and_spaces_make_no_difference() -> None:
    cleaner = Cleaner()
    list(cleaner(documents("A text of some\nlength, really.", "a  TEXT of some length, really.")))
    assert cleaner.report.dropped == {"near copy": 1}
    assert cleaner.report.examples == {"near copy": "test:2"}


def test_every_near_copy_that_was_dropped_has_one_that_was_kept() -> None:
    texts = [text for seed in range(30) for text in edited(seed, 100, seed % 7)]
    kept = [d.text for d in Cleaner(near=0.7)(documents(*texts))]
    for text in texts:
        assert max(float(similarity(signature(text), signature(other))) for other in kept) >= 0.7


POOR = {
    "short": "Read more",
    "few letters": "2024-01-01 17:03:59 0x7f3a 883 112 99.7% [17] (3) {4} 2024-01-02 18:00:00",
    "odd words": "https://example.org/a-very-long-address-without-a-single-space-in-it-at-all-and-more",
    "repeated lines": "Home\nAbout us\nContact\n" * 4 + "And a sentence that is here only once.",
    "repetition": "all work and no play makes Jack a dull boy " * 100,
}


@pytest.mark.requirement("R-375")
def test_a_corpus_is_prepared() -> None:
    """Exact copies go, rules hold, domains keep their shares (test_mixing has those)."""
    from tests.data.test_mixing import test_shares_are_within_a_percent_after_a_thousand_draws

    good = [p for p in PROSE.split("\n\n") if not any(rule.broken(p) for rule in RULES)][:50]
    cleaner = Cleaner(RULES, near=None)
    kept = [d.text for d in cleaner(documents(*good, *POOR.values(), *good))]
    assert kept == good
    assert cleaner.report.dropped == {"copy": 50, **dict.fromkeys(POOR, 1)}
    assert cleaner.report.to_dict()["read"] == 105
    test_shares_are_within_a_percent_after_a_thousand_draws()


def test_rules_of_ones_own() -> None:
    shouting = Rule("shouting", lambda text: sum(map(str.isupper, text)) / len(text), high=0.5)
    assert [d.text for d in Cleaner([shouting])(documents("BUY NOW", "buy later"))] == ["buy later"]


def test_a_likeness_that_cannot_be_found_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"near is 0\.3"):
        Cleaner(near=0.3)
