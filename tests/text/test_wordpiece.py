"""WordPiece: BERT's rules, the longest match, and training by its score. Equality with its peer: tests/peers."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule import native
from chainrule.data import load
from chainrule.errors import FormatError
from chainrule.text import BertRules, Vocabulary, WordPieceTokenizer
from chainrule.text.training.merges import Pieces, apply_merge
from chainrule.text.training.wordpiece import PREFIX, score
from chainrule.text.wordpiece import SPECIAL
from tests.text.growth import growth, long_word
from tests.text.reference import needs_extension, without_extension
from tests.text.strategies import a_text
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
    """As many merges per letter in both: visiting the whole word for each would take 16 times as long."""
    assert growth(lambda n: WordPieceTokenizer.train(long_word(n), 100 + n // 10), 2_000) < 9


some_words = st.lists(st.text("aab\u00e9\u4f60#\ud800", min_size=1, max_size=9), max_size=12).map(" ".join)
some_rules = st.builds(BertRules, *[st.booleans()] * 4)


@settings(max_examples=200)
@given(
    st.lists(a_text | some_words, max_size=4), some_rules, st.none() | st.integers(-1, 3), st.integers(0, 60)
)
def test_native_training_and_encoding_equal_the_reference(
    texts: list[str], rules: BertRules, min_count: int | None, size: int
) -> None:
    special = [*SPECIAL, "ab", "##ab"]

    def outcome() -> list[object]:
        size_of_all = 200 + size  # above what the characters need
        tokenizer = WordPieceTokenizer.train(
            texts, size_of_all, min_count=min_count, special_tokens=special, rules=rules
        )
        return [tokenizer.to_dict(), *(tokenizer.encode(text).tolist() for text in ["b\u00fca a#", *texts])]

    fast = outcome()
    with without_extension():
        assert outcome() == fast


@pytest.mark.parametrize("min_count", [None, 1, 2])
def test_native_training_on_prose_equals_the_reference(min_count: int | None) -> None:
    text = load("pydoc").text[:30_000]
    fast = WordPieceTokenizer.train(text, 900, min_count=min_count)
    with without_extension():
        assert WordPieceTokenizer.train(text, 900, min_count=min_count) == fast


@pytest.mark.parametrize("rules", [BertRules(), BertRules(False, False, False, False)], ids=["all", "none"])
def test_every_character_becomes_the_same_words(rules: BertRules) -> None:
    text = " ".join(f"a{chr(code)}b" for code in [*range(0x5000), *range(0xAB00, 0x20000, 3)])
    words = rules.split(text)
    tokenizer = WordPieceTokenizer(Vocabulary(dict.fromkeys(["[UNK]", *words]), ["[UNK]"]), rules=rules)
    assert tokenizer.encode(text).tolist() == [tokenizer.vocabulary.ids[word] for word in words]


def test_threads_change_nothing_and_pickles_come_back() -> None:
    text = load("pydoc").text
    before = native.get_threads()
    outcomes = []
    for threads in (1, 3):
        native.set_threads(threads)
        tokenizer = WordPieceTokenizer.train([text, text[:9999]], 600)
        outcomes.append((tokenizer.to_dict(), tokenizer.encode(text).tolist()))
    native.set_threads(before)
    assert outcomes[0] == outcomes[1]
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


@needs_extension
def test_a_million_equal_letters_are_no_trouble() -> None:
    assert growth(lambda n: WordPieceTokenizer.train("a" * n, 100).encode("a" * n), 250_000) < 9


def test_the_longest_match_from_the_left() -> None:
    pieces = ["[UNK]", "un", "##want", "##ed", "runn", "##ing", "u", "##n", "##w"]
    tokenizer = WordPieceTokenizer(Vocabulary(pieces, ["[UNK]"]))
    assert tokenizer.pieces("unwanted running") == ["un", "##want", "##ed", "runn", "##ing"]
    assert tokenizer.pieces("unwantedx un") == ["[UNK]", "un"]  # the whole word is unknown
    assert tokenizer.pieces("u" + "n" * 99) == ["un"] + ["##n"] * 98
    assert tokenizer.pieces("u" + "n" * 100) == ["[UNK]"]
    assert tokenizer.pieces("n" * 1_000_000) == ["[UNK]"]


def test_the_rules_of_bert() -> None:
    assert BertRules().split(" Ünïcödé\tWÖRDS\x00\u200b,e\u0301tc.") == ["unicode", "words", ",", "etc", "."]
    cased = BertRules(lowercase=False, strip_accents=False)
    assert cased.split("Été") == ["Été"]
    assert BertRules().split("a你好b $1.50 \u3000x") == ["a", "你", "好", "b", "$", "1", ".", "50", "x"]
    assert BertRules().split("ΣΑΣ") == ["σασ"]  # letter by letter: no final form
    assert BertRules(handle_chinese_chars=False).split("你好") == ["你好"]
    assert BertRules(clean_text=False).split("a\x1cb\nc") == ["a\x1cb", "c"]


@settings(max_examples=100)
@given(a_text)
def test_words_hold_no_spaces_and_no_controls(text: str) -> None:
    words = BertRules().split(text)
    assert all(word and not any(c.isspace() for c in word) for word in words)
    assert BertRules().split(" ".join(words)) == words


@pytest.mark.parametrize("rules", [None, {"clean_text": True}, {"lowercase": "yes"}])
def test_broken_rules_are_refused(rules: object) -> None:
    with pytest.raises(FormatError, match="rules are"):
        WordPieceTokenizer.from_dict({"rules": rules, "tokens": ["[UNK]"], "special": []})
