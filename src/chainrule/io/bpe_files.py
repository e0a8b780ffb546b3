"""GPT-2's encoder.json + vocab.bpe, and tiktoken's ranks."""

from __future__ import annotations

import base64
import binascii
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from chainrule.errors import FormatError
from chainrule.files import write
from chainrule.io.binary import map_file
from chainrule.io.files import read_bytes
from chainrule.text import BPETokenizer
from chainrule.text.splitting.patterns import PATTERNS
from chainrule.text.unicode.byte_alphabet import hide, show

_GPT2_SPECIAL = {"<|endoftext|>": 50256}
_CL100K_SPECIAL = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}
_O200K_SPECIAL = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
# A file of ranks lacks its pattern and special tokens; for these names they are known.
_RANKS = {
    "r50k_base": ("gpt2", _GPT2_SPECIAL),
    "p50k_base": ("gpt2", _GPT2_SPECIAL),
    "cl100k_base": ("gpt4", _CL100K_SPECIAL),
    "o200k_base": ("o200k", _O200K_SPECIAL),
}


def read_gpt2(encoder: Path, merges: Path) -> BPETokenizer:
    """encoder.json + vocab.bpe (vocab.json + merges.txt). A token that is neither a byte nor merged is special."""
    ids = json.loads(read_bytes(encoder).decode())
    if not isinstance(ids, dict) or not all(type(id) is int for id in ids.values()):
        raise FormatError(f"{encoder.name}: not a vocabulary (must be an object of token: id)")
    pairs = []
    for number, line in enumerate(read_bytes(merges).decode().split("\n"), start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        pair = line.rstrip("\r").split(" ")
        if len(pair) != 2 or pair[0] not in ids or pair[1] not in ids:
            raise FormatError(
                f"{merges.name}, line {number}: {line!r} (must be two tokens of {encoder.name})"
            )
        pairs.append(pair)
    merged = {left + right for left, right in pairs}
    special = {name: id for name, id in ids.items() if len(name) > 1 and name not in merged}
    return BPETokenizer(
        {hide(name): id for name, id in ids.items() if name not in special},
        [(ids[left], ids[right]) for left, right in pairs],
        pattern="gpt2",
        special_tokens=special,
    )


def write_gpt2(tokenizer: BPETokenizer, directory: str | Path) -> None:
    """Write encoder.json and vocab.bpe into `directory`; they do not store the pattern, so it must be GPT-2's."""
    if tokenizer.pattern != "gpt2" or tokenizer.whole_words:
        kind = "ranks" if tokenizer.ranked else f"the pattern {tokenizer.pattern!r}"
        raise FormatError(f"write_gpt2: got a tokenizer with {kind} (must be merges with the pattern 'gpt2')")
    names = {show(token): id for token, id in tokenizer.ids.items()} | tokenizer.special_tokens
    write(Path(directory) / "encoder.json", json.dumps(names).encode())
    pairs = [f"{show(tokenizer.tokens[row[0]])} {show(tokenizer.tokens[row[1]])}" for row in tokenizer.merges]
    write(Path(directory) / "vocab.bpe", "\n".join(["#version: 0.2", *pairs, ""]).encode())


def holds_ranks(path: Path) -> bool:
    """True if a file begins with a token in base64 and its rank, whatever its name."""
    return re.match(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n", bytes(map_file(path)[:4096])) is not None


def read_tiktoken(
    path: str | Path, *, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> BPETokenizer:
    """tiktoken's file of ranks: a token in base64 and its rank on each line.

    The file lacks pattern and special tokens; for o200k_base, cl100k_base, p50k_base and r50k_base they are known. A
    file by another name needs a pattern.
    """
    path = Path(path)
    usual, known = _RANKS.get(path.stem, (None, {}))
    ids: dict[bytes, int] = {}
    for number, line in enumerate(read_bytes(path).decode().splitlines(), start=1):
        word, _, rank = line.partition(" ")
        try:
            token = base64.b64decode(word, validate=True)
            id = int(rank)
        except (binascii.Error, ValueError):
            raise FormatError(f"line {number}: {line[:80]!r} (must be base64 and a rank)") from None
        if ids.setdefault(token, id) != id:
            raise FormatError(f"line {number}: {token!r} has two ranks, {ids[token]} and {id}")
    if not ids:
        raise FormatError("no tokens (must have a token in base64 and its rank on each line)")
    special = known if special_tokens is None else special_tokens
    pattern = usual if pattern is None else pattern
    if pattern is None:  # guessing would give other tokens
        convert = f"chainrule tokenize convert {shlex.quote(str(path))} --pattern NAME --out tokenizer.json"
        raise FormatError(
            "ranks do not say how words are split, and this is no known name "
            f"(convert it once: {convert}, where NAME is {', '.join(PATTERNS)}, or a regular expression)"
        )
    return BPETokenizer(ids, None, pattern=pattern, special_tokens=special)


def write_tiktoken(tokenizer: BPETokenizer, path: str | Path) -> None:
    """Write the ranks; the file does not store the pattern and the special tokens."""
    made = tokenizer.merges[:, 2]
    if not tokenizer.ranked and (made[1:] <= made[:-1]).any():
        raise FormatError(
            "write_tiktoken: ids do not rise with the merges (a rank is both; use tokenizer.json)"
        )
    rows = sorted(tokenizer.ids.items(), key=lambda item: item[1])
    lines = [b"%b %d\n" % (base64.b64encode(token), id) for token, id in rows]
    write(Path(path), b"".join(lines))
