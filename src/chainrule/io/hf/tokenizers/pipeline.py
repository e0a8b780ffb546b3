"""Any other combination of parts in Hugging Face's `tokenizer.json`.

Of the post_processor the special tokens before and after a text are read. Truncation and padding are not read: batches
do that.
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import FormatError, kind_of
from chainrule.io.hf.tokenizers.parts import Description, describe, part
from chainrule.text.pipeline import AddedToken, PipelineTokenizer, decoders, normalizers, pretokenizers
from chainrule.text.pipeline.model_files import read_model

KIND = PipelineTokenizer
Around = tuple[tuple[str, ...], tuple[str, ...]]


def read(description: Description) -> PipelineTokenizer:
    """The tokenizer described by a `tokenizer.json`."""
    listed = description.get("added_tokens") or []
    if not isinstance(listed, list):
        raise FormatError(f"added_tokens is {kind_of(listed)} (must be a list)")
    added = [AddedToken.from_dict(entry) for entry in listed]
    normalizer = normalizers.read(description.get("normalizer"))
    symbols = {
        token.content: token.id
        for token in added
        if token == AddedToken(token.id, token.content, normalized=True)
        and (normalizer is None or normalizer(token.content) == token.content)
    }
    return PipelineTokenizer(
        read_model(description.get("model")),
        normalizer=normalizer,
        pre_tokenizer=pretokenizers.read(description.get("pre_tokenizer")),
        decoder=decoders.read(description.get("decoder")),
        added=[token for token in added if token.content not in symbols],
        symbols=symbols,
        around=_around(part(description, "post_processor")),
    )


def write(tokenizer: PipelineTokenizer) -> dict[str, Any]:
    """The content of `tokenizer.json`."""
    for symbol in tokenizer.symbols:
        if tokenizer.normalize(symbol) != symbol:  # Hugging Face looks for the normalized symbol
            raise FormatError(
                f"tokenizer.json: cannot hold the symbol {symbol!r}, which its normalizer changes (must stay)"
            )
    added = [
        *tokenizer.added,
        *(AddedToken(id, name, normalized=True) for name, id in tokenizer.symbols.items()),
    ]
    listed = [token.to_dict() for token in sorted(added, key=lambda token: token.id)]
    parts = {
        name: value for name, value in tokenizer.to_dict().items() if name in ("normalizer", "pre_tokenizer")
    }
    return describe(
        **parts,
        added_tokens=listed,
        post_processor=_template(tokenizer),
        decoder=None if tokenizer.decoder is None else tokenizer.decoder.to_dict(),
        model=tokenizer.model.to_dict(),
    )


def _around(processor: Description) -> Around:
    """The special tokens before and after a text."""
    kind = processor.get("type")
    if kind in (None, "ByteLevel"):
        return (), ()
    if kind in ("BertProcessing", "RobertaProcessing"):
        return (_name(processor.get("cls")),), (_name(processor.get("sep")),)
    if kind == "TemplateProcessing":
        return _single(processor.get("single"))
    if kind == "Sequence" and isinstance(processor.get("processors"), list):
        found = [_around(step) for step in processor["processors"] if isinstance(step, dict)]
        before, after = (tuple(name for pair in found for name in pair[side]) for side in (0, 1))
        return before, after
    known = "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing"
    raise FormatError(f"post_processor {kind} is not supported (must be one of {known})")


def _single(template: Any) -> Around:
    rule = "must be special tokens around the sequence A"
    steps = template if isinstance(template, list) else []
    kinds = [next(iter(step.items())) if isinstance(step, dict) and step else ("", {}) for step in steps]
    names = [value.get("id") if isinstance(value, dict) else None for _, value in kinds]
    places = [place for place, (kind, _) in enumerate(kinds) if kind == "Sequence"]
    special = all(kind in ("Sequence", "SpecialToken") for kind, _ in kinds)
    if len(places) != 1 or not special or not all(isinstance(name, str) for name in names):
        raise FormatError(f"post_processor TemplateProcessing: single is {str(template)[:60]} ({rule})")
    texts = [str(name) for name in names]
    return tuple(texts[: places[0]]), tuple(texts[places[0] + 1 :])


def _name(pair: Any) -> str:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
        raise FormatError(f"post_processor: got {str(pair)[:60]} (must be a token and its id)")
    return pair[0]


def _template(tokenizer: PipelineTokenizer) -> dict[str, Any] | None:
    before, after = tokenizer.around
    if not before and not after:
        return None

    def text(name: str, type_id: int) -> list[dict[str, Any]]:
        special = [
            [{"SpecialToken": {"id": token, "type_id": type_id}} for token in tokens]
            for tokens in (before, after)
        ]
        return [*special[0], {"Sequence": {"id": name, "type_id": type_id}}, *special[1]]

    ids = {token: tokenizer.tokens.index(token) for token in (*before, *after)}
    return {
        "type": "TemplateProcessing",
        "single": text("A", 0),
        "pair": text("A", 0) + text("B", 1),
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in ids.items()},
    }
