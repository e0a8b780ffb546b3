"""Unigram in Hugging Face's `tokenizer.json`.

The space before the text is written as a normalizer that prepends it, so that every text can be restored. The
pre-tokenizer `Metaspace` is read too, with one difference: it adds no space to a text that begins with one.
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.tokenizers.parts import Description, added_tokens, describe, describe_added, part, refuse
from chainrule.text import UnigramTokenizer, Vocabulary
from chainrule.text.pipeline.model_files import read_scores
from chainrule.text.unigram import SPACE, UNKNOWN

KIND = UnigramTokenizer

PREPEND = {"type": "Prepend", "prepend": SPACE}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
RESTORE = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}
METASPACE = {"type": "Metaspace", "replacement": SPACE}


def read(description: Description) -> UnigramTokenizer:
    """The tokenizer described by a `tokenizer.json`."""
    model = part(description, "model")
    pieces, unknown = read_scores(model), model.get("unk_id")
    tokens, scores = [token for token, _ in pieces], [score for _, score in pieces]
    if type(unknown) is not int or not 0 <= unknown < len(tokens) or tokens[unknown] != UNKNOWN:
        raise refuse("unk_id", unknown, f"the id of {UNKNOWN}")
    special = {UNKNOWN: unknown} | added_tokens(description)
    for name, id in sorted(special.items(), key=lambda item: item[1]):
        if id == len(tokens):
            tokens.append(name)
            scores.append(0.0)
        if not 0 <= id < len(tokens) or tokens[id] != name:
            raise FormatError(f"added token {name!r} has id {id}, which is not its place in the vocab")
    tokenizer = UnigramTokenizer(Vocabulary(tokens, special), scores, prefix=space_first(description))
    if bool(model.get("byte_fallback")) != bool(tokenizer.bytes):
        raise refuse(
            "byte_fallback", model.get("byte_fallback"), "true with 256 byte tokens, or false without"
        )
    return tokenizer


def write(tokenizer: UnigramTokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    vocabulary = tokenizer.vocabulary
    return describe(
        added_tokens=describe_added({name: vocabulary.ids[name] for name in vocabulary.special}),
        normalizer=normalizer(tokenizer.prefix),
        decoder=decoder(tokenizer.prefix),
        model={
            "type": "Unigram",
            "unk_id": vocabulary.ids[UNKNOWN],
            "vocab": [list(pair) for pair in zip(vocabulary.tokens, tokenizer.scores, strict=True)],
            "byte_fallback": bool(tokenizer.bytes),
        },
    )


def normalizer(prefix: bool) -> dict[str, Any]:
    """The normalizer: spaces become ▁, and `prefix` puts one before the text."""
    return {"type": "Sequence", "normalizers": [PREPEND, REPLACE] if prefix else [REPLACE]}


def decoder(prefix: bool) -> dict[str, Any]:
    """The decoder: undoes the normalizer and joins bytes to characters."""
    return {"type": "Sequence", "decoders": [RESTORE, FALLBACK, FUSE, *([STRIP] if prefix else [])]}


def space_first(description: Description) -> bool:
    """True if a space is put before the text; unsupported normalizers and pre-tokenizers are refused."""
    given, splitter = part(description, "normalizer"), part(description, "pre_tokenizer")
    steps = given.get("normalizers") if given.get("type") == "Sequence" else [given]
    if not splitter and steps in ([PREPEND, REPLACE], [REPLACE]):
        return len(steps) == 2
    if given:
        raise refuse("normalizer", given, "none, or one that writes spaces as ▁")
    if any(splitter.get(name) != value for name, value in METASPACE.items()):
        raise refuse("pre_tokenizer", splitter.get("type"), "Metaspace with ▁")
    scheme = splitter.get("prepend_scheme", "always" if splitter.get("add_prefix_space", True) else "never")
    if scheme not in ("always", "first", "never"):
        raise refuse("prepend_scheme", scheme, "always, first or never")
    return bool(scheme != "never")
