"""Tokenizers in GGUF's settings.

    gpt2     byte-level BPE; `pre` names the pattern that splits words
    llama    SentencePiece BPE
    bert     WordPiece; a piece that begins a word is written with ▁ before it, one inside a word without ##
    t5       SentencePiece Unigram

Patterns are those of the models' own files, also where llama.cpp comes close to them only (gpt-4o: letters by case).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.errors import ChainruleError, ConfigError, FormatError
from chainrule.io import sentencepiece
from chainrule.io.gguf.conventions import END_NAMES, adds_bos, id_of
from chainrule.io.hf.tokenizers import bpe, pipeline
from chainrule.io.hf.tokenizers.bpe import merge_pairs
from chainrule.io.hf.tokenizers.parts import OtherParts
from chainrule.io.sentencepiece import BYTE, CONTROL, NORMAL, UNKNOWN_TYPE, UNUSED, USER_DEFINED
from chainrule.io.settings import Settings
from chainrule.text import (
    BertRules,
    BPETokenizer,
    CharTokenizer,
    PipelineTokenizer,
    SentencePieceBPETokenizer,
    Tokenizer,
    Vocabulary,
    WordPieceTokenizer,
)
from chainrule.text.pipeline.models import BPE
from chainrule.text.training.wordpiece import PREFIX as INSIDE
from chainrule.text.unicode.byte_alphabet import hide, show
from chainrule.text.unigram import BYTES, SPACE, UNKNOWN

PREFIX = "tokenizer.ggml."
# Our patterns, and llama.cpp's names for them, the first of which is written. It lacks GPT-4's: that of dbrx differs
# only in white space at the end of a text.
PRE = {
    "gpt2": (
        "gpt-2", "mpt", "olmo", "jais", "phi-2", "exaone4", "gigachat", "jina-es", "jina-de", "jina-v2-es",
        "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe", "a.x-4.0", "mellum", "modern-bert", "trillion",
        "granite-docling",
    ),
    "llama3": (
        "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
        "smaug-bpe", "chatglm-bpe", "glm4",
    ),
    "gpt4": ("dbrx",),
    "o200k": ("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"),
    "qwen2": (
        "qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan", "solar-open", "grok-2", "kormo", "f2llmv2",
    ),
    "qwen35": ("qwen35",),
    "smollm": ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"),
    "falcon": ("falcon",),
    "bloom": ("bloom", "poro-chat", "gpt3-finnish"),
    "viking": ("viking",),
    "tekken": ("tekken",),
    "deepseek-llm": ("deepseek-llm",),
    "deepseek-coder": ("deepseek-coder",),
    "deepseek-v3": ("deepseek-v3", "hunyuan-dense", "joyai-llm"),
    "gguf-default": ("default",),
}  # fmt: skip
PATTERNS = {name: pattern for pattern, names in PRE.items() for name in names}
MERGED = (
    "smaug-bpe",
    "chatglm-bpe",
    "glm4",
)  # Llama 3's pattern, but a word that is a token is merged all the same


def read_tokenizer(settings: Settings) -> Tokenizer:
    """The tokenizer described by the settings of a file."""
    ours = Settings({k.removeprefix(PREFIX): v for k, v in settings.values.items() if k.startswith(PREFIX)})
    kind, tokens = ours.values.get("model"), ours.values.get("tokens")
    if not isinstance(tokens, list):
        raise FormatError(f"{PREFIX}tokens is missing (must be the list of tokens)")
    # What ends a text is special, also where a file calls it user-defined: llama.cpp reads it so.
    types = [
        CONTROL if kind == USER_DEFINED and name in END_NAMES else kind
        for name, kind in zip(tokens, _numbers(ours, "token_type", len(tokens), NORMAL), strict=True)
    ]
    if kind == "gpt2":
        return _read_bpe(ours, tokens, types)
    if kind == "llama":
        if USER_DEFINED in types:
            return _read_symbols(ours, tokens, types)
        return _read_pieces(ours, tokens, types, id_of(settings, "bos") if adds_bos(settings) else None)
    if kind == "bert":
        return _read_wordpiece(ours, tokens, types)
    if kind == "t5":
        return _read_unigram(ours, tokens, types)
    raise FormatError(f"{PREFIX}model {kind} is not supported (must be one of gpt2, llama, bert, t5)")


def write_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """The settings that describe a tokenizer."""
    if isinstance(tokenizer, BPETokenizer):
        found = _write_bpe(tokenizer)
    elif isinstance(tokenizer, PipelineTokenizer):
        pieces = isinstance(tokenizer.model, BPE) and tokenizer.pre_tokenizer is None
        found = _write_symbols(tokenizer) if pieces else _write_byte_level(tokenizer)
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


def _read_bpe(settings: Settings, tokens: list[str], types: list[float]) -> Tokenizer:
    merges = settings.values.get("merges")
    if not isinstance(merges, list):
        raise FormatError(f"{PREFIX}merges is missing (must be a list of pairs)")
    pre = settings.values.get("pre", "default")
    if not isinstance(pre, str) or pre not in PATTERNS:
        raise FormatError(
            f"{PREFIX}pre {str(pre)[:60]} is not supported (must be one of {', '.join(PATTERNS)})"
        )
    pattern = PATTERNS[pre]
    ids = {name: id for id, name in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise FormatError(f"{PREFIX}tokens: a token occurs twice (each must occur once)")
    special = {name: id for name, id in ids.items() if types[id] not in (NORMAL, BYTE)}
    found = BPETokenizer(
        {hide(name): id for name, id in ids.items() if name not in special},
        merge_pairs(merges, ids),
        pattern=pattern,
        special_tokens=special,
        whole_words=pattern in ("llama3", "tekken") and pre not in MERGED,
    )
    if USER_DEFINED not in types:
        return found
    described = bpe.write(found)
    for entry in described["added_tokens"]:
        entry["special"] = types[entry["id"]] != USER_DEFINED
    return pipeline.read(described)


def _write_bpe(tokenizer: BPETokenizer) -> dict[str, Any]:
    if not isinstance(tokenizer.pattern, str):
        raise ConfigError(
            f"gguf: cannot hold the pattern {tokenizer.pattern[0][:60]!r} (must be one of {', '.join(PRE)})"
        )
    rows = sorted(tokenizer.merges.tolist(), key=lambda row: (row[3], row[0], row[1]))
    special = set(tokenizer.special_tokens.values())
    names = [
        token.decode() if id in special else show(token) or f"[gap {id}]"
        for id, token in enumerate(tokenizer.tokens)
    ]
    types = [CONTROL if id in special or not token else NORMAL for id, token in enumerate(tokenizer.tokens)]
    return {
        "model": "gpt2",
        "pre": PRE[tokenizer.pattern][0],
        "tokens": names,
        "token_type": np.array(types, np.int32),
        "merges": [" ".join(show(tokenizer.tokens[id]) for id in row[:2]) for row in rows],
        "add_bos_token": False,
    }


def _write_byte_level(tokenizer: PipelineTokenizer) -> dict[str, Any]:
    """A pipeline that is byte-level BPE but for NFC, which llama.cpp leaves out, and tokens that are always found."""
    described = pipeline.write(tokenizer)
    plain = {"special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
    added = [entry | plain for entry in described["added_tokens"]]
    if described["normalizer"] in (None, {"type": "NFC"}):
        described |= {"normalizer": None, "added_tokens": added}
    try:
        found = _write_bpe(bpe.read(described))
    except OtherParts as error:
        raise ConfigError(f"gguf: cannot hold this pipeline ({error})") from None
    always = [token.id for token in tokenizer.added if not token.special] + list(tokenizer.symbols.values())
    found["token_type"][always] = USER_DEFINED
    return found


def _read_pieces(
    settings: Settings, tokens: list[str], types: list[float], bos: int | None
) -> SentencePieceBPETokenizer:
    scores = _numbers(settings, "scores", len(tokens), 0)
    special = [name for name, kind in zip(tokens, types, strict=True) if kind not in (NORMAL, BYTE)]
    vocabulary = Vocabulary(tokens, special)
    # An ordinary token, which a text may become too, is put first by the conventions only.
    start = next((name for name, id in vocabulary.special_ids.items() if id == bos), None)
    prefix = settings.flag("add_space_prefix", True)
    return SentencePieceBPETokenizer.from_scores(vocabulary, scores, prefix=prefix, start=start)


def _read_symbols(settings: Settings, tokens: list[str], types: list[float]) -> Tokenizer:
    """SentencePiece BPE with tokens of the user, which are found in every text; converters write their spaces plain."""
    known = set(tokens)
    spelled = [name.replace(" ", SPACE) for name in tokens]
    names = [
        new if kind == USER_DEFINED and new not in known else name
        for name, new, kind in zip(tokens, spelled, types, strict=True)
    ]
    # Converters call what fills a vocabulary up to the model's size unused or unknown, and <unk> itself control.
    kinds = [CONTROL if kind in (UNUSED, UNKNOWN_TYPE) else kind for kind in types]
    if UNKNOWN in known or UNKNOWN_TYPE in types:
        kinds[tokens.index(UNKNOWN) if UNKNOWN in known else types.index(UNKNOWN_TYPE)] = UNKNOWN_TYPE
    prefix = settings.flag("add_space_prefix", True)
    rules = sentencepiece.Rules(add_dummy_prefix=prefix, remove_extra_whitespaces=False)
    return sentencepiece.build("BPE", names, _numbers(settings, "scores", len(tokens), 0), kinds, rules)


def _read_wordpiece(settings: Settings, tokens: list[str], types: list[float]) -> WordPieceTokenizer:
    special = [name for name, kind in zip(tokens, types, strict=True) if kind != NORMAL]
    names = [
        name if kind != NORMAL else name.removeprefix(SPACE) if name.startswith(SPACE) else INSIDE + name
        for name, kind in zip(tokens, types, strict=True)
    ]
    lowercase = settings.flag("normalizer.lowercase", True)
    accents = settings.flag("normalizer.strip_accents", lowercase)
    rules = BertRules(lowercase=lowercase, strip_accents=accents)
    return WordPieceTokenizer(Vocabulary(names, special), rules=rules)


def _read_unigram(settings: Settings, tokens: list[str], types: list[float]) -> Tokenizer:
    charsmap = settings.values.get("precompiled_charsmap")
    if charsmap is not None and not (isinstance(charsmap, np.ndarray) and charsmap.dtype.itemsize == 1):
        raise FormatError(f"{PREFIX}precompiled_charsmap is not a list of bytes (must be)")
    rules = sentencepiece.Rules(
        b"" if charsmap is None else charsmap.tobytes(),
        add_dummy_prefix=settings.flag("add_space_prefix", True),
        remove_extra_whitespaces=settings.flag("remove_extra_whitespaces", False),
    )
    return sentencepiece.build("Unigram", tokens, _numbers(settings, "scores", len(tokens), 0), types, rules)


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


def _write_symbols(tokenizer: PipelineTokenizer) -> dict[str, Any]:
    """A pipeline that is SentencePiece BPE with tokens of the user."""
    assert isinstance(tokenizer.model, BPE)
    ids, prefix = tokenizer.model.vocab, tokenizer.normalize("a").startswith(SPACE)
    merges = [(ids[left], ids[right], rank) for rank, (left, right) in enumerate(tokenizer.model.merges)]
    try:
        vocabulary = Vocabulary(tokenizer.tokens, tokenizer.special_tokens)
        found = _write_pieces(SentencePieceBPETokenizer(vocabulary, merges, prefix=prefix))
        found["token_type"][list(tokenizer.symbols.values())] = USER_DEFINED
        same = read_tokenizer(Settings({PREFIX + name: value for name, value in found.items()})) == tokenizer
    except ChainruleError as error:
        raise ConfigError(f"gguf: cannot hold this pipeline ({error})") from None
    if not same:
        raise ConfigError("gguf: cannot hold this pipeline (must be SentencePiece BPE that keeps all spaces)")
    return found


def _numbers(settings: Settings, name: str, count: int, default: float) -> list[float]:
    """One number for each token."""
    value = settings.values.get(name)
    if value is None:
        return [default] * count
    if not isinstance(value, np.ndarray) or len(value) != count or not np.isfinite(value).all():
        raise FormatError(f"{PREFIX}{name} is not a list of {count} numbers (must be one for each token)")
    return list(value.tolist())
