"""Byte-level BPE: training, encoding, decoding, and that the C++ does what the reference states."""

from __future__ import annotations

import json
import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule import native
from chainrule.data import corpora
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.text import BPETokenizer, from_dict
from chainrule.text.splitting.patterns import PATTERNS
from chainrule.text.splitting.pretokenize import split
from chainrule.text.training import bpe as reference
from chainrule.text.unicode.byte_alphabet import BYTES_IN_ORDER
from tests.text.reference import without_extension

any_text = st.text(st.characters(codec=None), max_size=60)  # all of Unicode, lone surrogates included
BYTES = {bytes([byte]): id for id, byte in enumerate(BYTES_IN_ORDER)}


@pytest.fixture(scope="module")
def prose() -> str:
    return corpora.load("pydoc").text[:200_000]


@pytest.fixture(scope="module", params=PATTERNS)
def trained(request: pytest.FixtureRequest, prose: str) -> BPETokenizer:
    return BPETokenizer.train(prose, 1000, pattern=request.param, special_tokens=["<|end|>", "<|pad|>"])


@given(st.binary(max_size=300))
def test_every_byte_string_comes_back(trained: BPETokenizer, data: bytes) -> None:
    ids = trained.encode_bytes(data)
    assert ids.dtype == np.int32
    assert trained.decode_bytes(ids) == data
    assert ids.tolist() == [id for word in split(data, trained.pattern) for id in trained.encode_word(word)]


@given(any_text)
def test_text_comes_back_and_lone_surrogates_are_replaced(trained: BPETokenizer, text: str) -> None:
    ids = trained.encode(text)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert trained.decode(ids) == whole
    assert not set(ids.tolist()) & set(trained.special_tokens.values())


def test_without_the_extension_everything_is_the_same() -> None:
    text = (
        "low lower lowest, newer newest wider naïve 中文中文 \n\n  'll it's 12345 <|end|>\ud83d\ude42\udc00"
        * 2
    )

    def outcome() -> list[object]:
        tokenizer = BPETokenizer.train([text, "low"], 300, special_tokens=["<|end|>"])
        ranked = BPETokenizer(tokenizer.ids, None)
        ids = tokenizer.encode(text, special="all")
        data = bytes(range(256))
        encoded = [ids.tolist(), ranked.encode(text).tolist(), tokenizer.encode_bytes(data).tolist()]
        return [tokenizer.to_dict(), ranked.merges.tolist(), *encoded, ids.dtype, tokenizer.decode_bytes(ids)]

    fast = outcome()
    with without_extension():
        assert outcome() == fast


def test_related_words_share_pieces() -> None:
    tokenizer = BPETokenizer.train(["play played player playing"], 259, pattern="gpt2")
    pieces = [[tokenizer.tokens[id] for id in tokenizer.encode(word)] for word in ("played", "player")]
    assert pieces == [[b"play", b"e", b"d"], [b"play", b"e", b"r"]]


@pytest.mark.skipif(not native.available(), reason="threads are those of the extension")
def test_the_number_of_threads_changes_nothing(prose: str) -> None:
    before = native.get_threads()
    text = prose * 3  # longer than a piece
    results = []
    for threads in (1, 2, 5):
        native.set_threads(threads)
        tokenizer = BPETokenizer.train([text, prose], 700)
        results.append((tokenizer.to_dict(), tokenizer.encode(text).tobytes()))
    native.set_threads(before)
    assert results[0] == results[1] == results[2]
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_tokens_are_found_only_when_allowed(trained: BPETokenizer) -> None:
    text = "a<|end|>b <|pad|><|end|>"
    end, pad = trained.special_tokens["<|end|>"], trained.special_tokens["<|pad|>"]
    assert not {end, pad} & set(trained.encode(text).tolist())
    ids = trained.encode(text, special="all").tolist()
    assert [id for id in ids if id in (end, pad)] == [end, pad, end]
    assert trained.decode(ids) == text
    only = trained.encode(text, special=["<|pad|>"]).tolist()
    assert only.count(pad) == 1 and end not in only
    with pytest.raises(DataError, match=r"'<x>' is not a special token .*'<\|end\|>'"):
        trained.encode(text, special=["<x>"])


def test_the_longest_special_token_wins() -> None:
    tokenizer = BPETokenizer(BYTES, [], special_tokens={"<a>": 256, "<a><b>": 257})
    assert tokenizer.encode("<a><b><a>", special="all").tolist() == [257, 256]
    assert tokenizer.encode("<a>").tolist() == [BYTES[b"<"], BYTES[b"a"], BYTES[b">"]]


def test_a_special_token_of_one_character_is_not_that_byte() -> None:
    for merges in ([], None):
        tokenizer = BPETokenizer(BYTES, merges, special_tokens={"a": 256, "aa": 257})
        assert tokenizer.encode("aa").tolist() == [BYTES[b"a"]] * 2


