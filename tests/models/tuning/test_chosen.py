"""Methods that add nothing: what of the model itself learns."""

from __future__ import annotations

import pytest

from chainrule.models.tuning import BitFit, Full, Head
from tests.models.tuning.families import inputs, made


def learning(model: object) -> set[str]:
    return {name for name, param in model.named_parameters() if param.requires_grad}  # type: ignore[attr-defined]


@pytest.mark.requirement("R-388")
def test_all_weights_learn_or_all_from_some_block_on() -> None:
    model = Full().apply(made("gpt"))
    assert learning(model) == set(model.state())
    model.parameters().zero_grad()
    model.loss(*inputs("gpt")).backward()
    assert all(param.grad is not None and param.grad.any() for _, param in model.named_parameters())
    upper = learning(Full(freeze_layers=1).apply(made("gpt")))
    assert upper == {name for name in model.state() if name.startswith(("h.1.", "ln_f."))}
    both = learning(Full(freeze_layers=1).apply(made("seq2seq")))
    assert {name.split(".")[1] for name in both if ".layers." in name} == {"encoder", "decoder"}
    assert not any(".layers.0." in name or "shared" in name for name in both)


def test_biases_learn_alone() -> None:
    assert learning(BitFit().apply(made("gpt"))) == {n for n in made("gpt").state() if n.endswith("bias")}


def test_the_head_learns_alone() -> None:
    assert learning(Head().apply(made("neox"))) == {"lm_head.weight"}
    of_labels = learning(Head().apply(made("bert-classifier")))
    assert {name.rpartition(".")[0] for name in of_labels} == {"bert.pooler.dense", "classifier"}
