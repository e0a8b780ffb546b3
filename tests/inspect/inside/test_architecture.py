"""The architecture of a model as data."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import chainrule as cr
from chainrule.inspect import architecture, view
from chainrule.trace.cost import kept
from chainrule.trace.count import Batch, kept_for_backward, step_graph
from tests.inspect.inside.small import CHANGED, FAMILIES, small


@pytest.mark.parametrize("name", [*FAMILIES, *CHANGED])
def test_it_is_plain_data_and_complete(name: str) -> None:
    model, ids = small(name)
    found = json.loads(json.dumps(architecture(model, ids)))
    unused = model.count() - sum(node["parameters"] for node in found["nodes"])
    pooler = sum(p.size for n, p in model.named_parameters() if "pooler" in n or "seq_relationship" in n)
    assert unused == pooler and found["parameters"] == model.count()
    inside = [i for block in found["blocks"] for i in block["nodes"]]
    assert len(inside) == len(set(inside))
    for block in found["blocks"]:
        for cost in ("parameters", "flops", "kept"):
            assert block[cost] == sum(found["nodes"][i][cost] for i in block["nodes"])
    assert all(a == "ids" or isinstance(a, str) or a < b for a, b in found["edges"])


def test_the_value_of_a_node_has_its_shape() -> None:
    model, ids = small("gpt")
    seen = view(model, ids)
    for node in architecture(model, ids)["nodes"]:
        assert list(seen.value(node["name"]).shape) == node["shape"]


def test_a_few_tokens_are_read_unless_ids_are_given() -> None:
    found = architecture(small("t5")[0])
    assert {edge[0] for edge in found["edges"] if isinstance(edge[0], str)} == {"source", "target"}
    shapes = [node["shape"] for node in found["nodes"] if node["layer"] == "shared"]
    assert shapes == [[1, 8, 16], [1, 8, 16]]


def test_bytes_kept_are_those_of_a_training_step() -> None:
    model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    graph = step_graph(model, Batch(2, 8))
    assert sum(kept(graph)) == kept_for_backward(model, Batch(2, 8)) > 0
    doubled = step_graph(type(model)(replace(model.config, n_layer=4)), Batch(2, 8))
    assert sum(kept(doubled)) > 1.5 * sum(kept(graph))


def test_a_model_without_numbers_will_do() -> None:
    config = cr.models.GPTConfig(n_layer=96, n_head=96, n_embd=12288, block_size=2048, vocab_size=50257)
    found = architecture(cr.models.GPT.abstract(config), np.zeros((1, 4), int))
    assert found["parameters"] == 174_604_259_328 and len(found["blocks"]) == 96
