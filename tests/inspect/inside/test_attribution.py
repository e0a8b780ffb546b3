"""Direct logit attribution: a logit as a sum."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from chainrule.errors import ConfigError
from chainrule.inspect import attribute, view
from tests.inspect.inside.small import CHANGED, IDS, TRANSFORMERS, small


@pytest.mark.parametrize("name", [*TRANSFORMERS, *CHANGED])
@pytest.mark.parametrize(("minus", "position"), [(None, -1), (3, 1)])
def test_terms_sum_to_the_logit(name: str, minus: int | None, position: int) -> None:
    model, ids = small(name)
    model.to(np.float64)
    found = attribute(model, ids, 4, minus=minus, position=position)
    logits = view(model, ids).logits[position]
    assert found.logit == pytest.approx(logits[4] - (0 if minus is None else logits[minus]), abs=1e-9)
    assert sum(term.value for term in found.terms) == pytest.approx(found.logit, abs=1e-9)
    assert len(found.terms) == (3 if name == "marian" else 2 + len(view(model, ids).sites.summed[1]))
    json.dumps(found.to_dict())


@pytest.mark.parametrize("name", ["gpt", "llama", "neox", "lora", "t5"])
def test_heads_sum_to_attention_without_its_bias(name: str) -> None:
    model, ids = small(name)
    model.to(np.float64)
    for layer in [
        layer for path, layer in model.named_layers() if path.endswith(("c_proj", "o_proj", "base"))
    ]:
        if getattr(layer, "bias", None) is not None:
            layer.bias.data[...] = 0
    found = attribute(model, ids, 4, minus=3)
    attentions = [term for term in found.terms if "attention" in term.kind]
    assert attentions and all(len(term.heads) == 2 for term in attentions)
    for term in attentions:
        assert sum(term.heads) == pytest.approx(term.value, abs=1e-9)


def test_a_head_counts_what_its_removal_changes_if_nothing_follows() -> None:
    """In the last layer without an MLP after it, and with the norm's scale held, ablation takes away its term."""
    model, ids = small("llama")
    model.to(np.float64)
    last = model.layers[-1]
    last.mlp.down_proj.weight.data[...] = 0
    last_term = attribute(model, ids, 4).terms[-3]
    seen = view(model, ids)
    mixed = seen.value("layers.1.self_attn.attention")[0, 1, -1]  # head 1 at the last position
    size = len(mixed)
    added = last.self_attn.o_proj.weight.numpy()[:, size:] @ mixed
    x = seen.stream("layers.1")[-1]
    scale = 1 / np.sqrt((x * x).mean() + model.config.norm_eps)
    row: Any = model.head.weight.numpy()[4] * model.norm.weight.numpy() * scale
    assert last_term.heads[1] == pytest.approx(float(row @ added), abs=1e-9)


def test_refusals() -> None:
    with pytest.raises(ConfigError, match=r"the last norm of BERTPretraining reads no sum"):
        attribute(*small("bert"), 4)
    with pytest.raises(ConfigError, match="no norm before the output"):
        attribute(*small("lstm"), 4)
    with pytest.raises(ConfigError, match=r"token 11 \(there are 11, counted from 0\)"):
        attribute(*small("gpt"), 11)
    with pytest.raises(ConfigError, match=r"position 5 \(there are 5"):
        attribute(small("gpt")[0], IDS, 4, position=5)
