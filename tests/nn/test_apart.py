"""Texts in one row that do not see each other: each is read as if it stood alone, in every transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ShapeError
from chainrule.nn import KeyValuePrefix, SoftPrompt
from chainrule.nn.apart import apart
from chainrule.types import IGNORE
from tests.models.tiny import SIZES, float64

EMBEDDING = {"gpt": "wte", "llama": "embed_tokens", "neox": "embed_in"}
TEXTS = ([3, 1, 4, 1], [5, 9], [2, 6, 5])
SEGMENTS = np.array([[1] * 4 + [2] * 2 + [3] * 3 + [0] * 2])
IDS = np.array([[*(id for text in TEXTS for id in text), 0, 0]])


def model(family: str, part: str = "none") -> Any:
    cr.seed(1)
    made: Any = cr.models.make(family, **SIZES[family] | {"block_size": 16}, vocab_size=11)
    if part == "soft prompt":
        setattr(made, EMBEDDING[family], SoftPrompt(getattr(made, EMBEDDING[family]), 3))
    if part == "prefix":
        for block in made.h if family == "gpt" else made.layers:
            name = {"gpt": "attn", "llama": "self_attn", "neox": "attention"}[family]
            heads = getattr(made.config, "n_kv_head", made.config.n_head)
            getattr(block, name).prefix = KeyValuePrefix(2, heads, made.config.n_embd // made.config.n_head)
    return float64(made).eval()


@pytest.mark.parametrize("part", ["none", "prefix", "soft prompt"])
@pytest.mark.parametrize("family", ["gpt", "llama", "neox"])
def test_each_text_is_read_as_if_alone(family: str, part: str) -> None:
    net = model(family, part)
    with cr.autograd.no_grad():
        packed = net.hidden(IDS, SEGMENTS).numpy()[0]
        alone = [net.hidden(np.array([text])).numpy()[0] for text in TEXTS]
        crossed = net.hidden(IDS).numpy()[0]
    assert np.abs(packed[:9] - np.concatenate(alone)).max() < 1e-12
    assert (
        np.abs(crossed[4:9] - np.concatenate(alone[1:])).max() > 1e-3
    )  # without segments they see each other


@pytest.mark.parametrize("family", ["gpt", "llama", "neox"])
def test_gradients_of_the_loss(family: str) -> None:
    net = model(family)
    targets = np.full_like(IDS, IGNORE)
    targets[0, [1, 4, 7]] = [4, 9, 5]
    batch = (IDS, SEGMENTS)
    loss = net.loss(batch, targets)
    places = zip((0, 4, 6), TEXTS, strict=True)
    alone = [net.loss(np.array([text]), targets[:, place : place + len(text)]) for place, text in places]
    assert loss.item() == pytest.approx(sum(each.item() for each in alone) / 3, rel=1e-12)
    assert net.logprobs(batch, targets).numpy().sum() == pytest.approx(-3 * loss.item(), rel=1e-12)
    assert cr.gradcheck_model(net.parameters(), lambda: net.loss(batch, targets)) <= 1e-6


def test_positions_begin_again_after_the_rows_before() -> None:
    found = apart(np.array([[1, 1, 2, 2, 2]]), before=2)
    assert found.positions.tolist() == [[0, 1, 2, 3, 2, 3, 4]]
    assert found.mask.shape == (1, 1, 7, 7) and found.mask[0, 0, :, :2].all() and found.mask[0, 0, :2].all()
    assert not found.mask[0, 0, 4:, 2:4].any() and not found.mask[0, 0, 2:4, 4:].any()
    with pytest.raises(ShapeError, match=r"segments \(2,\)"):
        apart(np.array([1, 2]))
