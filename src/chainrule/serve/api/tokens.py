"""/tokenize, /detokenize, /tokenizer_info and /v1/models: what a client must know to count tokens itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.serve.api.chat import conversation_ids
from chainrule.serve.api.errors import refused
from chainrule.serve.api.requests import DetokenizeRequest, TokenizeRequest
from chainrule.serve.api.sampling import encoding, token_ids
from chainrule.serve.models import Served
from chainrule.text import Tokenizer, prompt_ids
from chainrule.text.chat.prompts import marked_ids
from chainrule.types import Ids


def tokenize(body: TokenizeRequest, served: Served) -> dict[str, Any]:
    if (body.prompt is None) == (body.messages is None):
        raise refused("prompt: give either prompt or messages", "prompt")
    if body.messages is not None:
        begin = body.add_generation_prompt is not False
        ids = conversation_ids(body.messages, served, add_generation_prompt=begin)
    else:
        with encoding("prompt"):
            bare = body.add_special_tokens is False
            text = body.prompt or ""
            ids = (
                bare_ids(served.tokenizer, text) if bare else prompt_ids(served.tokenizer, text, special=True)
            )
    tokens = ids.tolist()
    names = [served.token_text(id) for id in tokens] if body.return_token_strs else None
    return {"tokens": tokens, "count": len(tokens), "max_model_len": served.context, "token_strs": names}


def bare_ids(tokenizer: Tokenizer, text: str) -> Ids:
    """The ids of a text without what begins every text; names of special tokens are these tokens."""
    ids, first = marked_ids(tokenizer, text), tokenizer.encode("")
    added = np.array_equal(ids[: len(first)], first) and not text.startswith(
        tuple(map(tokenizer.piece, first[:1]))
    )
    return ids[len(first) :] if added else ids


def detokenize(body: DetokenizeRequest, served: Served) -> dict[str, Any]:
    ids = token_ids(body.tokens, served.tokenizer.vocab_size, "tokens")
    return {"prompt": served.tokenizer.decode(ids)}


def tokenizer_info(served: Served) -> dict[str, Any]:
    """What a tokenizer adds and knows, in the names of Hugging Face's tokenizer_config.json."""
    tokenizer = served.tokenizer
    c = tokenizer.conventions
    names = {id: name for name, id in tokenizer.special_ids.items()}
    roles = {
        f"{role}_token": None if id is None else names.get(id, served.token_text(id))
        for role, id in c.roles.items()
    }
    return {
        "tokenizer_class": type(tokenizer).__name__,
        "vocab_size": tokenizer.vocab_size,
        "add_bos_token": c.add_bos,
        **roles,
        "special_tokens": dict(tokenizer.special_ids),
        "chat_template": c.chat_template,
        "model_max_length": served.context,
    }


def model_card(served: Served) -> dict[str, Any]:
    return {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "chainrule",
        "max_model_len": served.context,
        "vocab_size": served.vocab_size,
        "writes": served.writer is not None,
        "chat_template": served.tokenizer.conventions.chat_template is not None,
    }
