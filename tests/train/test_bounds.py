"""Trainings that diverge with finite numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.data import Labeled
from chainrule.models import make
from chainrule.runs import Run
from chainrule.tasks.labeled.bag_of_words import BagOfWordsTask
from chainrule.tasks.labeled.classification import LabelCorpus
from chainrule.train import bounds as bounds_module
from chainrule.train.bounds import Bounds
from chainrule.train.config import TrainConfig
from chainrule.train.log import Logger
from chainrule.train.skips import Diverged
from chainrule.train.trainer import Trainer
from tests.runs.helpers import losses, new_run
from tests.runs.survivors import FILES, write_data

SMALL = [
    "--max-steps",
    "30",
    "--batch-size",
    "2",
    "--warmup",
    "0",
    "--save-every",
    "5",
    "--weight-decay",
    "0",
]
TINY = {"gpt": ["--n-layer=1", "--n-head=2", "--n-embd=8", "--block-size=16"]}
FAMILIES = ("ngram", "mlp", "gru", "gpt", "llama", "seq2seq", "bert", "bert-classifier", "bow-classifier")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rate_of_a_million_fails_at_the_step_where_it_happens(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    words = ["train", family, FILES.get(family, "text.txt"), *SMALL, *TINY.get(family, []), "--lr", "1e6"]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--out", "run"])
    err = capsys.readouterr().err
    assert stop.value.code == 1 and err.startswith("error: train: ") and err.count("\n") == 1, err
    assert "try a smaller --lr than 1e+06" in err or "try: a smaller lr" in err, err


def test_a_loss_far_above_the_start_is_refused_at_once() -> None:
    bounds, config = Bounds(uniform=4.2), TrainConfig()
    bounds.begin(4.4)
    bounds.check(49.0, 1, config)
    bounds.check(float("nan"), 1, config)  # another's matter
    with pytest.raises(Diverged, match=r"validation loss 51 at step 7 \(diverged, it began near 4.4\)"):
        bounds.check(51.0, 7, config, "validation loss")
    bounds.begin(60.0)  # weights of another model, on a text that it does not know
    bounds.check(599.0, 8, config)


def test_gradients_of_nothing_are_refused_while_there_is_something_to_learn() -> None:
    bounds, config = Bounds(uniform=4.2), TrainConfig()
    bounds.check_gradient(1e-30, 4.2, 2, config)
    for step in range(3, 9):
        bounds.check_gradient(0.0, 0.0, step, config)  # all is learned
    for norm in (0.0, 0.0, 0.5, 0.0, 0.0):  # of a batch or two they may cancel out
        bounds.check_gradient(norm, 4.2, 9, config)
    with pytest.raises(Diverged, match=r"gradient 0 with loss 4.2 at step 14"):
        bounds.check_gradient(0.0, 4.2, 14, config)
    again = Bounds(uniform=4.2)
    again.recall([{"step": step, "loss": 4.2, "norm": 0.0} for step in (12, 13)])
    with pytest.raises(Diverged, match=r"gradient 0"):
        again.check_gradient(0.0, 4.2, 14, config)


def test_a_batch_whose_gradients_cancel_out_is_no_divergence() -> None:
    """Half of its texts have each label, and the bag of words knows none of their words."""
    rows = tuple(Labeled(f"word{i}", "ab"[i % 2]) for i in range(400))
    task = BagOfWordsTask.of(LabelCorpus("words", "file", rows))
    model = make("bow-classifier", **task.sizes())
    training, validation = task.training, task.validation
    balanced = [next(r for r in training if r.label == label) for label in "ab"]
    task = replace(task, training=balanced, validation=validation)
    batches = task.batches(model, batch_size=2)
    assert Trainer(model, batches, [], TrainConfig(max_steps=1, batch_size=2)).run(Logger()).steps == 1


def test_a_training_that_ends_worse_than_it_began_has_failed() -> None:
    config, healthy = TrainConfig(), [4.2 - i / 50 for i in range(100)]
    bounds = Bounds(uniform=4.2)
    bounds.check_end(healthy, config)
    bounds.check_end([*healthy, 20.0], config)  # one batch
    bounds.check_end([9.0] * 5, config)  # too few to tell
    Bounds(None).check_end([9.0] * 50, config)
    with pytest.raises(Diverged, match=r"loss 7 at the end, above 6.3 since step 101"):
        bounds.check_end(healthy + [7.0] * 40, config)


def test_a_resumed_training_has_the_bounds_of_an_unbroken_one(tmp_path: Path) -> None:
    """Weights from elsewhere may begin with a loss far above that of a guess."""
    run = new_run(tmp_path, max_steps=8, lr=1e-6)
    state = run.model.state()
    run.model.load(state | {"wte.weight": 3000 * state["wte.weight"]})
    run.train()
    first = losses(run)[0][1]
    assert first > 10 * math.log(run.model.config.vocab_size)
    resumed = Run.resume(run.folder)
    resumed.change(max_steps=12)
    assert resumed.train().steps == 12
    assert resumed.trainer.bounds.start == run.trainer.bounds.start == first


def test_a_training_that_has_failed_is_no_success_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path)
    monkeypatch.setattr(bounds_module, "WORSE", 0.1)  # any end is a bad one
    for _ in range(2):
        with pytest.raises(Diverged, match=r"at the end, above .* since step 1 "):
            run.train()
        run = Run.resume(run.folder)
