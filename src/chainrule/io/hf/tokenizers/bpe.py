"""Byte-level BPE in Hugging Face's `tokenizer.json`.

The post_processor (tokens around a text), truncation and padding are not read: batches do that.
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.tokenizers.parts import Description, added_tokens, describe, describe_added, part, refuse
from chainrule.text import BPETokenizer
from chainrule.text.pretokenize import PATTERNS
from chainrule.text.unicode.byte_alphabet import hide, show

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

# Other spellings of the same patterns.
_NEWER = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_EXPRESSIONS = {expression: name for name, expression in PATTERNS.items()} | {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|{_NEWER}": "llama3",
}


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
    tokenizer = BPETokenizer(
        {hide(name): id for name, id in ids.items()},
        [merge_pair(place, merge, ids) for place, merge in enumerate(listed)],
        pattern=_pattern(part(description, "pre_tokenizer")),
        special_tokens=special,
        whole_words=bool(model.get("ignore_merges")),
    )
    if tokenizer.missing_bytes and (model.get("unk_token") is not None or model.get("byte_fallback")):
        raise FormatError(
            "BPE: unk_token or byte_fallback in a vocabulary without all 256 bytes (must have them)"
        )
    return tokenizer


def write(tokenizer: BPETokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    split = {
        "type": "Split",
        "pattern": {"Regex": PATTERNS[tokenizer.pattern]},
        "behavior": "Isolated",
        "invert": False,
    }
    vocab = {show(token): id for token, id in tokenizer.ids.items()}
    if both := vocab.keys() & tokenizer.special_tokens:
        raise FormatError(
            f"tokenizer.json: {min(both)!r} is a special token and an ordinary one (must be one of them)"
        )
    rows = sorted(tokenizer.merges.tolist(), key=lambda row: (row[3], row[0], row[1]))
    return describe(
        added_tokens=describe_added(tokenizer.special_tokens),
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split, BYTE_LEVEL]},
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


def merge_pair(place: int, merge: Any, ids: dict[str, int]) -> tuple[int, int]:
    """A merge, written "a b" or ["a", "b"]."""
    pair = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(x, str) and x in ids for x in pair):
        raise FormatError(f"merge {place}: got {merge!r} (must be two tokens of the vocabulary)")
    return ids[pair[0]], ids[pair[1]]


def _pattern(pre_tokenizer: Description) -> str:
    """The pattern: GPT-2's for ByteLevel alone, or that of a Split before it."""
    steps = pre_tokenizer.get("pretokenizers") if pre_tokenizer.get("type") == "Sequence" else [pre_tokenizer]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise FormatError("pre_tokenizer: a Sequence without its steps (must be a list of objects)")
    kinds = [step.get("type") for step in steps]
    byte_level = steps[-1] if steps else {}
    if byte_level.get("add_prefix_space"):
        raise refuse("pre_tokenizer add_prefix_space", True, "false")
    splits = byte_level.get("use_regex", True)
    if kinds == ["ByteLevel"] and splits:
        return "gpt2"
    if kinds != ["Split", "ByteLevel"] or splits:
        raise refuse("pre_tokenizer", kinds, "ByteLevel, or Split and ByteLevel without its own expression")
    expression = part(steps[0], "pattern").get("Regex")
    name = _EXPRESSIONS.get(expression) if isinstance(expression, str) else None
    if name is None or steps[0].get("behavior") != "Isolated" or steps[0].get("invert"):
        raise refuse("pre_tokenizer Split by", expression, f"isolated words of {', '.join(PATTERNS)}")
    return name
