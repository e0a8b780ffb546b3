"""Objectives and architectures that do not fit are refused before anything is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, ops
from chainrule.data import Masked, Pair, Segmented
from chainrule.errors import ConfigError, ShapeError
from chainrule.models import family, make
from chainrule.models.registry import KNOWN
from chainrule.tasks.objectives import OBJECTIVES, check_causality, check_objective
from chainrule.train import TrainConfig, Trainer
from chainrule.train.log import Logger

IDS = np.random.default_rng(0).integers(9, size=(2, 5))
MASK = np.ones((2, 5), bool)
SIZES = {
    "n_layer": 1,
    "n_head": 2,
    "n_embd": 8,
    "n_hidden": 8,
    "block_size": 8,
    "vocab_size": 9,
    "n_kv_head": 2,
}
BATCHES: dict[str, tuple[Any, np.ndarray]] = {
    "the next token": (IDS, IDS),
    "masked words": (Masked(IDS, MASK, 0 * IDS, np.array([0, 1])), IDS),
    "labels": (Segmented(IDS, MASK, 0 * IDS), np.array([0, 1])),
    "translations": (Pair(IDS, MASK, IDS), IDS),
}
LEARNS = {
    "gpt": "the next token",
    "llama": "the next token",
    "rnn": "the next token",
    "bert": "masked words",
    "bert-classifier": "labels",
    "seq2seq": "translations",
    "t5": "translations",
}


def small(name: str) -> Any:
    cr.seed(0)
    fields = family(name).config.__dataclass_fields__
    return make(name, **{size: n for size, n in SIZES.items() if size in fields})


class Source:
    tokens = 10

    def __init__(self, batch: tuple[Any, np.ndarray]) -> None:
        self.batch = lambda step: batch


@pytest.mark.requirement("R-373")
@pytest.mark.parametrize("name", LEARNS)
def test_each_architecture_learns_its_own_objective_alone(name: str) -> None:
    for objective, batch in BATCHES.items():
        model = small(name)
        trainer = Trainer(model, Source(batch), [], TrainConfig(max_steps=1, warmup=0))
        if objective == LEARNS[name]:
            loss, _ = trainer.update(1e-3)
            assert np.isfinite(loss)
        else:
            before = model.state()
            with pytest.raises(ConfigError, match=f"learns {LEARNS[name]} .*the batches are for {objective}"):
                trainer.update(1e-3)
            assert all((value == before[key]).all() for key, value in model.state().items())


@pytest.mark.requirement("R-373")
def test_masks_belong_to_the_architecture() -> None:
    """An encoder takes no causal mask, a decoder no other: there is nothing to get wrong."""
    with pytest.raises(ShapeError, match=r"mask \(5, 5\)"):
        small("bert").bert(IDS, mask=np.tri(5, dtype=bool))
    with pytest.raises(ConfigError, match="unknown argument 'mask'"):
        small("gpt")(IDS, mask=MASK)
    sees = {o.learns: o.sees for o in OBJECTIVES}
    assert sees["the next token"] == "what came before" and sees["masked words"] == "both sides"


class Nothing(Logger):
    """A log that keeps nothing."""


@pytest.mark.requirement("R-373")
@pytest.mark.parametrize("name", ["gpt", "llama", "bert", "bert-classifier"])
def test_a_model_with_the_mask_of_the_other_objective_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Causal LM with a bidirectional mask, masked words with a causal one: before the first step."""
    model, batch, encoder = small(name), BATCHES[LEARNS[name]], name.startswith("bert")
    if name == "gpt":
        model.h = [nn.TransformerBlock(8, 2, causal=False)]
    else:
        attend = ops.attention
        monkeypatch.setattr(ops, "attention", lambda *args, **o: attend(*args, **o | {"causal": encoder}))
    before = model.state()
    trainer = Trainer(model, Source(batch), [batch], TrainConfig(max_steps=1, warmup=0))
    wrong = (
        "learns from both sides and sees only what came before"
        if encoder
        else "learns the next token and sees it"
    )
    with pytest.raises(ConfigError, match=wrong):
        trainer.run(Nothing())
    assert all((value == before[key]).all() for key, value in model.state().items())
    monkeypatch.undo()
    if name == "gpt":
        model.h = [nn.TransformerBlock(8, 2, causal=True)]
    trainer = Trainer(model, Source(batch), [batch], TrainConfig(max_steps=1, warmup=0))
    assert trainer.run(Nothing()).steps == 1


@pytest.mark.parametrize("name", KNOWN)
def test_no_family_is_refused_for_its_mask(name: str) -> None:
    model = small(name)
    before = model.state()
    check_causality(model)
    assert model.training and all((value == before[key]).all() for key, value in model.state().items())


def test_models_of_your_own_may_read_what_they_like() -> None:
    check_objective(cr.models.Model(None), IDS)
    check_objective(small("gpt"), (IDS, IDS))
