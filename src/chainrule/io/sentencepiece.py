"""SentencePiece's `.model`: pieces with their scores, how text is normalized, and whether the model is BPE or Unigram.

    1   pieces            1 text, 2 score, 3 type
    2   trainer_spec      3 model type, 24 spaces at the end of words, 35 bytes for unknown characters
    3   normalizer_spec   1 name, 2 charsmap, 3 space before the text, 4 extra spaces removed, 5 spaces written ▁
    5   denormalizer_spec

The file is read as data, field by field; what it asks for and we do not do is refused by name.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainrule.errors import FormatError
from chainrule.io.binary import map_file
from chainrule.io.protobuf import Message, fields
from chainrule.text import SentencePieceBPETokenizer, Tokenizer, Vocabulary
from chainrule.text.pipeline import AddedToken, PipelineTokenizer, decoders, models, normalizers
from chainrule.text.pipeline.part import Find
from chainrule.text.sentencepiece_bpe import merges_by_score
from chainrule.text.unigram import BYTES, SPACE, UNKNOWN

NORMAL, UNKNOWN_TYPE, CONTROL, USER_DEFINED, UNUSED, BYTE = TYPES = range(1, 7)
KINDS = {1: "Unigram", 2: "BPE", 3: "Word", 4: "Char"}
PIECES, TRAINER, NORMALIZER, DENORMALIZER = 1, 2, 3, 5


@dataclass(frozen=True)
class Rules:
    """How a text is normalized; the defaults are SentencePiece's own."""

    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True


def read_sentencepiece(path: Path) -> Tokenizer:
    """The tokenizer in a file."""
    tokens, scores, types = [], [], []
    parts = {TRAINER: Message(memoryview(b"")), NORMALIZER: Message(memoryview(b""))}
    for number, value in fields(map_file(path)):
        if number == PIECES:
            piece = Message(value)
            tokens.append(piece.text(1))
            scores.append(piece.float(2))
            types.append(piece.integer(3, NORMAL))
            if types[-1] not in TYPES:
                raise FormatError(f"piece {tokens[-1][:60]!r} has type {types[-1]} (must be from 1 to 6)")
        elif number in parts:
            parts[number] = Message(value)
        elif number == DENORMALIZER and Message(value).bytes(2):
            raise FormatError("denormalizer_spec with a charsmap is not supported (must be empty)")
    kind, rules = _kind(parts[TRAINER]), _rules(parts[NORMALIZER])
    return build(kind, tokens, scores, types, rules)


def build(
    kind: str, tokens: Sequence[str], scores: Sequence[float], types: Sequence[float], rules: Rules
) -> Tokenizer:
    """The tokenizer of these pieces, scores and types; `kind` is BPE or Unigram."""
    if not tokens or not all(map(math.isfinite, scores)):
        raise FormatError(f"{len(tokens)} pieces (must be at least one, each with a finite score)")
    special = [
        token for token, type in zip(tokens, types, strict=True) if type in (UNKNOWN_TYPE, CONTROL, UNUSED)
    ]
    symbols = {token: id for id, token in enumerate(tokens) if types[id] == USER_DEFINED}
    vocabulary = Vocabulary(tokens, special)
    bytes = BYTE in types
    plain = rules == Rules(b"", rules.add_dummy_prefix, False) and not symbols
    if kind == "BPE" and bytes and plain and not _spaces_inside(vocabulary):
        return SentencePieceBPETokenizer.from_scores(vocabulary, scores, prefix=rules.add_dummy_prefix)
    unknown = [id for id, type in enumerate(types) if type == UNKNOWN_TYPE]
    if len(unknown) != 1:
        raise FormatError(f"{len(unknown)} unknown tokens (must be one)")
    model: models.Model
    if kind == "Unigram":
        model = models.Unigram(list(zip(tokens, scores, strict=True)), unknown[0], byte_fallback=bytes)
    else:
        if UNUSED in types:
            raise FormatError("BPE with unused pieces is not supported (must have none)")
        merges = [(tokens[left], tokens[right]) for left, right, _ in merges_by_score(vocabulary, scores)]
        name = tokens[unknown[0]]
        model = models.BPE(vocabulary.ids, merges, unk_token=name, fuse_unk=True, byte_fallback=bytes)
    normalizer = _normalizer(rules)
    charsmap = normalizers.Precompiled(_base64(rules.charsmap))
    for symbol in symbols:
        if charsmap(symbol) != symbol:
            raise FormatError(
                f"user-defined symbol {symbol!r} is changed by the charsmap (must stay as it is)"
            )
    return PipelineTokenizer(
        model,
        normalizer=normalizer,
        decoder=_decoder(rules),
        added=[AddedToken(vocabulary.ids[name], name, special=True) for name in special],
        symbols=symbols,
    )


def _kind(trainer: Message) -> str:
    kind = KINDS.get(trainer.integer(3, 1), "")
    if kind not in ("BPE", "Unigram"):
        raise FormatError(
            f"model type {kind or trainer.integer(3, 1)} is not supported (must be BPE or Unigram)"
        )
    if trainer.flag(24, False):
        raise FormatError("treat_whitespace_as_suffix is not supported (must be false)")
    return kind


def _rules(spec: Message) -> Rules:
    if not spec.flag(5, True):
        raise FormatError("escape_whitespaces false is not supported (must be true)")
    return Rules(spec.bytes(2), spec.flag(3, True), spec.flag(4, True))


def _normalizer(rules: Rules) -> normalizers.Normalizer:
    steps: list[normalizers.Normalizer] = []
    if rules.charsmap:
        steps.append(normalizers.Precompiled.from_dict({"precompiled_charsmap": _base64(rules.charsmap)}))
    if rules.remove_extra_whitespaces:
        changes = {normalizers.LEADING: "", " {2,}": " ", rf"[ {SPACE}]+\z": ""}
        steps += [normalizers.Replace(Find(expression), content) for expression, content in changes.items()]
    if (
        rules.add_dummy_prefix
    ):  # first, since the charsmap may delete all characters; unless spaces are removed
        at = len(steps) if rules.remove_extra_whitespaces else 0
        steps.insert(at, normalizers.Prepend(" "))
    return normalizers.Sequence((*steps, normalizers.Replace(Find(" ", literal=True), SPACE)))


def _decoder(rules: Rules) -> decoders.Decoder:
    space = decoders.Replace(Find(SPACE, literal=True), " ")
    strip = (decoders.Strip(" ", 1, 0),) if rules.add_dummy_prefix else ()
    return decoders.Sequence((space, decoders.ByteFallback(), decoders.Fuse(), *strip))


def _spaces_inside(vocabulary: Vocabulary) -> bool:
    """True if a piece spans two words, or the unknown token has another name than usual."""
    inside = any(SPACE in token.lstrip(SPACE) for token in vocabulary.plain if token not in BYTES)
    return inside or UNKNOWN not in vocabulary.special_ids


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
