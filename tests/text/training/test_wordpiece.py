"""Training of WordPiece."""

from __future__ import annotations

import pytest

from chainrule.data import load
from chainrule.text import WordPieceTokenizer
from chainrule.text.training.merges import Pieces, apply_merge
from chainrule.text.training.wordpiece import PREFIX, score
from chainrule.text.wordpiece import SPECIAL
from tests.text.growth import LINEAR, growth, long_word
from tests.text.reference import without_extension
from tests.vectors import vector


@pytest.mark.requirement("R-269")
def test_the_score_of_a_merge() -> None:
    v = vector("der-wordpiece-scores")
    pieces = Pieces({tuple(word): 1 for word in v.inputs["corpus"]})
    v.check({f"{a}+{b}": score(pieces, (a, b)) for a, b in pieces.pairs})


@pytest.mark.requirement("R-269")
def test_training_merges_the_best_score_first() -> None:
    tokenizer = WordPieceTokenizer.train("low lower lowest", 12 + len(SPECIAL), min_count=1)
    learned = [t for t in tokenizer.vocabulary.tokens if len(t.removeprefix(PREFIX)) > 1 and t not in SPECIAL]
    assert learned[0] == "##st"  # 1 / (1 * 1), the best of der-wordpiece-scores


def test_scores_kept_up_to_date_equal_scoring_anew() -> None:
    text = "low lower lowest new newer newest wide wider widest " * 3 + "lowly newly idly"
    tokens = WordPieceTokenizer.train(text, 60, min_count=2).vocabulary.tokens
    words = {w: text.split().count(w) for w in sorted(set(text.split()))}
    spelled = {(w[0], *(PREFIX + c for c in w[1:])): n for w, n in words.items()}
    start = len(SPECIAL) + len({piece for word in spelled for piece in word})
    for token in tokens[start:]:
        pieces = Pieces(spelled)
        live = [pair for pair, count in pieces.pairs.items() if count >= 2]
        best = min(live, key=lambda pair: (-score(pieces, pair), -pieces.pairs[pair], pair))
        assert best[0] + best[1].removeprefix(PREFIX) == token
        spelled = {tuple(apply_merge(word, best, token)): n for word, n in spelled.items()}


def test_frequent_pairs_come_before_rare_ones() -> None:
    text = "the " * 100 + "qz qz xylophone xylophone"
    letters = len(SPECIAL) + len({*"tqx", *["##h", "##e", "##z", "##y", "##l", "##o", "##p", "##n"]})
    for size, wanted in ((1, "th"), (2, "the")):
        assert WordPieceTokenizer.train(text, letters + size).vocabulary.tokens[-1] == wanted
    assert "qz" in WordPieceTokenizer.train(text, 100).vocabulary.tokens


def test_training_time_grows_with_the_length_of_one_long_word() -> None:
    """As many merges per letter in both: visiting the whole word for each would take 256 times as long, not 16."""
    assert growth(lambda n: WordPieceTokenizer.train(long_word(n), 100 + n // 10), 1_000) < LINEAR


@pytest.mark.parametrize("min_count", [None, 1, 2])
def test_native_training_on_prose_equals_the_reference(min_count: int | None) -> None:
    text = load("pydoc").text[:30_000]
    fast = WordPieceTokenizer.train(text, 900, min_count=min_count)
    with without_extension():
        assert WordPieceTokenizer.train(text, 900, min_count=min_count) == fast
