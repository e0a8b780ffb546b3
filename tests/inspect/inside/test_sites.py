"""Sites: the residual stream, blocks and parts of any model, found in its trace."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, DataError
from chainrule.inspect import sites
from chainrule.inspect.inside.sites import arguments
from tests.inspect.inside.small import CHANGED, FAMILIES, IDS, TRANSFORMERS, small


@pytest.mark.parametrize("name", [*FAMILIES, *CHANGED])
def test_names_are_those_of_captures(name: str) -> None:
    model, ids = small(name)
    found = sites(model, ids)
    with cr.no_grad(), cr.capture() as seen:
        model.eval()(*arguments(model, ids))
    assert found.names == list(seen)
    for i, node in enumerate(found.graph.nodes):
        assert seen[found.names[i]].value.shape == node.shapes[0]


@pytest.mark.parametrize("name", [*TRANSFORMERS, *CHANGED])
def test_parts_sum_to_the_stream(name: str) -> None:
    model, ids = small(name)
    found = sites(model, ids)
    with cr.no_grad(), cr.capture() as seen:
        model.eval()(*arguments(model, ids))
    start, parts = found.summed
    total = seen[start].value + sum(seen[part.call].value for part in parts)
    read = seen[found.last_norm[0]].value
    assert np.allclose(total[:, -read.shape[1] :], read, atol=1e-5)
    if name != "marian":  # whose blocks each end in a norm
        kinds = [part.kind for part in parts if part.kind != "embedding"]
        each = ["attention", "cross_attention", "mlp"] if found.source_spine else ["attention", "mlp"]
        assert kinds == each * 2


def test_blocks_of_an_encoder_and_a_decoder() -> None:
    found = sites(*small("t5"))
    assert list(found.streams) == [
        "source", "encoder.block.0", "encoder.block.1", "embedding", "decoder_stack.block.0", "decoder_stack.block.1"
    ]  # fmt: skip
    assert [[a.cross for a in block.attentions] for block in found.blocks.values()] == [
        [False], [False], [False, True], [False, True]
    ]  # fmt: skip


def test_rows_of_a_soft_prompt_are_known() -> None:
    assert [sites(*small(name)).before for name in ("gpt", "prompt", "prefix", "t5")] == [0, 3, 0, 0]


def test_refusals() -> None:
    found = sites(*small("gpt"))
    with pytest.raises(ConfigError, match=r"no block 'h.5' \(must be one of h.0, h.1"):
        found.block("h.5")
    with pytest.raises(ConfigError, match=r"block 2 \(there are 2, counted from 0\)"):
        found.block(2)
    with pytest.raises(ConfigError, match=r"block h.0 has no cross-attention"):
        found.attending(0, cross=True)
    with pytest.raises(ConfigError, match=r"Seq2Seq: got 1 arrays of ids \(must be a pair: source, target\)"):
        sites(small("seq2seq")[0], IDS)
    with pytest.raises(DataError, match=r"ids \(2,\) of dtype float64"):
        sites(small("gpt")[0], [0.5, 1.0])
    with pytest.raises(ConfigError, match="no norm before the output"):
        _ = sites(*small("lstm")).summed
