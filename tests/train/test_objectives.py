"""Objectives and architectures that do not fit are refused before anything is learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import Masked, Pair, Segmented
from chainrule.errors import ConfigError, ShapeError
from chainrule.models import family, make
from chainrule.tasks.objectives import OBJECTIVES, check_objective
from chainrule.train import TrainConfig, Trainer

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
    with pytest.raises(TypeError, match="mask"):
        small("gpt")(IDS, mask=MASK)
    sees = {o.learns: o.sees for o in OBJECTIVES}
    assert sees["the next token"] == "what came before" and sees["masked words"] == "both sides"


def test_models_of_your_own_may_read_what_they_like() -> None:
    check_objective(cr.models.Model(None), IDS)
    check_objective(small("gpt"), (IDS, IDS))
