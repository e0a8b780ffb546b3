"""SentencePiece BPE in Hugging Face's `tokenizer.json`, as in Llama 1 and 2.

Of the post_processor, only the token before a text is read and written. Truncation and padding are not read: batches do
that.
"""

from __future__ import annotations

from typing import Any

from chainrule.io.hf.tokenizers.bpe import MODEL, merge_pair, vocab_and_merges
from chainrule.io.hf.tokenizers.parts import (
    Description,
    added_tokens,
    describe,
    describe_added,
    in_order,
    part,
    put_before,
    refuse,
    token_before,
)
from chainrule.io.hf.tokenizers.unigram import decoder, normalizer, space_first
from chainrule.text import SentencePieceBPETokenizer, Vocabulary
from chainrule.text.unigram import SPACE, UNKNOWN

KIND = SentencePieceBPETokenizer


def matches(description: Description) -> bool:
    """Whether this BPE is SentencePiece's; byte-level BPE has a pre-tokenizer."""
    return bool(part(description, "model").get("byte_fallback")) or any(
        part(description, name).get("type") == kind
        for name, kind in (("normalizer", "Sequence"), ("pre_tokenizer", "Metaspace"))
    )


def read(description: Description) -> SentencePieceBPETokenizer:
    """The tokenizer described by a `tokenizer.json`."""
    model, (vocab, listed) = part(description, "model"), vocab_and_merges(description)
    special = added_tokens(description)
    vocabulary = Vocabulary(in_order(vocab | special), special)
    merges = [(*merge_pair(place, merge, vocab), place) for place, merge in enumerate(listed)]
    if model.get("ignore_merges"):
        raise refuse("ignore_merges", True, "false")
    for left, right, _ in merges:
        piece = vocabulary.tokens[left] + vocabulary.tokens[right]
        if SPACE in piece.lstrip(SPACE):
            raise refuse("piece", piece, "without a space inside")
    tokenizer = SentencePieceBPETokenizer(
        vocabulary, merges, prefix=space_first(description), start=token_before(description)
    )
    if bool(model.get("byte_fallback")) != bool(tokenizer.bytes):
        raise refuse(
            "byte_fallback", model.get("byte_fallback"), "true with 256 byte tokens, or false without"
        )
    if model.get("fuse_unk") and not tokenizer.bytes:
        raise refuse("fuse_unk", True, "false without byte tokens")
    return tokenizer


def write(tokenizer: SentencePieceBPETokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    vocabulary, tokens = tokenizer.vocabulary, tokenizer.vocabulary.tokens
    unknown = UNKNOWN if UNKNOWN in vocabulary.ids else None
    return describe(
        added_tokens=describe_added(vocabulary.special_ids),
        normalizer=normalizer(tokenizer.prefix),
        post_processor=None if tokenizer.start is None else put_before(tokenizer.start, *tokenizer.start_ids),
        decoder=decoder(tokenizer.prefix),
        model=MODEL
        | {
            "unk_token": unknown,
            "byte_fallback": bool(tokenizer.bytes),
            "ignore_merges": False,
            "vocab": vocabulary.ids,
            "merges": [[tokens[left], tokens[right]] for _, left, right in tokenizer.merges],
        },
    )
