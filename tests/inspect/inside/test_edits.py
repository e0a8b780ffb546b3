"""Edits in the words of the field: what they change is known in a model whose circuit was written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError, GraphError, ShapeError
from chainrule.inspect import MeanHeads, Patch, SetPattern, Steer, ZeroHeads, view
from tests.inspect.inside.planted import IDS, INDUCTION, PREVIOUS, SECOND, planted
from tests.inspect.inside.small import CHANGED, TRANSFORMERS, small

T = len(IDS)


def right(edits: Any = None) -> np.ndarray:
    """The probability of the right token where it can be copied."""
    return np.exp(-view(planted(), IDS, edits).loss[list(SECOND)])


def test_without_the_induction_head_nothing_is_copied() -> None:
    assert right().min() > 0.999
    assert np.allclose(right(ZeroHeads(*INDUCTION)), 1 / 10)  # all logits are 0
    assert right(MeanHeads(*INDUCTION)).max() < 0.2
    assert right(ZeroHeads(*PREVIOUS)).max() < 0.3  # the induction head finds nothing: it averages
    other = [ZeroHeads("h.0", 1), ZeroHeads("h.1", 0)]
    assert (right(other) == right()).all()


def test_a_mean_of_other_texts_may_be_given() -> None:
    means = np.zeros((2, 27))
    assert np.allclose(right(MeanHeads(*INDUCTION, means=means)), 1 / 10)
    found = cr.inspect.head_means(planted(), [IDS, IDS[:4]], "h.1")
    assert found.shape == (2, 27) and np.allclose(found[1].sum(), 1)  # a mean of one-hot tokens


@pytest.mark.parametrize("name", ["gpt", "llama", "t5"])
def test_a_head_without_its_output_is_a_head_whose_columns_are_zero(name: str) -> None:
    model, ids = small(name)
    block = view(model, ids).blocks[-1]
    found = view(model, ids, ZeroHeads(block, 1)).logits
    paths = {"gpt": "h.1.attn.c_proj", "llama": "layers.1.self_attn.o_proj"}
    path = paths.get(name, "decoder_stack.block.1.layer.0.SelfAttention.o")
    dict(model.named_parameters())[f"{path}.weight"].data[:, 8:] = 0
    assert np.allclose(view(model, ids).logits, found, atol=1e-5)


def test_an_edited_pattern_is_what_the_head_looks_at() -> None:
    pattern = np.eye(T)  # each token looks at itself: so itself comes next
    seen = view(planted(), IDS, SetPattern(*INDUCTION, pattern))
    assert (seen.attention("h.1")[1] == pattern).all()
    assert [row[0][0] for row in seen.top(1)] == IDS.tolist()
    same = view(planted(), IDS, SetPattern(*INDUCTION, lambda A: A))
    assert np.abs(same.logits - view(planted(), IDS).logits).max() < 1e-5


@pytest.mark.parametrize("name", [*TRANSFORMERS, "bert", *CHANGED])
def test_a_pattern_that_stays_changes_nothing_but_rounding(name: str) -> None:
    model, ids = small(name)
    blocks = view(model, ids).sites.blocks.values()
    same = [SetPattern(b.name, 1, lambda A: A, a.cross) for b in blocks for a in b.attentions]
    before, after = view(model, ids), view(model, ids, same)
    first = before.blocks[0]
    assert np.abs(after.attention(first) - before.attention(first)).max() < 1e-6
    assert (
        np.abs(after.stream(first) - before.stream(first)).max() < 1e-6 * np.abs(before.stream(first)).max()
    )
    model.to(np.float64)
    before, after = view(model, ids), view(model, ids, same)
    assert np.abs(after.logits - before.logits).max() < 1e-12


def test_a_patch_of_all_positions_is_the_other_text() -> None:
    other = IDS.copy()
    other[3] = 8
    clean = view(planted(), IDS)
    patched = view(planted(), other, Patch("h.0", clean.stream("h.0")))
    assert np.allclose(patched.logits, clean.logits, atol=1e-5)
    some = view(planted(), other, Patch("h.0", clean.stream("h.0"), positions=[3, -1]))
    assert (some.stream("h.0")[[3, -1]] == clean.stream("h.0")[[3, -1]]).all()
    assert (some.stream("h.0")[4] == view(planted(), other).stream("h.0")[4]).all()


def test_a_patch_of_what_a_part_adds() -> None:
    model, ids = small("gpt")
    zero = np.zeros((5, 16))
    edits = [Patch(0, zero, part="attention"), Patch(0, zero, part="mlp")]
    seen = view(model, ids, edits)
    assert np.allclose(seen.stream("h.0"), seen.stream("embedding"))
    source = small("seq2seq")[0]
    with pytest.raises(ConfigError, match="adds no cross_attention"):
        view(source, ([1, 2], [3]), Patch(0, zero, part="cross_attention"))
    assert view(source, ([1, 2], [3]), Patch(0, np.zeros((2, 16)), part="mlp")).logits.shape == (1, 11)


def test_steering_adds_a_vector_at_the_positions() -> None:
    model, ids = small("llama")
    push = np.arange(16.0)
    before = view(model, ids).stream("layers.0")
    assert np.allclose(view(model, ids, Steer(0, push, scale=2)).stream(0) - before, 2 * push, atol=1e-5)
    moved = view(model, ids, Steer(0, push, positions=-1)).stream(0) - before
    assert np.allclose(moved[-1], push, atol=1e-5) and not moved[:-1].any()


def test_rows_of_a_soft_prompt_are_not_counted() -> None:
    model, ids = small("prompt")
    before = view(model, ids)
    after = view(model, ids, Steer("h.0", np.ones(16), positions=0))
    moved = after.value("h.0.add#2")[0] - before.value("h.0.add#2")[0]
    assert np.allclose(moved[3], 1, atol=1e-6) and not moved[[0, 1, 2, 4, 5, 6, 7]].any()
    patched = view(model, ids, Patch("h.0", before.stream("h.0") * 0)).value("h.0.add#2")[0]
    assert patched[:3].any() and not patched[3:].any()


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_of_a_recurrent_layer_the_layer_above_reads_what_is_changed(name: str) -> None:
    model, ids = small(name)
    before, after = view(model, ids), view(model, ids, Steer(0, np.ones(8), positions=2))
    assert np.allclose(after.stream(0) - before.stream(0), np.eye(5)[:, [2]] * np.ones(8), atol=1e-6)
    moved = np.abs(after.logits - before.logits).max(-1) > 1e-6
    assert moved.tolist() == [False, False, True, True, True]
    same = view(model, ids, Patch(0, before.stream(0)))
    assert np.allclose(same.logits, before.logits, atol=1e-6)


@pytest.mark.parametrize("name", ["gpt", "llama", "lstm"])
def test_edits_hold_while_a_model_generates(name: str) -> None:
    model, ids = small(name)
    push = -3 * np.random.default_rng(0).normal(size=view(model, ids).stream(-1).shape[-1])
    wanted, plain = list(ids), cr.generate.generate(model, ids, 3, temperature=0.0).tolist()
    for _ in range(3):
        wanted.append(int(view(model, wanted, Steer(-1, push)).logits[-1].argmax()))
    with cr.inspect.edited(model, Steer(-1, push)):
        found = cr.generate.generate(model, ids, 3, temperature=0.0).tolist()
    assert found == wanted[len(ids) :] != plain


def test_edits_of_one_call_follow_each_other() -> None:
    model, ids = small("gpt")
    both = view(model, ids, [ZeroHeads(0, 0), ZeroHeads(0, 1)])
    assert (both.logits == view(model, ids, ZeroHeads(0, [0, 1])).logits).all()
    looked: list[Any] = []
    twice = [
        {"h.0.add": lambda y: y * 2},
        {"h.0.add": lambda y: looked.append(y)},
        {"h.0.add": lambda y: y * 3},
    ]
    once = {"h.0.add": lambda y: y * 6}
    assert np.allclose(view(model, ids, twice).logits, view(model, ids, once).logits, atol=1e-5) and looked


def test_refusals() -> None:
    model, ids = small("gpt")
    refused = [
        (ConfigError, r"head 2 of h.0.attn.packed_attention \(there are 2", ZeroHeads(0, 2)),
        (ConfigError, r"head 5 of h.0.attn.packed_attention \(there are 2", SetPattern(0, 5, np.eye(5))),
        (ShapeError, r"a pattern \(2, 2\) for \(5, 5\)", SetPattern(0, 1, np.eye(2))),
        (ShapeError, r"a patch \(4, 16\) for \(1, 5, 16\)", Patch(0, np.zeros((4, 16)))),
        (ConfigError, r"part 'head' \(must be stream, attention", Patch(0, np.zeros((5, 16)), part="head")),
        (
            ShapeError,
            r"means \(2, 3\) of heads \(must be \(2, 8\)\)",
            MeanHeads(0, 1, means=np.zeros((2, 3))),
        ),
        (ShapeError, r"a vector \(3,\) for a stream", Steer(0, np.zeros(3))),
        (ConfigError, r"position 5 \(there are 5", Steer(0, np.zeros(16), positions=5)),
        (ShapeError, "for a stream", Steer(0, np.zeros((2, 16)))),
        (ConfigError, "a vector is a str", Steer(0, "north")),
        (ConfigError, r"position 0.5 \(must be whole numbers", Steer(0, np.zeros(16), positions=0.5)),
        (ConfigError, "got an int", [3]),
        (ConfigError, "got a type", ZeroHeads),
        (GraphError, "nothing named 'h.0.atn'", {"h.0.atn": lambda y: y}),
    ]
    for error, message, edits in refused:
        with pytest.raises(error, match=message):
            _ = view(model, ids, edits).logits
