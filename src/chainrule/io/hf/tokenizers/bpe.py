"""Byte-level BPE in Hugging Face's `tokenizer.json`.

The post_processor (tokens around a text), truncation and padding are not read: batches do that.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.tokenizers.parts import Description, added_tokens, describe, describe_added, part, refuse
from chainrule.text import BPETokenizer
from chainrule.text.pipeline.model_files import read_merge
from chainrule.text.splitting.patterns import DIGIT, DIGITS, GPT2, Pattern, check_pattern, steps_of
from chainrule.text.unicode.byte_alphabet import HIDDEN, hide, show
from chainrule.text.unicode.expressions import has_anchor, is_known

KIND = BPETokenizer
MODEL = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def vocab_and_merges(description: Description) -> tuple[dict[str, int], list[Any]]:
    """The vocabulary and merges of a BPE model; options that would change the tokens are refused."""
    model = part(description, "model")
    vocab, listed = model.get("vocab"), model.get("merges")
    if not isinstance(vocab, dict) or not isinstance(listed, list):
        raise FormatError("BPE: the model has no vocab and merges (must have an object and a list)")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise refuse(f"model {name}", model[name], "null")
    return vocab, listed


def read(description: Description) -> BPETokenizer:
    """The tokenizer described by a `tokenizer.json`."""
    model, (vocab, listed) = part(description, "model"), vocab_and_merges(description)
    for name, known in (("normalizer", (None,)), ("decoder", (None, "ByteLevel"))):
        if (kind := part(description, name).get("type")) not in known:
            raise refuse(name, kind, f"{known[-1]} for byte-level BPE")
    special = _special(description)
    ids = {name: id for name, id in vocab.items() if name not in special}
    if strange := set(map(ord, set("".join(ids)))) - HIDDEN.keys():
        first = next(name for name in ids if strange & set(map(ord, name)))
        raise refuse("token", first, "in GPT-2's byte alphabet")
    tokenizer = BPETokenizer(
        {hide(name): id for name, id in ids.items()},
        merge_pairs(listed, ids),
        pattern=_pattern(part(description, "pre_tokenizer")),
        special_tokens=special,
        whole_words=bool(model.get("ignore_merges")),
    )
    if tokenizer.missing_bytes and (model.get("unk_token") is not None or model.get("byte_fallback")):
        raise refuse("unk_token or byte_fallback", True, "missing without all 256 bytes")
    return tokenizer


def write(tokenizer: BPETokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    steps = steps_of(tokenizer.pattern)
    if anchored := [step for step in steps if has_anchor(step) and not is_known(step)]:
        raise FormatError(
            f"tokenizer.json: cannot hold the expression {anchored[0][:60]!r} (must be without ^ and $)"
        )
    isolated = {"behavior": "Isolated", "invert": False}
    splits = [{"type": "Split", "pattern": {"Regex": step}, **isolated} for step in steps]
    vocab = {show(token): id for token, id in tokenizer.ids.items()}
    if both := vocab.keys() & tokenizer.special_tokens:
        raise FormatError(
            f"tokenizer.json: {min(both)!r} is a special token and an ordinary one (must be one of them)"
        )
    rows = sorted(tokenizer.merges.tolist(), key=lambda row: (row[3], row[0], row[1]))
    return describe(
        added_tokens=describe_added(tokenizer.special_tokens),
        pre_tokenizer={"type": "Sequence", "pretokenizers": [*splits, BYTE_LEVEL]},
        decoder=BYTE_LEVEL | {"use_regex": True},
        model=MODEL
        | {
            "ignore_merges": tokenizer.whole_words,
            "vocab": vocab | tokenizer.special_tokens,  # otherwise other readers assign new ids
            "merges": [[show(tokenizer.tokens[id]) for id in row[:2]] for row in rows],
        },
    )


def _special(description: Description) -> dict[str, int]:
    special = added_tokens(description)
    for entry in description.get("added_tokens") or ():
        for flag in ("lstrip", "rstrip", "single_word"):
            if entry.get(flag):
                raise refuse(f"added token {entry['content']!r}: {flag}", True, "false")
    return special


def merge_pairs(listed: list[Any], ids: dict[str, int]) -> list[tuple[int, int]]:
    """The ids of all merges: at once, or one by one to say which is wrong."""
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in listed]
    if set(map(type, pairs)) <= {list}:
        with suppress(KeyError, TypeError, ValueError):
            return [(ids[left], ids[right]) for left, right in pairs]
    return [merge_pair(place, merge, ids) for place, merge in enumerate(listed)]


def merge_pair(place: int, merge: Any, ids: dict[str, int]) -> tuple[int, int]:
    """The ids of a merge, written "a b" or ["a", "b"]."""
    left, right = read_merge(place, merge, ids)
    return ids[left], ids[right]


def _pattern(pre_tokenizer: Description) -> Pattern:
    """The expressions of isolating steps; the last step writes bytes as characters, and may split as GPT-2 does."""
    steps = pre_tokenizer.get("pretokenizers") if pre_tokenizer.get("type") == "Sequence" else [pre_tokenizer]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise FormatError("pre_tokenizer: a Sequence without its steps (must be a list of objects)")
    kinds = [step.get("type") for step in steps]
    if kinds[-1:] != ["ByteLevel"]:
        raise refuse("pre_tokenizer", kinds, "ByteLevel, or Split and ByteLevel")
    if steps[-1].get("add_prefix_space"):
        raise refuse("pre_tokenizer add_prefix_space", True, "false")
    found = [_expression(step) for step in steps[:-1]]
    return check_pattern([*found, GPT2] if steps[-1].get("use_regex", True) else found)


def _expression(step: Description) -> str:
    """The expression that a step isolates."""
    if step.get("type") == "Digits":
        return DIGIT if step.get("individual_digits") else DIGITS
    if step.get("type") != "Split":
        raise refuse("pre_tokenizer", step.get("type"), "Split, Digits or ByteLevel")
    expression = part(step, "pattern").get("Regex")
    if not isinstance(expression, str) or step.get("behavior") != "Isolated" or step.get("invert"):
        raise refuse("pre_tokenizer Split by", expression, "isolated words")
    if not is_known(expression) and has_anchor(expression):
        raise refuse("pre_tokenizer Split by", expression, "without ^ and $, whose meaning differs")
    return expression
