from __future__ import annotations

import pytest

from chainrule.errors import ConfigError
from chainrule.models.tuning.places import block_of, chosen, head_of, layer_at, matrices, sublayers
from tests.models.tiny import tiny
from tests.models.tuning.families import SIZES, made


@pytest.mark.parametrize("family", SIZES)
def test_every_matrix_in_a_block_has_a_role(family: str) -> None:
    model = made(family)
    found = matrices(model)
    roles = [each.role for each in found]
    assert roles.count("q") == roles.count("k") == roles.count("v") == roles.count("o") > 0
    attentions = len(sublayers(model, "attention"))
    assert roles.count("q") == attentions and set(roles) == {"q", "k", "v", "o", "mlp"}
    for each in found:
        assert layer_at(model, each.path) is each.layer
    inside = {
        id(p)
        for n, p in model.named_parameters()
        if block_of(n) is not None and n.endswith("weight") and p.ndim == 2
    }
    assert {id(each.layer.weight) for each in found} == inside


def test_targets_are_roles_or_patterns() -> None:
    model = made("llama")
    assert len(chosen("lora", model, ["q"])) == 2
    assert [m.path for m in chosen("lora", model, ["layers.1.*.up_proj"])] == ["layers.1.mlp.up_proj"]
    assert len(chosen("lora", model, ["all"])) == len(matrices(model))
    with pytest.raises(
        ConfigError, match=r"lora: targets 'layers.1.up_prj' names no layer .*layers.1.mlp.up_proj"
    ):
        chosen("lora", model, ["layers.1.up_prj"])
    with pytest.raises(
        ConfigError, match=r"names no layer of a \w+ \(must be a model with linear layers in blocks\)"
    ):
        chosen("lora", tiny("ngram"), ["q"])


def test_heads() -> None:
    assert head_of(made("gpt")) == [] and len(head_of(made("gpt", tied=False))) == 1
    assert len(head_of(made("bert-classifier"))) == 2  # the pooler is a part of it
