"""Both tokenizers of words in C++: equal to their reference, and linear in the length of any text."""

from __future__ import annotations

import pickle
import string
from collections.abc import Callable
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule import native
from chainrule.text import LowercaseWordTokenizer, WordTokenizer, words
from chainrule.text import lowercase_words as bare_words
from chainrule.text.splitting.word_rules import WordNumbers, WordRule
from tests.text.growth import LINEAR, growth, long_word
from tests.text.reference import needs_extension, without_extension
from tests.text.strategies import a_text

# Letters of one to four bytes, capitals whose small letters depend on what follows or are two, numbers that count as
# letters and digits that do not, both apostrophes, marks, an accent, lone surrogates and all sorts of white space.
ALPHABET = "abAÉΣİßДя你𝐀_²½Ⅷ٣7''’.-—\u0301\ud800\udfff😀  \n\n\r\t\x1c\x85\xa0\u2028\u3000"
wordlike = st.text(st.sampled_from(ALPHABET), max_size=40)
some_texts = st.lists(a_text | wordlike, max_size=4)
some_limit = st.none() | st.integers(4, 20)
each_rule = pytest.mark.parametrize("rule", [words.RULE, bare_words.RULE], ids=["words", "bare words"])


@needs_extension
@settings(max_examples=200)
@given(some_texts, some_limit, st.integers(-1, 3), st.booleans(), a_text | wordlike)
def test_words_equal_the_reference(
    texts: list[str], size: int | None, min_count: int, lowercase: bool, other: str
) -> None:
    def outcome() -> list[object]:
        special = ["ab", ".", "<pad>"]
        tokenizer = WordTokenizer.train(
            texts, size, min_count=min_count, lowercase=lowercase, special_tokens=special
        )
        ids = [tokenizer.encode(text) for text in (*texts, other)]
        assert all(row.dtype.name == "int32" for row in ids)
        return [tokenizer.vocabulary.tokens, [row.tolist() for row in ids]]

    got = outcome()
    with without_extension():
        assert got == outcome()


@needs_extension
@settings(max_examples=200)
@given(a_text | wordlike, st.none() | st.integers(2, 9), st.integers(1, 3), a_text | wordlike)
def test_bare_words_equal_the_reference(text: str, size: int | None, min_count: int, other: str) -> None:
    def outcome() -> list[object]:
        tokenizer = LowercaseWordTokenizer.train(text, min_count, size)
        return [tokenizer.words, tokenizer.encode(text).tolist(), tokenizer.encode(other).tolist()]

    got = outcome()
    with without_extension():
        assert got == outcome()


@needs_extension
@each_rule
def test_every_character_is_what_it_is_to_the_expression(rule: WordRule) -> None:
    """Between letters, and after an apostrophe."""
    codes = [*range(0x33000), *range(0x33000, 0x110000, 97)]
    text = " ".join(f"a{chr(code)}b'{chr(code)}" for code in codes)
    found = rule.most_frequent(text, 1, None)
    ids = {word: id for id, word in enumerate(found)}
    with without_extension():
        assert found == rule.most_frequent(text, 1, None)
    assert WordNumbers(rule, ids, -1).encode(text).tolist() == [ids[word] for word in rule.split(text)]


@needs_extension
def test_threads_change_nothing_and_pickles_come_back() -> None:
    """A text of several pieces, with words that are too long for the table of words met before."""
    text = "".join(f"word{i % 999} don't {'long' * (i % 20)}.\n" for i in range(20_000))
    before = native.get_threads()
    outcomes = []
    for threads in (1, 3):
        native.set_threads(threads)
        tokenizer = WordTokenizer.train([text, text[:9999]], 900)
        outcomes.append((tokenizer.to_dict(), tokenizer.encode(text).tolist()))
    native.set_threads(before)
    assert outcomes[0] == outcomes[1]
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    with without_extension():
        assert tokenizer.encode(text).tolist() == outcomes[0][1]


def different_words(n: int) -> str:
    return " ".join(map("".join, islice(product(string.ascii_lowercase, repeat=5), n // 6)))


@needs_extension
@each_rule
@pytest.mark.parametrize(
    "hostile",
    [long_word, different_words, lambda n: "a'" * (n // 2), lambda n: "\n’" * (n // 2)],
    ids=["one word", "different words", "apostrophes in words", "no words"],
)
def test_time_grows_with_the_length_of_hostile_texts(rule: WordRule, hostile: Callable[[int], str]) -> None:
    texts = {n: hostile(n) for n in (62_500, 1_000_000)}

    def work(n: int) -> None:
        found = rule.most_frequent(texts[n], 1, None)
        WordNumbers(rule, {word: id for id, word in enumerate(found)}, -1).encode(texts[n])

    assert growth(work, 62_500) < LINEAR
