"""OPT is read as a GPT with ReLU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import FormatError
from chainrule.io import load_pretrained, safetensors, save_pretrained
from chainrule.models import GPT, GPTConfig

C, F, T, V = 8, 12, 5, 11
CONFIG = {
    "model_type": "opt", "hidden_size": C, "ffn_dim": F, "num_hidden_layers": 1, "num_attention_heads": 2,
    "max_position_embeddings": T, "vocab_size": V, "word_embed_proj_dim": C,
}  # fmt: skip
LAYER = "model.decoder.layers.0."
NAMES = {
    "model.decoder.embed_tokens.weight": "wte.weight",
    "model.decoder.final_layer_norm.weight": "ln_f.weight",
    "model.decoder.final_layer_norm.bias": "ln_f.bias",
    **{
        f"{LAYER}{theirs}.{last}": f"h.0.{ours}.{last}"
        for theirs, ours in {
            "self_attn_layer_norm": "ln_1", "self_attn.out_proj": "attn.c_proj", "final_layer_norm": "ln_2",
            "fc1": "mlp.c_fc", "fc2": "mlp.c_proj",
        }.items()
        for last in ("weight", "bias")
    },
}  # fmt: skip


def gpt() -> GPT:
    cr.seed(0)
    model = GPT(GPTConfig(1, 2, C, T, V, activation="relu", n_hidden=F)).eval()
    rng = np.random.default_rng(0)
    model.load({name: value + rng.normal(size=value.shape) for name, value in model.state().items()})
    return model


def opt(folder: Path, **changes: Any) -> Path:
    """The same model as OPT stores it."""
    state = gpt().state()
    arrays = {theirs: state[ours] for theirs, ours in NAMES.items()}
    arrays["model.decoder.embed_positions.weight"] = np.pad(state["wpe.weight"], [(2, 0), (0, 0)])
    for last in ("weight", "bias"):
        for name, part in zip("qkv", np.split(state[f"h.0.attn.c_attn.{last}"], 3), strict=True):
            arrays[f"{LAYER}self_attn.{name}_proj.{last}"] = part
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG | changes.pop("config", {})))
    kept = {name: array for name, array in (arrays | changes).items() if array is not None}
    (folder / "model.safetensors").write_bytes(safetensors.encode(kept))
    return folder


def test_it_is_that_gpt_and_is_written_as_gpt2(tmp_path: Path) -> None:
    model, _ = load_pretrained(opt(tmp_path / "x"))
    assert model.config == gpt().config
    assert all((value == gpt().state()[name]).all() for name, value in model.state().items())
    save_pretrained(model, None, tmp_path / "y")
    said = json.loads((tmp_path / "y" / "config.json").read_text())
    assert (said["model_type"], said["activation_function"]) == ("gpt2", "relu")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"config": {"do_layer_norm_before": False}}, "do_layer_norm_before is False"),
        ({"config": {"word_embed_proj_dim": 4}}, "word_embed_proj_dim is 4"),
        ({"config": {"enable_bias": False}}, "enable_bias is False"),
        ({"config": {"activation_function": "silu"}}, "activation_function is 'silu'"),
        ({f"{LAYER}self_attn.k_proj.weight": None, "x": np.ones((C, C))}, r"k_proj\.weight is missing"),
        ({f"{LAYER}self_attn.k_proj.weight": np.ones((C, C + 1), np.float32)}, "must be of one width"),
        ({"model.decoder.embed_positions.weight": np.array(1.0), "x": np.ones((T, C))}, "must have more than 2 rows"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=rule) as error:
        load_pretrained(opt(tmp_path / "x", **change))
    assert "\n" not in str(error.value)
