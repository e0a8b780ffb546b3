"""GPT-NeoX stores queries, keys and values of a head side by side, and turns the first numbers of a head."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import FormatError
from chainrule.io import load_pretrained, safetensors, save_pretrained
from chainrule.models import NeoX, NeoXConfig

H, D = 3, 8
CONFIG = NeoXConfig(n_layer=1, n_head=H, n_embd=H * D, block_size=5, vocab_size=11, rotary=0.5)


def saved(folder: Path) -> NeoX:
    cr.seed(0)
    model = NeoX(CONFIG)
    rng = np.random.default_rng(0)
    model.load({name: value + rng.normal(size=value.shape) for name, value in model.state().items()})
    save_pretrained(model, None, folder)
    return model


def test_the_rows_of_a_head(tmp_path: Path) -> None:
    model = saved(tmp_path / "x")
    arrays = safetensors.read(tmp_path / "x" / "model.safetensors")
    assert {"gpt_neox.embed_in.weight", "embed_out.weight"} < arrays.keys()
    attention = model.layers[0].attention
    for last in ("weight", "bias"):
        theirs = arrays[f"gpt_neox.layers.0.attention.query_key_value.{last}"].reshape(H, 3, D, -1)
        for number, layer in enumerate((attention.q_proj, attention.k_proj, attention.v_proj)):
            ours = getattr(layer, last).array.reshape(H, D, -1)
            # Of eight numbers the first four turn there, in pairs (0, 2) and (1, 3); here these are (0, 4) and (1, 5).
            order = range(D) if number == 2 else (0, 1, 4, 5, 2, 3, 6, 7)
            np.testing.assert_array_equal(theirs[:, number, order], ours)


def test_older_files(tmp_path: Path) -> None:
    """They store masks and frequencies, and say nothing of rope_parameters."""
    model = saved(tmp_path / "x")
    path = tmp_path / "x" / "model.safetensors"
    more = {
        "gpt_neox.layers.0.attention.bias": np.ones((1, 1, 5, 5), bool),
        "gpt_neox.layers.0.attention.masked_bias": np.array(-1e9, np.float32),
        "gpt_neox.layers.0.attention.rotary_emb.inv_freq": np.ones(2, np.float32),
    }
    path.write_bytes(safetensors.encode(safetensors.read(path) | more))
    back, _ = load_pretrained(tmp_path / "x")
    assert back.config == CONFIG
    assert all((value == back.state()[name]).all() for name, value in model.state().items())


def test_heads_that_they_would_turn_otherwise_are_kept_in_our_form(tmp_path: Path) -> None:
    model = NeoX(replace(CONFIG, n_embd=12, rotary=0.25))  # heads of four numbers, of which a pair turns
    save_pretrained(model, None, tmp_path / "x")
    assert "architectures" not in json.loads((tmp_path / "x" / "config.json").read_text())
    assert load_pretrained(tmp_path / "x")[0].config == model.config


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"attention_bias": False}, "attention_bias is False"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type is 'linear'"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu'"),
        ({"rotary_pct": 0.4}, "rotary_pct is 0.4: 3 of 8 numbers of a head turn .must be even"),
        ({"rotary_pct": 2}, "rotary is 2.0"),
    ],
)
def test_what_ours_cannot_be_is_refused(values: dict[str, object], rule: str, tmp_path: Path) -> None:
    saved(tmp_path / "x")
    path = tmp_path / "x" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(FormatError, match=rule) as error:
        load_pretrained(tmp_path / "x")
    assert "\n" not in str(error.value)
