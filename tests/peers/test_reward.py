"""Reward models through Hugging Face's `...ForSequenceClassification` with one label, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import FormatError
from chainrule.io import load_pretrained, save_pretrained
from chainrule.models import Reward

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

V = 31
IDS = np.random.default_rng(0).integers(V, size=(2, 9))
SIZES: dict[str, dict[str, Any]] = {
    "gpt": {"n_head": 3, "n_embd": 24},
    "llama": {"n_head": 6, "n_kv_head": 3, "n_embd": 36, "n_hidden": 52, "tied": False},
    "neox": {"n_head": 3, "n_embd": 48},
}


@pytest.mark.requirement("R-412")
@pytest.mark.parametrize("family", SIZES)
def test_the_same_rewards_there_and_back(family: str, tmp_path: Path) -> None:
    with cr.random.seeded(3):
        body = cr.models.make(family, n_layer=2, block_size=16, vocab_size=V, **SIZES[family])
    for parameter in body.parameters():
        parameter.data *= 3
    model = Reward.on(body).eval()
    save_pretrained(model, None, tmp_path / "ours")
    there = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    assert type(there).__name__.endswith("ForSequenceClassification") and there.config.num_labels == 1
    there.config.pad_token_id = None
    with torch.no_grad():
        wanted = [there(torch.from_numpy(row[None])).logits.item() for row in IDS]
    np.testing.assert_allclose(model(IDS).numpy(), wanted, rtol=2e-5, atol=1e-6)
    there.save_pretrained(tmp_path / "theirs")
    back: Any = load_pretrained(tmp_path / "theirs")[0]
    assert type(back) is type(model)
    np.testing.assert_allclose(back(IDS).numpy(), model(IDS).numpy(), rtol=1e-6)


def test_several_labels_are_no_reward(tmp_path: Path) -> None:
    config = transformers.GPT2Config(
        n_layer=1, n_head=2, n_embd=16, n_positions=8, vocab_size=V, num_labels=3
    )
    transformers.GPT2ForSequenceClassification(config).save_pretrained(tmp_path / "three")
    with pytest.raises(FormatError, match="num_labels is 3"):
        load_pretrained(tmp_path / "three")
