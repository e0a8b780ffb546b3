"""Models of a pipeline: what they make of a word, and how they are described."""

from __future__ import annotations

import pytest

from chainrule.errors import FormatError
from chainrule.text.pipeline.models import BPE, Unigram, WordPiece
from chainrule.text.unigram import BYTES

LETTERS = {token: id for id, token in enumerate(["<unk>", "l", "o", "w", "lo", "low", "▁", "▁l", "ow"])}
MERGES = [("l", "o"), ("lo", "w")]


def test_merges_happen_by_rank() -> None:
    assert BPE(LETTERS, MERGES).ids("lowlo") == [5, 4]
    assert BPE(LETTERS, [("o", "w"), *MERGES]).ids("low") == [1, 8]
    assert BPE(LETTERS, [], ignore_merges=True).ids("low") == [5]


def test_what_is_unknown() -> None:
    assert BPE(LETTERS, MERGES).ids("lxow") == [5]  # nothing stands for it
    assert BPE(LETTERS, MERGES, unk_token="<unk>").ids("xylow") == [0, 0, 5]
    assert BPE(LETTERS, MERGES, unk_token="<unk>", fuse_unk=True).ids("xylowz") == [0, 5, 0]
    bytes = {name: 100 + byte for byte, name in enumerate(BYTES)}
    assert BPE(LETTERS | bytes, MERGES, byte_fallback=True).ids("lé") == [1, 100 + 0xC3, 100 + 0xA9]
    assert BPE(LETTERS, MERGES, unk_token="<unk>", byte_fallback=True).ids("é") == [0]  # without all 256


def test_words_of_a_long_text_are_cut_one_by_one_with_the_same_ids() -> None:
    merges = [*MERGES, ("▁", "l")]
    text = "▁low▁lo▁▁xow" * 300
    by_word = BPE(LETTERS, merges, unk_token="<unk>", fuse_unk=True)
    whole = BPE(LETTERS | {"w▁": 9}, [*merges, ("w", "▁")], unk_token="<unk>", fuse_unk=True)
    assert by_word._by_units and not whole._by_units
    assert by_word.ids(text) == by_word._cut(text)
    assert whole.ids("w▁w") == [9, 3]


def test_pieces_with_a_mark_inside_or_at_the_end_of_a_word() -> None:
    vocab = {"l": 0, "##o": 1, "lo": 2, "l</w>": 3, "o</w>": 4, "lo</w>": 5, "o": 6}
    assert BPE(vocab, [("l", "##o")], continuing_subword_prefix="##").ids("lo") == [2]
    assert BPE(vocab, [("l", "o</w>")], end_of_word_suffix="</w>").ids("lo") == [5]
    assert BPE(vocab, [], end_of_word_suffix="</w>").ids("l") == [3]


def test_wordpiece_takes_the_longest_piece() -> None:
    vocab = {"?": 0, "un": 1, "able": 2, "@able": 3, "unable": 4}
    model = WordPiece(vocab, unk_token="?", continuing_subword_prefix="@", max_input_chars_per_word=10)
    assert [model.ids(word) for word in ("unable", "unableable", "unx", "unableunable")] == [
        [4],
        [4, 3],
        [0],
        [0],
    ]


def test_unigram_takes_the_likeliest_cut_and_spaces_are_written() -> None:
    model = Unigram([("[UNK]", 0.0), ("▁a", -1.0), ("b", -2.0), ("▁ab", -9.0), ("▁", -3.0)], 0)
    assert model.ids("▁ab") == [1, 2]
    assert model.ids("▁xy▁a") == [4, 0, 1]
    assert model.ids(" ") == [0]  # a space that the normalizer left is unknown


def test_special_tokens_are_not_made_of_text() -> None:
    for model in (
        BPE({"<s>": 0, "<": 1, "s": 2, ">": 3}, [], ignore_merges=True),
        WordPiece({"<s>": 0, "<": 1, "s": 2, ">": 3, "[UNK]": 4}),
        Unigram([("<s>", -1.0), ("<", -1.0), ("s", -1.0), (">", -1.0), ("<unk>", -1.0)], 4),
    ):
        assert model.ids("<s>") == [0]
        model.hide({"<s>"})
        model.__dict__.pop("_cutter", None)
        assert 0 not in model.ids("<s>")


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(FormatError, match="merge 0: 'lw' is not in the vocab"):
        BPE(LETTERS, [("l", "w")])
    with pytest.raises(FormatError, match="unk_token '<x>'"):
        BPE(LETTERS, MERGES, unk_token="<x>")
    with pytest.raises(FormatError, match=r"unk_token '.UNK.'"):
        WordPiece(LETTERS)
    with pytest.raises(FormatError, match="unk_id is 3"):
        Unigram([("a", 0.0)], 3)
    with pytest.raises(FormatError, match="a piece with a space"):
        Unigram([("<unk>", 0.0), (" a", -1.0)], 0)
