"""WordPiece in Hugging Face's `tokenizer.json`, and BERT's `vocab.txt`.

The post_processor (tokens around a text), truncation and padding are not read: batches do that.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chainrule.errors import FormatError
from chainrule.io.files import read_bytes
from chainrule.io.hf.tokenizers.parts import (
    Description,
    added_tokens,
    describe,
    describe_added,
    in_order,
    part,
    refuse,
)
from chainrule.text import BertRules, Vocabulary, WordPieceTokenizer
from chainrule.text.training.wordpiece import PREFIX
from chainrule.text.wordpiece import MOST_CHARACTERS, SPECIAL, UNKNOWN

KIND = WordPieceTokenizer
MODEL = {
    "type": "WordPiece",
    "unk_token": UNKNOWN,
    "continuing_subword_prefix": PREFIX,
    "max_input_chars_per_word": MOST_CHARACTERS,
}


def read(description: Description) -> WordPieceTokenizer:
    """The tokenizer described by a `tokenizer.json`."""
    model = part(description, "model")
    for name, value in MODEL.items():
        if model.get(name, value) != value:
            raise refuse(f"model {name}", model[name], repr(value))
    vocab = model.get("vocab")
    if not isinstance(vocab, dict):
        raise FormatError("WordPiece: the model has no vocab (must map tokens to ids)")
    special = added_tokens(description)
    tokens = in_order(vocab | special)
    pre_tokenizer, decoder = part(description, "pre_tokenizer"), part(description, "decoder")
    if pre_tokenizer.get("type") != "BertPreTokenizer":
        raise refuse("pre_tokenizer", pre_tokenizer.get("type"), "BertPreTokenizer")
    if decoder.get("type") not in (None, "WordPiece"):
        raise refuse("decoder", decoder.get("type"), "WordPiece")
    return WordPieceTokenizer(Vocabulary(tokens, special), rules=_rules(part(description, "normalizer")))


def write(tokenizer: WordPieceTokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    ids = tokenizer.vocabulary.ids
    return describe(
        added_tokens=describe_added({name: ids[name] for name in tokenizer.vocabulary.special}),
        normalizer={"type": "BertNormalizer", **asdict(tokenizer.rules)},
        pre_tokenizer={"type": "BertPreTokenizer"},
        decoder={"type": "WordPiece", "prefix": PREFIX, "cleanup": True},
        model=MODEL | {"vocab": ids},
    )


def read_vocab_txt(content: bytes, *, config: Path) -> WordPieceTokenizer:
    """A vocab.txt, one token a line. The file `config` beside it says whether text is lowercased; by default it is."""
    lines = content.decode().removesuffix("\n").split("\n")
    tokens = [line.removesuffix("\r") for line in lines]
    _refuse_prose(tokens)
    lowercase = True
    if config.is_file():
        try:
            lowercase = json.loads(read_bytes(config)).get("do_lower_case", True) is not False
        except (ValueError, AttributeError) as error:
            raise FormatError(f"{config.name} beside it is not a JSON object ({error})") from error
    special = [name for name in SPECIAL if name in set(tokens)]
    return WordPieceTokenizer(
        Vocabulary(tokens, special), rules=BertRules(lowercase=lowercase, strip_accents=lowercase)
    )


def _refuse_prose(tokens: list[str]) -> None:
    """Refuse prose given as a vocabulary: its tokens would be whole lines."""
    rule = (
        f"must be BERT's vocab.txt, one token a line, {UNKNOWN} among them; "
        "a tokenizer is learned from a text by chainrule tokenize train"
    )
    for number, token in enumerate(tokens, start=1):
        if " " in token.strip() or "\t" in token.strip():
            raise FormatError(f"line {number} is {token[:40]!r}, no token ({rule})")
    if UNKNOWN not in tokens:
        raise FormatError(f"no token {UNKNOWN} in {len(tokens)} lines ({rule})")


def write_vocab_txt(tokenizer: WordPieceTokenizer) -> str:
    """The content of a vocab.txt, one token a line."""
    return "".join(f"{token}\n" for token in tokenizer.vocabulary.tokens)


def _rules(normalizer: Description) -> BertRules:
    if normalizer.get("type") != "BertNormalizer":
        raise refuse("normalizer", normalizer.get("type"), "BertNormalizer")
    lowercase = _flag(normalizer, "lowercase", True)
    return BertRules(
        clean_text=_flag(normalizer, "clean_text", True),
        handle_chinese_chars=_flag(normalizer, "handle_chinese_chars", True),
        strip_accents=_flag(normalizer, "strip_accents", lowercase),
        lowercase=lowercase,
    )


def _flag(normalizer: Description, name: str, default: bool) -> bool:
    """A flag of the normalizer; the default if missing or null."""
    value = normalizer.get(name)
    if value is not None and not isinstance(value, bool):
        raise FormatError(f"normalizer: {name} is {value!r} (must be true or false)")
    return default if value is None else value
