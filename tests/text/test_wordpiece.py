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
from chainrule.text.wordpiece import SPECIAL
from tests.text.growth import LINEAR, growth
from tests.text.reference import needs_extension, without_extension
from tests.text.strategies import a_text

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
    assert growth(lambda n: WordPieceTokenizer.train("a" * n, 100).encode("a" * n), 62_500) < LINEAR


def test_the_longest_match_from_the_left() -> None:
    pieces = ["[UNK]", "un", "##want", "##ed", "runn", "##ing", "u", "##n", "##w"]
    tokenizer = WordPieceTokenizer(Vocabulary(pieces, ["[UNK]"]))
    assert tokenizer.pieces("unwanted running") == ["un", "##want", "##ed", "runn", "##ing"]
    assert tokenizer.pieces("unwantedx un") == ["[UNK]", "un"]  # the whole word is unknown
    assert tokenizer.pieces("u" + "n" * 99) == ["un"] + ["##n"] * 98
    assert tokenizer.pieces("u" + "n" * 100) == ["[UNK]"]
    assert tokenizer.pieces("n" * 1_000_000) == ["[UNK]"]


@pytest.mark.parametrize("rules", [None, {"clean_text": True}, {"lowercase": "yes"}])
def test_broken_rules_are_refused(rules: object) -> None:
    with pytest.raises(FormatError, match="rules are"):
        WordPieceTokenizer.from_dict({"rules": rules, "tokens": ["[UNK]"], "special": []})
