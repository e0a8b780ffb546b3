"""Tokenizers in GGUF's settings: byte-level BPE (called `gpt2`) and SentencePiece BPE (called `llama`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.errors import ConfigError, FormatError
from chainrule.io.hf.tokenizers.bpe import merge_pair
from chainrule.io.settings import Settings
from chainrule.text import BPETokenizer, CharTokenizer, SentencePieceBPETokenizer, Tokenizer, Vocabulary
from chainrule.text.unicode.byte_alphabet import hide, show
from chainrule.text.unigram import BYTES, SPACE, UNKNOWN

PREFIX = "tokenizer.ggml."
NORMAL, UNKNOWN_TYPE, CONTROL, BYTE = 1, 2, 3, 6  # types of tokens; the others are special too
# llama.cpp's names for the patterns. It lacks GPT-4's; that of dbrx differs only in white space at the end of a text.
PATTERNS = {"gpt-2": "gpt2", "default": "gpt2", "llama-bpe": "llama3", "llama3": "llama3", "dbrx": "gpt4"}
NAMES = {"gpt2": "gpt-2", "llama3": "llama-bpe", "gpt4": "dbrx"}


def read_tokenizer(settings: Settings) -> Tokenizer:
    """The tokenizer described by the settings of a file."""
    ours = Settings({k.removeprefix(PREFIX): v for k, v in settings.values.items() if k.startswith(PREFIX)})
    kind, tokens = ours.values.get("model"), ours.values.get("tokens")
    if not isinstance(tokens, list):
        raise FormatError(f"{PREFIX}tokens is missing (must be the list of tokens)")
    types = _numbers(ours, "token_type", len(tokens), NORMAL)
    if kind == "gpt2":
        return _read_bpe(ours, tokens, types)
    if kind == "llama":
        return _read_pieces(ours, tokens, types)
    raise FormatError(f"{PREFIX}model is {kind!r} (must be gpt2 or llama)")


def write_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """The settings that describe a tokenizer."""
    if isinstance(tokenizer, BPETokenizer):
        found = _write_bpe(tokenizer)
    elif isinstance(tokenizer, SentencePieceBPETokenizer):
        found = _write_pieces(tokenizer)
    elif isinstance(tokenizer, CharTokenizer) and SPACE not in tokenizer.characters:
        named = [character.replace(" ", SPACE) for character in tokenizer.characters]
        found = _write_pieces(SentencePieceBPETokenizer(Vocabulary(named), [], prefix=False))
    else:
        raise ConfigError(
            f"gguf: cannot hold this {tokenizer.kind} tokenizer (must be bpe, piece_bpe or char)"
        )
    return {PREFIX + name: value for name, value in found.items()}


def _read_bpe(settings: Settings, tokens: list[str], types: list[float]) -> BPETokenizer:
    merges = settings.values.get("merges")
    if not isinstance(merges, list):
        raise FormatError(f"{PREFIX}merges is missing (must be a list of pairs)")
    pattern = settings.choice("pre", PATTERNS, "default")
    ids = {name: id for id, name in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise FormatError(f"{PREFIX}tokens: a token occurs twice (each must occur once)")
    special = {name: id for name, id in ids.items() if types[id] not in (NORMAL, BYTE)}
    return BPETokenizer(
        {hide(name): id for name, id in ids.items() if name not in special},
        [merge_pair(place, merge, ids) for place, merge in enumerate(merges)],
        pattern=pattern,
        special_tokens=special,
        whole_words=pattern == "llama3",
    )


def _write_bpe(tokenizer: BPETokenizer) -> dict[str, Any]:
    rows = sorted(tokenizer.merges.tolist(), key=lambda row: (row[3], row[0], row[1]))
    special = set(tokenizer.special_tokens.values())
    names = [
        token.decode() if id in special else show(token) or f"[gap {id}]"
        for id, token in enumerate(tokenizer.tokens)
    ]
    types = [CONTROL if id in special or not token else NORMAL for id, token in enumerate(tokenizer.tokens)]
    return {
        "model": "gpt2",
        "pre": NAMES[tokenizer.pattern],
        "tokens": names,
        "token_type": np.array(types, np.int32),
        "merges": [" ".join(show(tokenizer.tokens[id]) for id in row[:2]) for row in rows],
        "add_bos_token": False,
    }


def _read_pieces(settings: Settings, tokens: list[str], types: list[float]) -> SentencePieceBPETokenizer:
    scores = _numbers(settings, "scores", len(tokens), 0)
    special = [name for name, kind in zip(tokens, types, strict=True) if kind not in (NORMAL, BYTE)]
    vocabulary = Vocabulary(tokens, special)
    start = None
    if settings.flag("add_bos_token", True):
        id = settings.integer("bos_token_id", default=1)
        start = tokens[id] if id < len(tokens) else ""
    prefix = settings.flag("add_space_prefix", True)
    return SentencePieceBPETokenizer.from_scores(vocabulary, scores, prefix=prefix, start=start)


def _write_pieces(tokenizer: SentencePieceBPETokenizer) -> dict[str, Any]:
    vocabulary = tokenizer.vocabulary
    types = {BYTES[i]: BYTE for i in range(256)} if tokenizer.bytes else {}
    types |= dict.fromkeys(vocabulary.special, CONTROL) | {UNKNOWN: UNKNOWN_TYPE}
    settings: dict[str, Any] = {
        "model": "llama",
        "tokens": list(vocabulary.tokens),
        "scores": np.array(tokenizer.scores(), np.float32),
        "token_type": np.array([types.get(token, NORMAL) for token in vocabulary.tokens], np.int32),
        "add_bos_token": tokenizer.start is not None,
        "add_space_prefix": tokenizer.prefix,
    }
    if tokenizer.start_ids:
        settings["bos_token_id"] = tokenizer.start_ids[0]
    return settings


def _numbers(settings: Settings, name: str, count: int, default: float) -> list[float]:
    """One number for each token."""
    value = settings.values.get(name)
    if value is None:
        return [default] * count
    if not isinstance(value, np.ndarray) or len(value) != count or not np.isfinite(value).all():
        raise FormatError(f"{PREFIX}{name} is not a list of {count} numbers (must be one for each token)")
    return list(value.tolist())