def test_ranks_merge_any_pair_that_is_a_token() -> None:
    """tiktoken's reading: b+cd makes bcd although training would have made it of bc+d."""
    ids = BYTES | {b"cd": 256, b"bcd": 257, b"zz": 258, b"abcdz": 259}
    tokenizer = BPETokenizer(ids, None, pattern="gpt2")
    assert tokenizer.encode("bcdcd").tolist() == [257, 256]
    assert tokenizer.encode("abcdz").tolist() == [259]  # a whole word is taken, though no merge leads there
    assert tokenizer.encode("abcdzz").tolist() == [BYTES[b"a"], 257, 258]


@settings(max_examples=200)
@given(st.data())
def test_long_words_merge_as_short_ones_whatever_the_merges(data: st.DataObject) -> None:
    """Vocabularies that no training makes: a merge may come before the merges that lead to it."""
    ids = dict(BYTES)
    letters = st.text("ab", min_size=2, max_size=5)
    for name in data.draw(st.lists(letters, unique=True, max_size=12)):
        ids[name.encode()] = len(ids)
    if data.draw(st.booleans()):
        tokenizer = BPETokenizer(ids, None)
    else:
        rows = reference.rank_merges(ids)
        pairs = [(left, right) for left, right, _, _ in rows]
        tokenizer = BPETokenizer(ids, data.draw(st.permutations(pairs)) if pairs else [])
    word = data.draw(st.text("ab", min_size=130, max_size=180)).encode()
    assert tokenizer.encode_bytes(word).tolist() == tokenizer.encode_word(word)


@pytest.mark.skipif(not native.available(), reason="the reference is quadratic")
@pytest.mark.parametrize(
    "unit", ["a", " ", "\n", "7", "é", "中", "!", "ab", " \n", "a b", "'s", "\u200d🙂", "'"]
)
def test_time_grows_with_the_length_of_hostile_text(unit: str, prose: str) -> None:
    """Four times the text takes about four times as long; sixteen would be quadratic."""
    hostile = BPETokenizer.train([prose, unit * 5000], 600)

    def seconds(n: int) -> float:
        text = unit * n
        times = []
        for _ in range(3):
            start = time.thread_time()
            hostile.encode(text)
            times.append(time.thread_time() - start)
        return min(times)

    assert seconds(200_000) < 10 * seconds(50_000) + 0.05


def test_a_description_survives_json_and_pickle(trained: BPETokenizer) -> None:
    for tokenizer in (trained, BPETokenizer(BYTES | {b"ab": 300}, None, special_tokens={"<s>": 257})):
        assert from_dict(json.loads(json.dumps(tokenizer.to_dict()))) == tokenizer
        assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer


def test_a_byte_without_a_token_is_named() -> None:
    tokenizer = BPETokenizer({b"a": 0, b"b": 1}, [])
    assert tokenizer.encode("abba").tolist() == [0, 1, 1, 0]
    with pytest.raises(DataError, match="byte 0x63 at 2 has no token"):
        tokenizer.encode("abc")


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"vocab_size is 257 \(must be at least 258"):
        BPETokenizer.train("a", 257, special_tokens=["<s>", "<e>"])
    with pytest.raises(ConfigError, match="pattern: got 'x'"):
        BPETokenizer.train("a", 300, pattern="x")
    with pytest.raises(DataError, match="id 256 at position 1"):
        BPETokenizer(BYTES, []).decode([0, 256])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "char"}, "type 'char'"),
        ({"tokens": {}}, "no tokens"),
        ({"tokens": {"a": 0, "b": 0}}, "id of its own"),
        ({"tokens": {"a": 2**40}}, "id 1099511627776"),
        ({"tokens": {"a": -1}}, "id -1"),
        ({"tokens": {"a": 1.5}}, "id 1.5"),
        ({"tokens": {"中": 0}}, "stands for no byte"),
        ({"tokens": [1]}, "not a description"),
        ({"merges": [[0, 1, 2]]}, "not a description"),
        ({"merges": [[0, 500]]}, "merge 0"),
        ({"merges": [[0, 1]]}, "merge 0"),
        ({"merges": 3}, "not a description"),
        ({"pattern": "x"}, "pattern"),
        ({"special_tokens": {"\ud800": 300}}, "lone surrogates"),
        ({"special_tokens": {"": 300}}, "must have bytes"),
        ({"special_tokens": 5}, "not a description"),
    ],
)
def test_broken_descriptions_are_refused(change: dict[str, object], message: str) -> None:
    whole = BPETokenizer(BYTES, []).to_dict()
    with pytest.raises((FormatError, ConfigError), match=message):
        BPETokenizer.from_dict(whole | change)


def test_tokens_are_written_by_id_in_whatever_order_they_were_given() -> None:
    given = {b"bc": 257, b"ab": 256, **dict(reversed(BYTES.items()))}
    merges = [(BYTES[b"a"], BYTES[b"b"]), (BYTES[b"b"], BYTES[b"c"])]
    found = BPETokenizer(given, merges, special_tokens={"<end>": 258})
    assert found.ids == given and list(found.ids.values()) == sorted(given.values())
    ordered = dict(sorted(given.items(), key=lambda each: each[1]))
    again = BPETokenizer(ordered, merges, special_tokens={"<end>": 258})
    assert json.dumps(found.to_dict()) == json.dumps(again.to_dict())
