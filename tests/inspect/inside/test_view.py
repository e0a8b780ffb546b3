"""Views: a forward pass over one text, read part by part."""

from __future__ import annotations

import json

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, DataError, GraphError
from chainrule.inspect import ZeroHeads, view
from chainrule.inspect.inside.sites import arguments
from chainrule.types import IGNORE
from tests.inspect.inside.small import CHANGED, FAMILIES, IDS, small


@pytest.mark.parametrize("name", [*FAMILIES, *CHANGED])
def test_predictions_are_those_of_the_model(name: str) -> None:
    model, ids = small(name)
    seen = view(model, ids)
    with cr.no_grad():
        logits = model.eval()(*arguments(model, ids)).numpy()[0]
    assert (seen.logits == logits).all()
    assert np.allclose(seen.probabilities.sum(-1), 1, atol=1e-5)
    targets = seen.targets
    for t, target in enumerate(targets):
        if target == IGNORE:
            assert np.isnan(seen.loss[t]) and seen.rank[t] == -1
        else:
            assert np.isclose(seen.loss[t], -np.log(seen.probabilities[t, target]), atol=1e-5)
            assert seen.rank[t] == sorted(-logits[t]).index(-logits[t, target])
        assert [token for token, _ in seen.top(3)[t]] == np.argsort(-logits[t])[:3].tolist()
    assert ((seen.entropy >= 0) & (seen.entropy <= np.log(11) + 1e-5)).all()
    json.dumps(seen.summary())


def test_the_mean_of_the_losses_is_the_loss_of_the_model() -> None:
    model, ids = small("gpt")
    row = np.array([ids])
    with cr.no_grad():
        loss = model.eval().loss(row[:, :-1], row[:, 1:]).item()
    assert np.nanmean(view(model, ids).loss) == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("name", ["gpt", "llama", "neox", "bert"])
def test_maps_are_those_of_all_layers(name: str) -> None:
    model, ids = small(name)
    seen = view(model, ids)
    for block, A in zip(seen.blocks, cr.inspect.maps(model, np.array([ids])).values(), strict=True):
        assert (seen.attention(block) == A[0]).all()


@pytest.mark.parametrize("name", ["seq2seq", "t5"])
def test_cross_attention_looks_at_the_source(name: str) -> None:
    seen = view(*small(name))
    last = seen.blocks[-1]
    assert seen.attention(last).shape == (2, 3, 3) and seen.attention(last, cross=True).shape == (2, 3, 5)
    assert np.allclose(seen.attention(last, cross=True).sum(-1), 1, atol=1e-5)
    assert not np.triu(seen.attention(last)[0], 1).any()
    assert seen.stream("source").shape == (5, 16) and seen.stream("embedding").shape == (3, 16)
    assert {len(norms) for norms in seen.stream_norms.values()} == {3, 5}


def test_streams_and_neurons() -> None:
    model, ids = small("llama")
    seen = view(model, ids)
    with cr.no_grad(), cr.capture() as found:
        model.eval()(np.array([ids]))
    assert (seen.stream("layers.1") == found["layers.1.add#2"].value[0]).all()
    assert (seen.neurons(1) == found["layers.1.mlp.swiglu"].value[0]).all()
    assert (seen.value("layers.0.self_attn.rotary#2") == found["layers.0.self_attn.rotary#2"].value).all()
    norms = np.linalg.norm(found["layers.0.add#2"].value[0], axis=-1)
    assert np.allclose(seen.stream_norms["layers.0"], norms)


def test_the_rows_of_a_soft_prompt_are_left_out() -> None:
    seen = view(*small("prompt"))
    assert seen.stream("h.0").shape == (5, 16)
    assert seen.attention("h.0").shape == (2, 8, 8)
    assert view(*small("prefix")).attention("h.0").shape == (2, 5, 8)


def test_gates_and_states_follow_the_equations() -> None:
    lstm = view(*small("lstm")).gates(0)
    before = np.vstack([np.zeros(8), lstm["c"][:-1]])
    assert np.allclose(lstm["c"], lstm["f"] * before + lstm["i"] * lstm["g"], atol=1e-6)
    assert np.allclose(lstm["h"], lstm["o"] * np.tanh(lstm["c"]), atol=1e-6)
    gru = view(*small("gru")).gates(1)
    before = np.vstack([np.zeros(8), gru["h"][:-1]])
    assert np.allclose(gru["h"], (1 - gru["z"]) * before + gru["z"] * gru["n"], atol=1e-6)
    assert set(view(*small("rnn")).gates(0)) == {"h"}


def test_the_model_is_left_as_it_was() -> None:
    model, ids = small("gpt")
    model.train()
    params = model.parameters()
    params.grad[...] = 1
    before = params.data.copy()
    view(model, ids, ZeroHeads(0, 0)).summary()
    assert model.h[0].training and (params.grad == 1).all() and (params.data == before).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "a text is encoded by its tokenizer"),
        ([[1, 2], [3]], "texts of several lengths"),
        ([], r"ids \(0,\)"),
        ([1, 99], "vocabulary size is 11"),
    ],
)
def test_ids_that_cannot_be_read_are_refused(given: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _ = view(small("gpt")[0], given).logits


def test_refusals() -> None:
    model, ids = small("gpt")
    with pytest.raises(ConfigError, match=r"got a NGram \(must be a network"):
        view(cr.models.NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4), ids)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="GPT: got 3 arrays"):
        view(model, (ids, ids, ids))
    with pytest.raises(ConfigError, match=r"block 0.5 \(must be whole numbers"):
        view(model, ids).attention(0.5)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"2 texts \(must be one"):
        _ = view(model, np.array([IDS, IDS])).logits
    with pytest.raises(
        GraphError, match=r"nothing named 'h.0.mlp.gel' was called; did you mean h.0.mlp.gelu"
    ):
        view(model, ids).value("h.0.mlp.gel")
    with pytest.raises(ConfigError, match=r"block h.0 is not recurrent"):
        view(model, ids).gates(0)
    with pytest.raises(ConfigError, match="has no MLP"):
        view(*small("rnn")).neurons(0)
    with pytest.raises(ConfigError, match=r"top 12 of 11 tokens"):
        view(model, ids).top(12)
    body = cr.models.make("bert-body", n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    with pytest.raises(ConfigError, match="must be logits of tokens to be predictions"):
        _ = view(body, IDS).logits
    assert view(body, IDS).attention(0).shape == (2, 5, 5)


@pytest.mark.parametrize("name", [*FAMILIES, *CHANGED])
def test_a_part_is_what_a_patch_takes(name: str) -> None:
    model, ids = small(name)
    seen = view(model, ids)
    block = seen.blocks[-1]
    assert np.array_equal(seen.part(block), seen.stream(block))
    same = cr.inspect.effect(model, ids, cr.inspect.Patch(block, seen.part(block)))
    assert np.allclose(same.kl, 0, atol=1e-6)


def test_what_the_parts_of_a_block_add() -> None:
    model, ids = small("gpt")
    seen = view(model, ids)
    added = seen.part("h.0", "attention") + seen.part("h.0", "mlp")
    assert np.allclose(seen.stream("embedding") + added, seen.stream("h.0"), atol=1e-5)
