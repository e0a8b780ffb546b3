"""Training of textbook BPE."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule import native
from chainrule.data import load
from chainrule.text import TextbookBPETokenizer
from chainrule.text.textbook_bpe import trace
from chainrule.text.training.merges import apply_merge
from chainrule.text.training.textbook_bpe import count_words
from tests.text.growth import LINEAR, growth, long_word


def naive_merges(words: dict[tuple[str, ...], int], n: int) -> list[tuple[str, str]]:
    """Training as the seed says it: count everything anew before each merge."""
    merges = []
    for _ in range(n):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged: Counter[tuple[str, ...]] = Counter()
        for word, count in words.items():
            merged[tuple(apply_merge(word, best, "".join(best)))] += count
        words = dict(merged)
    return merges


@settings(max_examples=100)
@given(st.text("ab c", max_size=60))
def test_counts_kept_up_to_date_equal_counting_anew(text: str) -> None:
    wanted = naive_merges(count_words(text), 12)
    assert [step.pair for step in trace(text, 12)] == wanted


def test_threads_change_nothing() -> None:
    text = load("pydoc").text
    before = native.get_threads()
    outcomes = []
    for threads in (1, 3):
        native.set_threads(threads)
        tokenizer = TextbookBPETokenizer.train([text, text[:9999]], 600, end_mark=True)
        outcomes.append((tokenizer.to_dict(), tokenizer.encode(text).tolist()))
    native.set_threads(before)
    assert outcomes[0] == outcomes[1]


def test_time_grows_with_the_length_of_one_long_word() -> None:
    """As many merges per letter in both: visiting the whole word for each would take 256 times as long, not 16."""
    assert growth(lambda n: TextbookBPETokenizer.train(long_word(n), 100 + n // 10), 1_000) < LINEAR
    trained = {n: TextbookBPETokenizer.train(long_word(n), 100 + n // 10) for n in (1_000, 16_000)}
    words = {
        n: [long_word(n)[place:] for place in range(9)] for n in trained
    }  # a word met before is remembered
    assert growth(lambda n: trained[n].encode(words[n].pop()), 1_000) < LINEAR
