"""Losses: the first one, curves, and what they say."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.data import load
from chainrule.doctor import Code, initial_loss
from chainrule.doctor.rules import of_curve
from chainrule.errors import ConfigError, DataError
from chainrule.foundations.information import entropy
from chainrule.inspect import curve, expected_loss, output_entropy
from chainrule.inspect import losses as losses_room
from chainrule.lessons.initialization import UNSCALED, LetterConfig, LetterModel, examples, train
from chainrule.models import make
from chainrule.train.log import read
from tests.vectors import vector


@pytest.mark.requirement("R-216")
def test_the_expected_first_loss_and_its_verdict() -> None:
    v = vector("002-initial-loss-27")
    v.check(expected_loss(**v.inputs))
    good, high, low = (initial_loss(loss, 27) for loss in (3.31, 25.7, 2.4))
    assert (good.level, high.level, low.level) == ("ok", "problem", "problem")
    codes = good.code, high.code, low.code
    assert codes == (Code.INITIAL_LOSS_OK, Code.INITIAL_LOSS_HIGH, Code.INITIAL_LOSS_LOW)
    assert good.advice == "" and "last layer" in high.advice and "shifted by one" in low.advice
    overflow = initial_loss(math.inf, 27)
    assert (overflow.level, overflow.code) == ("problem", Code.INITIAL_LOSS_NOT_FINITE)
    with pytest.raises(ConfigError, match="vocab_size is 0"):
        expected_loss(0)


@pytest.fixture(scope="module")
def curves() -> tuple[np.ndarray, np.ndarray, int]:
    words = sorted(set(re.findall(r"\b[a-z]{3,}\b", load("pydoc").text)))
    contexts, targets, V = examples(words[::4])
    found = []
    for options in (UNSCALED, {}):
        cr.seed(0)
        found.append(train(LetterModel(LetterConfig(V, **options)), contexts, targets, steps=1000))
    return found[0], found[1], V


@pytest.mark.requirement("R-217")
def test_bad_initialisation_is_a_hockey_stick_and_good_is_not(
    curves: tuple[np.ndarray, np.ndarray, int],
) -> None:
    bad, good, V = curves
    assert bad[0] - bad[-50:].mean() > 2
    assert abs(good[0] - math.log(V)) < 0.05 * math.log(V)
    stick, falling = curve(bad, V), curve(good, V)
    assert (of_curve(stick).code, of_curve(falling).code) == (Code.CURVE_HOCKEY_STICK, Code.CURVE_OK)
    assert stick.steps_to_uniform > 100 and falling.steps_to_uniform < 10
    assert good[-50:].mean() < bad[-50:].mean()


def test_steps_to_the_loss_of_a_uniform_guess() -> None:
    """Of 39 steps single ones are looked at."""
    losses = np.r_[6.0, 5.0, 4.0, math.log(27), np.full(35, 3.0)]
    assert curve(losses, 27).steps_to_uniform == 3
    assert curve(losses + 3, 27).steps_to_uniform == len(losses)


def test_a_curve_needs_steps() -> None:
    with pytest.raises(DataError, match="at least one step"):
        curve([], 27)


# -- entropy of the output ---------------------------------------------------------------------------------------

SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 8, "vocab_size": 11}


@pytest.mark.parametrize("family", ["gpt", "llama", "lstm", "mlp"])
def test_the_entropy_of_the_output_is_that_of_its_softmax(family: str) -> None:
    cr.seed(0)
    own = {"gpt": SIZES, "llama": SIZES, "lstm": {"n_layer": 1, "n_embd": 8, "n_hidden": 12, "block_size": 8}}
    model = make(
        family, **own.get(family, {"n_embd": 8, "n_hidden": 12, "block_size": 8}) | {"vocab_size": 11}
    )
    model.train()
    ids = np.random.default_rng(0).integers(11, size=(3, 9))
    inputs, targets = ids[:, :-1], np.where(np.arange(8) < 5, ids[:, 1:], -1)
    before = model.state(), model.parameters().grad.copy()
    found = output_entropy(model, (inputs, targets))
    assert model.training and (model.parameters().grad == before[1]).all()
    assert all((value == before[0][name]).all() for name, value in model.state().items())
    p = cr.ops.softmax(model.eval()(inputs).numpy().astype(np.float64)[:, :5])
    assert found == pytest.approx(float(entropy(p).mean()), rel=1e-5)


def test_the_entropy_of_many_logits_is_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cr.seed(0)
    model = make("gpt", **SIZES)
    batch = np.zeros((4, 8), int), np.ones((4, 8), int)
    whole = output_entropy(model, batch)
    monkeypatch.setattr(losses_room, "CHUNK", 40)
    assert output_entropy(model, batch) == pytest.approx(whole, rel=1e-6)
    assert output_entropy(model, (batch[0], np.full((4, 8), -1))) is None  # no target counts
    assert output_entropy(_Squares(), batch) is None


class _Squares(cr.nn.Linear):
    """A loss without a softmax."""

    def __init__(self) -> None:
        super().__init__(8, 2)

    def loss(self, x: np.ndarray, targets: np.ndarray) -> cr.Tensor:
        return (self(x.astype(np.float32)) ** 2).mean()


@pytest.mark.requirement("R-076")
@pytest.mark.parametrize("recorded", ["watch", "evaluation"])
def test_a_run_logs_how_the_entropy_of_its_output_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: str
) -> None:
    """A text of five letters in turn: at first every letter seems as likely, in the end only the right one."""
    monkeypatch.chdir(tmp_path)
    Path("turn.txt").write_text("dbeac" * 400, encoding="utf-8")
    small = ["--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=8", "--batch-size=8"]
    looks = ["--watch-every=20"] if recorded == "watch" else ["--eval-every=1", "--eval-windows=8"]
    main(["train", "gpt", "turn.txt", *small, "--max-steps=100", "--lr=0.02", *looks, "--out=run"])
    log = read(Path("run/log.jsonl"))
    if recorded == "watch":
        found = [record["watch"]["entropy"] for record in log if "watch" in record]
    else:
        found = [record["entropy"] for record in log if "validation" in record]
    assert found[0] == pytest.approx(math.log(5), rel=0.02)
    assert found[-1] < 0.1 * math.log(5)
    assert len(found) == (6 if recorded == "watch" else 100)
