"""Interventions: values changed by name while a model runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, GraphError, ShapeError

IDS = np.array([[1, 5, 2, 7, 3]])


def gpt(**sizes: Any) -> Any:
    cr.seed(3)
    return cr.models.make(
        "gpt", **{"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 8, "vocab_size": 11, **sizes}
    ).eval()


def llama() -> Any:
    cr.seed(3)
    return cr.models.make(
        "llama", n_layer=2, n_head=4, n_kv_head=2, n_embd=16, n_hidden=24, block_size=8, vocab_size=11
    ).eval()


def logits(model: Any, edits: dict[str, Any] | None = None) -> np.ndarray:
    with cr.no_grad():
        if edits is None:
            return model(IDS).numpy()
        with cr.intervene(edits):
            return model(IDS).numpy()


def test_a_function_that_returns_nothing_looks_and_changes_no_bit() -> None:
    model, seen = gpt(), []
    assert (logits(model, {"h.1.mlp.gelu": lambda y: seen.append(y.shape)}) == logits(model)).all()
    assert seen == [(1, 5, 64)]


@pytest.mark.parametrize(
    ("make", "call"), [(gpt, "h.1.attn.packed_attention"), (llama, "layers.1.self_attn.attention")]
)
def test_the_weights_inside_a_fused_op_are_those_of_the_kernel(make: Any, call: str) -> None:
    model, seen = make(), {}
    found = logits(model, {f"{call}.softmax": lambda A: seen.update(A=A.numpy())})
    assert np.abs(found - logits(model)).max() < 1e-6
    assert np.abs(seen["A"] - cr.inspect.maps(model, IDS)[call]).max() < 1e-6


def test_a_pattern_of_names_and_a_new_value() -> None:
    model = gpt()
    none = logits(
        model, {"h.*.attn.c_proj.linear": lambda y: y * 0, "h.*.mlp.c_proj.linear": lambda y: y * 0}
    )
    assert (
        none == logits(model, {"h.1.add#2": logits_of(model, "add")})
    ).all()  # the stream is the embedding
    assert (none != logits(model)).any()


def logits_of(model: Any, name: str) -> np.ndarray:
    with cr.no_grad(), cr.capture() as seen:
        model(IDS)
    return seen[name].value


def test_the_second_call_of_a_name_has_a_number_and_each_pass_counts_anew() -> None:
    model = gpt()
    one = logits(model, {"h.0.add#2": lambda y: y * 2})
    assert (one != logits(model, {"h.0.add": lambda y: y * 2})).any()
    with cr.no_grad(), cr.intervene({"h.0.add#2": lambda y: y * 2}):
        assert (model(IDS).numpy() == one).all()
        assert (model(IDS).numpy() == one).all()


def test_captures_see_the_changed_value() -> None:
    with cr.no_grad(), cr.capture("*.add") as seen, cr.intervene({"h.0.add": lambda y: y * 0}):
        gpt()(IDS)
    assert not seen["h.0.add"].value.any()
    assert set(seen) == {"h.0.add", "h.0.add#2", "h.1.add", "h.1.add#2"}  # none of those of the functions


def test_gradients_flow_through_what_a_function_computes_and_end_at_a_new_value() -> None:
    model = gpt()
    for change, through in ((lambda y: y * 2, True), (lambda y: y.numpy() * 2, False)):
        model.parameters().zero_grad()
        with cr.intervene({"h.0.add#2": change}):
            model(IDS).sum().backward()
        assert bool(model.h[0].mlp.c_fc.weight.grad.any()) is through
        assert model.h[1].mlp.c_fc.weight.grad.any()


def test_recomputation_gives_the_same_gradients() -> None:
    found = []
    for recompute in (False, True):
        model = gpt()
        model.recompute = recompute
        with cr.intervene({"h.0.add#2": lambda y: y * 2, "h.1.mlp.gelu": lambda y: y * 0.5}):
            model.loss(IDS[:, :-1], IDS[:, 1:]).backward()
        found.append(model.parameters().grad.copy())
    assert (found[0] == found[1]).all()


def test_a_step_of_a_recurrent_layer_and_its_gates() -> None:
    cr.seed(1)
    model = cr.models.make("lstm", n_layer=1, n_embd=6, n_hidden=8, block_size=8, vocab_size=11).eval()
    cell = "cells.layers.0.lstm_sequence.lstm_cell"
    assert np.abs(logits(model, {f"{cell}#3": lambda state: None}) - logits(model)).max() < 1e-6
    forgotten = logits(model, {f"{cell}#3": lambda state: tuple(part * 0 for part in state)})
    with cr.no_grad():
        assert (
            np.abs(forgotten[:, 3:] - model(IDS[:, 3:]).numpy()).max() < 1e-6
        )  # the text begins after step 3


def test_generation_is_changed_too() -> None:
    model = gpt()
    push = 3 * np.random.default_rng(0).normal(size=16).astype(np.float32)
    plain = cr.generate.generate(model, IDS[0], 3, temperature=0.0).tolist()
    wanted = IDS[0].tolist()
    with cr.no_grad(), cr.intervene({"h.1.add#2": lambda y: y + push}):
        for _ in range(3):
            wanted.append(int(model(np.array([wanted])).numpy()[0, -1].argmax()))
        found = cr.generate.generate(model, IDS[0], 3, temperature=0.0).tolist()
    assert found == wanted[5:] != plain


def test_names_that_nothing_has_are_refused_with_the_nearest() -> None:
    with pytest.raises(
        GraphError, match=r"nothing named 'h.1.atn.c_proj' was called; did you mean h.1.attn.c_proj"
    ):
        logits(gpt(), {"h.1.atn.c_proj": lambda y: y})
    with pytest.raises(GraphError, match=r"did you mean h.0.attn.packed_attention.softmax"):
        logits(gpt(), {"h.0.attn.packed_attention.softmx": lambda y: y})


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"h.0.add got a value of shape \(1, 5, 8\) for \(1, 5, 16\)"):
        logits(gpt(), {"h.0.add": lambda y: y[..., :8]})
    with pytest.raises(ConfigError, match=r"'h.0.add' is given a int"):
        logits(gpt(), {"h.0.add": 3})
    with pytest.raises(ShapeError, match="got 1 values for 3"):
        cr.seed(1)
        model = cr.models.make("lstm", n_layer=1, n_embd=6, n_hidden=8, block_size=8, vocab_size=11)
        logits(model, {"cells.layers.0.lstm_sequence": lambda y: [y[0]]})


def test_an_error_inside_is_not_hidden_by_unused_names() -> None:
    with pytest.raises(ZeroDivisionError), cr.intervene({"nothing": lambda y: y}):
        raise ZeroDivisionError
