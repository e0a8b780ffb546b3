"""Models from the objects of `tokenizer.json` that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.errors import FormatError, kind_of
from chainrule.text.pipeline.models import BPE, Model, Unigram, WordPiece
from chainrule.text.pipeline.part import Description


def read_model(description: Any) -> Model:
    """The model that an object of `tokenizer.json` describes."""
    if not isinstance(description, dict):
        raise FormatError(f"model is {kind_of(description)} (must be an object)")
    kind = description.get("type")
    if kind == "Unigram":
        return _read_unigram(description)
    vocab = description.get("vocab")
    if kind not in ("BPE", "WordPiece"):
        raise FormatError(f"model {kind} is not supported (must be one of BPE, WordPiece, Unigram)")
    if not isinstance(vocab, dict) or not vocab or not all(type(id) is int for id in vocab.values()):
        raise FormatError(f"{kind}: the model has no vocab (must map tokens to ids)")
    return _read_bpe(description, vocab) if kind == "BPE" else _read_wordpiece(description, vocab)


def _read_bpe(description: Description, vocab: dict[str, int]) -> BPE:
    if description.get("dropout"):
        raise FormatError(f"BPE: dropout {description['dropout']} is not supported (must be null)")
    listed = description.get("merges")
    if not isinstance(listed, list):
        raise FormatError("BPE: the model has no merges (must be a list of pairs)")
    merges = [read_merge(place, entry, vocab) for place, entry in enumerate(listed)]
    return BPE(
        vocab,
        merges,
        unk_token=_text(description, "unk_token"),
        fuse_unk=bool(description.get("fuse_unk")),
        byte_fallback=bool(description.get("byte_fallback")),
        ignore_merges=bool(description.get("ignore_merges")),
        continuing_subword_prefix=_text(description, "continuing_subword_prefix"),
        end_of_word_suffix=_text(description, "end_of_word_suffix"),
    )


def _read_wordpiece(description: Description, vocab: dict[str, int]) -> WordPiece:
    longest = description.get("max_input_chars_per_word", 100)
    if type(longest) is not int or longest < 1:
        raise FormatError(
            f"WordPiece: max_input_chars_per_word is {str(longest)[:60]} (must be an integer from 1)"
        )
    unknown, prefix = _text(description, "unk_token"), _text(description, "continuing_subword_prefix")
    return WordPiece(
        vocab,
        unk_token="[UNK]" if unknown is None else unknown,
        continuing_subword_prefix="##" if prefix is None else prefix,
        max_input_chars_per_word=longest,
    )


def _read_unigram(description: Description) -> Unigram:
    vocab = read_scores(description)
    unknown = description.get("unk_id")
    if unknown is not None and type(unknown) is not int:
        raise FormatError(f"Unigram: unk_id is {str(unknown)[:60]} (must be the id of the unknown token)")
    return Unigram(vocab, unknown, byte_fallback=bool(description.get("byte_fallback")))


def read_scores(description: Description) -> list[tuple[str, float]]:
    """The tokens and scores of a Unigram model."""
    vocab = description.get("vocab")
    pairs = isinstance(vocab, list) and all(
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and type(entry[1]) in (int, float)
        for entry in vocab
    )
    if not pairs or not vocab:
        raise FormatError(
            "Unigram: the model has no vocab (must be a list of pairs of a token and its score)"
        )
    return [(token, float(score)) for token, score in vocab]


def read_merge(place: int, merge: Any, vocab: Mapping[str, int]) -> tuple[str, str]:
    """The two tokens of a merge, written "a b" or ["a", "b"]."""
    pair = merge.split(" ") if isinstance(merge, str) else merge
    if (
        not isinstance(pair, list)
        or len(pair) != 2
        or not all(isinstance(x, str) and x in vocab for x in pair)
    ):
        raise FormatError(f"merge {place}: got {str(merge)[:60]!r} (must be two tokens of the vocabulary)")
    return pair[0], pair[1]


def _text(description: Description, name: str) -> str | None:
    value = description.get(name)
    if value is not None and not isinstance(value, str):
        raise FormatError(f"{description['type']}: {name} is {str(value)[:60]} (must be a text, or null)")
    return value
