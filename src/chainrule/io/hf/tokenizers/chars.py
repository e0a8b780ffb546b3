"""Characters in Hugging Face's `tokenizer.json`: a BPE that never merges, on the whole text.

Hugging Face drops an unknown character; CharTokenizer refuses it.
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.tokenizers.bpe import MODEL
from chainrule.io.hf.tokenizers.parts import Description, added_tokens, describe, in_order, part, refuse
from chainrule.text import CharTokenizer

KIND = CharTokenizer
DECODER = {"type": "Fuse"}  # otherwise Hugging Face puts spaces between tokens


def matches(description: Description) -> bool:
    """Whether this BPE is a character tokenizer."""
    return part(description, "decoder") == DECODER and not part(description, "model").get("merges")


def read(description: Description) -> CharTokenizer:
    """The tokenizer described by a `tokenizer.json`."""
    for name in ("normalizer", "pre_tokenizer"):
        if part(description, name):
            raise refuse(name, part(description, name).get("type"), "none for characters")
    if added := added_tokens(description):
        raise refuse("added token", min(added), "none for characters")
    vocab = part(description, "model").get("vocab")
    if not isinstance(vocab, dict) or not all(len(token) == 1 for token in vocab):
        raise FormatError("BPE: without merges the vocab must map single characters to ids")
    return CharTokenizer("".join(in_order(vocab)))


def write(tokenizer: CharTokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    if any("\ud800" <= character <= "\udfff" for character in tokenizer.characters):
        raise FormatError("tokenizer.json: cannot hold a lone surrogate (must be characters)")
    vocab = {character: id for id, character in enumerate(tokenizer.characters)}
    return describe(decoder=DECODER, model=MODEL | {"ignore_merges": False, "vocab": vocab, "merges": []})
