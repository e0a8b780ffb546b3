"""The architecture of a model as data, from its traced forward pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.inspect.inside.checks import check_network
from chainrule.inspect.inside.sites import arguments, forward_graph
from chainrule.models import Model
from chainrule.models.seq2seq.encoder_decoder import EncoderDecoder
from chainrule.trace import picture

TOKENS = 8  # of the text that is traced


def architecture(model: Model, ids: Any = None) -> dict[str, Any]:
    """Calls, blocks and who feeds whom, with shapes, parameters, FLOPs and bytes kept for a backward pass, for JSON.

    The forward pass is traced on ids, or on a few tokens; nothing is computed, weights may be abstract. The value of a
    node is `view(model, ids).value(node["name"])`.

    >>> import chainrule as cr
    >>> found = cr.inspect.architecture(cr.models.make("llama", n_layer=2, n_embd=32, vocab_size=10))
    >>> [block["name"] for block in found["blocks"]], found["nodes"][1]["name"], found["nodes"][1]["shape"]
    (['layers.0', 'layers.1'], 'layers.0.input_layernorm.rmsnorm', [1, 8, 32])
    """
    check_network(model)
    if ids is None:
        some = np.zeros(
            (1, max(1, min(TOKENS, model.context) if hasattr(model.config, "block_size") else TOKENS)),
            np.int64,
        )
        ids = (some, some) if isinstance(model, EncoderDecoder) else some
    found = picture(forward_graph(model, arguments(model, ids), learning=True))
    family = {"model": type(model).__name__, "parameters": model.count()}
    return family | {"flops": sum(node["flops"] for node in found["nodes"])} | found
