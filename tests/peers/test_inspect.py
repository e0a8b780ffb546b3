"""What is seen inside imported models is what `transformers` shows of them: maps, streams, gradients of the input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.inspect import ZeroHeads, input_gradient, view
from chainrule.io import load_pretrained
from tests.battery.checks import distance

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.peers.random_models import DECODERS, V, decoder, encoder, pair  # noqa: E402

TOLERANCE = 1e-5
IDS = np.random.default_rng(0).integers(V, size=11)
KINDS = ["gpt2", "llama", "qwen3", "phi3", "gemma", "smollm3", "pythia", "neox, serial", "opt"]


def twins(name: str, path: Path) -> tuple[Any, Any]:
    kind, more = DECODERS[name]
    theirs = decoder(kind, **more)
    theirs.save_pretrained(path / "model")
    theirs.set_attn_implementation("eager")  # the others give no maps
    return load_pretrained(path / "model")[0], theirs


@pytest.mark.parametrize("name", KINDS)
def test_maps_and_streams(name: str, tmp_path: Path) -> None:
    ours, theirs = twins(name, tmp_path)
    with torch.no_grad():
        found = theirs(torch.tensor(IDS[None]), output_attentions=True, output_hidden_states=True)
    seen = view(ours, IDS)
    assert len(seen.blocks) == len(found.attentions)
    for block, A in zip(seen.blocks, found.attentions, strict=True):
        assert distance(seen.attention(block), A[0].numpy()) <= TOLERANCE
    streams = list(seen.sites.streams)[: len(seen.blocks)]  # the last of theirs is normalized
    for stream, hidden in zip(streams, found.hidden_states[:-1], strict=True):
        assert distance(seen.stream(stream), hidden[0].numpy()) <= TOLERANCE
    assert distance(seen.logits, found.logits[0].numpy()) <= TOLERANCE


@pytest.mark.parametrize("name", KINDS)
def test_gradients_of_the_input(name: str, tmp_path: Path) -> None:
    ours, theirs = twins(name, tmp_path)
    embedded = theirs.get_input_embeddings()(torch.tensor(IDS[None])).detach().requires_grad_()
    logits = theirs(inputs_embeds=embedded).logits[0]
    (logits[6, 4] - logits[6, 9]).backward()
    found = input_gradient(ours, IDS, 4, minus=9, position=6)
    scale = theirs.config.hidden_size**0.5 if name == "gemma" else 1  # which is a part of their embedding
    assert distance(found.gradient / scale, embedded.grad[0].numpy()) <= 10 * TOLERANCE


@pytest.mark.parametrize("name", ["gpt2", "llama", "pythia"])
def test_a_head_that_is_taken_away(name: str, tmp_path: Path) -> None:
    """Theirs by a hook on the output projection, which reads the heads one after another."""
    ours, theirs = twins(name, tmp_path)
    ends = {"gpt2": "transformer.h.1.attn.c_proj", "llama": "model.layers.1.self_attn.o_proj"}
    projection = theirs.get_submodule(ends.get(name, "gpt_neox.layers.1.attention.dense"))

    def without_head_two(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        size = inputs[0].shape[-1] // theirs.config.num_attention_heads
        kept = inputs[0].clone()
        kept[..., 2 * size : 3 * size] = 0
        return (kept,)

    projection.register_forward_pre_hook(without_head_two)
    with torch.no_grad():
        logits = theirs(torch.tensor(IDS[None])).logits[0].numpy()
    assert distance(view(ours, IDS, ZeroHeads(1, 2)).logits, logits) <= TOLERANCE
    assert distance(view(ours, IDS).logits, logits) > 100 * TOLERANCE


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "electra", "mpnet"])
def test_encoders(name: str, tmp_path: Path) -> None:
    theirs = encoder(name, "ForMaskedLM")
    theirs.save_pretrained(tmp_path / "model")
    theirs.set_attn_implementation("eager")
    ids = np.where(IDS == 1, 2, IDS)  # 1 is padding
    with torch.no_grad():
        found = theirs(torch.tensor(ids[None]), output_attentions=True, output_hidden_states=True)
    seen = view(load_pretrained(tmp_path / "model")[0], ids)
    for block, A in zip(seen.blocks, found.attentions, strict=True):
        assert distance(seen.attention(block), A[0].numpy()) <= TOLERANCE
    for block, hidden in zip(seen.blocks, found.hidden_states[1:], strict=True):
        assert distance(seen.stream(block), hidden[0].numpy()) <= TOLERANCE


@pytest.mark.parametrize("name", ["bart", "t5", "t5, gated"])
def test_encoder_decoders(name: str, tmp_path: Path) -> None:
    theirs = pair(name)
    theirs.save_pretrained(tmp_path / "model")
    theirs.set_attn_implementation("eager")
    source, target = (np.where(IDS < 3, 3, IDS)[cut] for cut in (slice(None), slice(5)))
    with torch.no_grad():
        found = theirs(
            torch.tensor(source[None]), decoder_input_ids=torch.tensor(target[None]), output_attentions=True
        )
    seen = view(load_pretrained(tmp_path / "model")[0], (source, target))
    half = len(seen.blocks) // 2
    for block, A in zip(seen.blocks, (*found.encoder_attentions, *found.decoder_attentions), strict=True):
        assert distance(seen.attention(block), A[0].numpy()) <= TOLERANCE
    for block, A in zip(seen.blocks[half:], found.cross_attentions, strict=True):
        assert distance(seen.attention(block, cross=True), A[0].numpy()) <= TOLERANCE
    assert distance(seen.logits, found.logits[0].numpy()) <= TOLERANCE
