"""What all methods promise: what learns, what stays, how many numbers, and where the model starts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.models import tuning
from chainrule.models.tuning import (
    METHODS,
    BitFit,
    BottleneckAdapter,
    Full,
    Head,
    LoRA,
    Method,
    Prefix,
    Prompt,
)
from chainrule.models.tuning.parts import base_name, parts
from chainrule.nn import TokenRows
from chainrule.trace.count import Batch, flops, step_graph, total, training_memory
from tests.models.tuning.families import LANGUAGE, SIZES, descend, inputs, made, outputs

KINDS: dict[str, list[Method]] = {
    family: [
        Full(),
        Full(freeze_layers=1),
        LoRA(rank=2),
        LoRA(rank=2, targets=("all",)),
        BottleneckAdapter(bottleneck=3),
    ]
    + ([] if family == "t5" else [Prefix(length=3)])
    + ([Prompt(length=3), Prompt(ids=(1, 2))] if family in LANGUAGE else [])
    + ([BitFit()] if family not in ("llama", "t5") else [])
    + ([Head()] if family in ("neox", "bert-classifier") else [])
    for family in SIZES
}
TOKENS = (10, 4)  # whose rows learn
for family in LANGUAGE:
    several: list[Method] = [
        LoRA(rank=2),
        BottleneckAdapter(bottleneck=3),
        Prefix(length=3),
        Prompt(length=3),
    ]
    KINDS[family] += [replace(method, tokens=TOKENS) for method in several]
KINDS["neox"] += [replace(Head(), tokens=TOKENS), replace(BitFit(), tokens=TOKENS)]
CASES = [(family, method) for family, methods in KINDS.items() for method in methods]
NAMED = [f"{family}-{method.name}-{i}" for i, (family, method) in enumerate(CASES)]


def test_every_method_is_among_them() -> None:
    assert {method.name for _, method in CASES} == set(METHODS)


@pytest.mark.requirement("R-388", "R-399", "R-404")
@pytest.mark.parametrize(("family", "method"), CASES, ids=NAMED)
def test_the_count_is_that_of_the_formula(family: str, method: Method) -> None:
    model = made(family)
    expected = method.n_params(model)
    assert method.apply(model).count(trainable=True) == expected > 0


@pytest.mark.requirement("R-388", "R-397", "R-402", "R-404")
@pytest.mark.parametrize(("family", "method"), CASES, ids=NAMED)
def test_it_starts_as_the_base_and_leaves_the_base_alone(family: str, method: Method) -> None:
    model = made(family)
    before, base = outputs(model, family), model.state()
    method.apply(model).eval()
    if method.exact:
        np.testing.assert_array_equal(outputs(model, family), before)
    else:
        assert (outputs(model, family) != before).any()
    learning = {name for name, param in model.named_parameters() if param.requires_grad}
    start = model.state()
    losses = descend(model, family)
    assert losses[-1] < losses[0]
    rows = [row for row in range(len(base[next(iter(base))])) if row not in method.tokens]
    tables = {f"{path}.base.weight" for path, layer in parts(model).items() if isinstance(layer, TokenRows)}
    assert bool(tables) == bool(method.tokens)
    for name, value in model.state().items():
        if name in learning:
            continue
        kept = rows if name in tables else ...
        np.testing.assert_array_equal(value[kept], base[base_name(name)][kept], err_msg=name)
    changed = {name for name, value in model.state().items() if (value != start[name]).any()} - tables
    assert changed <= learning and len(changed) > len(learning) / 2


@pytest.mark.parametrize(("family", "method"), CASES, ids=NAMED)
def test_stripped_it_is_the_base_again(family: str, method: Method) -> None:
    model = made(family)
    before, names = outputs(model, family), list(model.state())
    method.apply(model)
    if all(base_name(name) not in names for name in tuning.trained(model)):  # or weights of its own learn
        descend(model, family)
    tuning.strip(model)
    assert list(model.state()) == names
    np.testing.assert_array_equal(outputs(model.eval(), family), before)


@pytest.mark.parametrize(("family", "method"), CASES, ids=NAMED)
def test_what_is_frozen_has_no_gradient_and_no_moments(family: str, method: Method) -> None:
    model = method.apply(made(family))
    parameters = model.parameters()
    learning = model.count(trainable=True)
    tensors = sum(param.requires_grad for param in parameters.unique)
    assert learning <= parameters.grad.size < learning + 16 * (tensors + 1)
    assert all((param.grad is None) == (not param.requires_grad) for param in parameters.unique)
    optimizer = cr.optim.AdamW(parameters, 1e-3)
    assert all(slot.size == parameters.grad.size for slot in optimizer.arrays.values())


@pytest.mark.parametrize("family", LANGUAGE)
def test_a_frozen_matrix_takes_no_work_and_no_memory_in_backward(family: str) -> None:
    """dx alone: backward takes as many operations as forward, not twice as many."""

    def counted(method: Method) -> tuple[float, dict[str, int]]:
        with cr.nn.init.abstract_parameters():
            model = method.apply(type(made(family))(made(family, n_embd=64, n_head=2).config))
        work = total(flops(model, Batch(4, 8)))
        return work.backward / work.forward, training_memory(model, Batch(4, 8))

    (full, whole), (lora, part) = counted(Full()), counted(LoRA(rank=2))
    assert full == pytest.approx(2, abs=0.05) and lora < 1.15
    share = part["gradients"] / whole["gradients"]
    assert share == part["optimizer"] / whole["optimizer"] < 0.1


@pytest.mark.parametrize("family", LANGUAGE)
@pytest.mark.parametrize("tied", [True, False])
def test_rows_of_tokens_learn_as_they_do_with_all_weights(family: str, tied: bool) -> None:
    whole, part = made(family, tied=tied), LoRA(rank=2, tokens=TOKENS).apply(made(family, tied=tied))
    tables = {name: layer for name, layer in parts(part).items() if isinstance(layer, TokenRows)}
    assert len(tables) == 1 if tied else 2
    for model in (whole, part):
        model.to(np.float64).eval().loss(*inputs(family)).backward()
    of_whole = dict(whole.named_parameters())
    for path, layer in tables.items():
        expected = of_whole[f"{path}.weight"].grad[list(TOKENS)]
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(layer.token_rows.grad, expected, rtol=1e-9, atol=1e-12)
        assert layer.base.weight.grad is None


@pytest.mark.parametrize("family", LANGUAGE)
def test_rows_of_tokens_are_checked_against_finite_differences(family: str) -> None:
    model = LoRA(rank=2, tokens=TOKENS).apply(made(family, tied=False)).to(np.float64).eval()
    ids, targets = inputs(family)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(ids, targets)) <= 1e-6
    assert cr.gradcheck_model(model.parameters(), lambda: (model(ids) ** 2).mean()) <= 1e-6


@pytest.mark.parametrize("family", LANGUAGE)
def test_rows_of_tokens_make_no_gradient_of_the_table(family: str) -> None:
    model = LoRA(rank=2, tokens=TOKENS).apply(made(family))
    graph = step_graph(model, Batch(2, 6))
    (loss,) = (node for node in graph.nodes if node.op.name == "linear_cross_entropy")
    assert loss.needs == (True, False, True)


@pytest.mark.parametrize("method", [m() for m in METHODS.values()], ids=list(METHODS))
def test_a_description_gives_the_method_back(method: Method) -> None:
    assert tuning.method_of(method.to_dict()) == method
    described = replace(method, tokens=TOKENS).to_dict()
    assert tuning.method_of(json.loads(json.dumps(described))) == replace(method, tokens=TOKENS)


@pytest.mark.parametrize(
    ("family", "method", "message"),
    [
        ("gpt", Head(), r"head: the head of a tied model is its embedding \(must have a head of its own"),
        ("llama", BitFit(), r"bitfit: this Llama has no bias \(must be a model with biases"),
        ("t5", Prefix(), r"prefix: a T5 has no place for one \(must have self-attention that takes one"),
        ("seq2seq", Prompt(), r"prompt: a Seq2Seq has no place for one"),
        ("gpt", Prompt(length=12), r"prompt: length is 12, the context 12 \(must be less"),
        ("gpt", Prompt(ids=(99,)), r"prompt: ids has token 99, the model 11"),
        ("gpt", LoRA(tokens=(11,)), r"TokenRows: tokens 11 \(must be different rows, from 0 to 10\)"),
        ("seq2seq", LoRA(tokens=(1,)), r"lora: rows of tokens of a Seq2Seq \(must be a transformer that writes"),
        ("gpt", LoRA(rank=17), r"lora: rank is 17 \(must be at most 16, the smaller size of h.0.attn.c_attn.q\)"),
        ("gpt", LoRA(targets=("c_atn",)), r"lora: targets 'c_atn' names no layer of this GPT .*h\.\d\.attn\.c_attn"),
        ("gpt", Full(freeze_layers=3), r"full: freeze_layers is 3 \(must be at most 2, the blocks of this GPT\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(family: str, method: Method, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        method.apply(made(family))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LoRA(rank=0), "lora: rank is 0"),
        (lambda: LoRA(alpha=-1.0), "lora: alpha is -1.0"),
        (lambda: LoRA(targets=()), "lora: targets"),
        (lambda: BottleneckAdapter(bottleneck=0), "adapter: bottleneck is 0"),
        (lambda: BottleneckAdapter(after=("attn",)), "adapter: after is .*must be attention or mlp"),
        (lambda: tuning.method_of({"method": "lorra"}), "method 'lorra': no such method .*did you mean lora"),
    ],
)
def test_bad_settings_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_tuned_model_is_not_tuned_again() -> None:
    model = LoRA().apply(made("gpt"))
    with pytest.raises(
        ConfigError, match=r"lora: the model has h.0.attn.c_attn already \(must be a plain model"
    ):
        LoRA().apply(model)
