"""/v1/embeddings: vectors of texts, by a model with a BERT inside."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.serve.api.errors import refused
from chainrule.serve.api.requests import EmbeddingRequest
from chainrule.serve.api.sampling import encoding, token_ids
from chainrule.serve.batching import Embedder
from chainrule.serve.limits import LIMITS
from chainrule.serve.models import Served
from chainrule.types import Ids

if TYPE_CHECKING:
    from chainrule.generate.embedding import Vectors


def embedder_of(served: Served) -> Embedder:
    """What makes vectors with a model."""
    if served.embedder is None:
        rule = "must be a model with a BERT inside; this one writes"
        raise refused(f"model: {served.name} makes no embeddings ({rule})", "model")
    return served.embedder


def embedding_rows(body: EmbeddingRequest, served: Served) -> list[Ids]:
    """The ids of each text."""
    embedder_of(served).check_capacity()  # before any text is encoded
    if body.dimensions not in (None, served.width):
        rule = f"must be {served.width}, the width of {served.name}"
        raise refused(f"dimensions: {body.dimensions} ({rule})", "dimensions")
    given: list[Any] = [body.input] if isinstance(body.input, str) else list(body.input)
    if given and isinstance(given[0], int):
        given = [given]
    if not 0 < len(given) <= LIMITS.texts:
        raise refused(f"input: {len(given)} texts (must be from 1 to {LIMITS.texts})", "input")
    with encoding("input"):
        return [
            served.tokenizer.encode(text)
            if isinstance(text, str)
            else token_ids(text, served.vocab_size, "input")
            for text in given
        ]


def embedding_response(
    body: EmbeddingRequest, served: Served, rows: list[Ids], vectors: Vectors
) -> dict[str, Any]:
    def written(vector: Any) -> Any:
        if body.encoding_format == "base64":
            return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
        return vector.tolist()

    data = [
        {"object": "embedding", "index": i, "embedding": written(vector)} for i, vector in enumerate(vectors)
    ]
    tokens = sum(map(len, rows))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": served.name, "data": data, "usage": usage}
