"""Forgetting: measured in every tuning run, and what is done against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import load
from chainrule.errors import ConfigError, DataError
from chainrule.models.tuning import BottleneckAdapter, Full, LoRA, Method
from chainrule.runs import Run
from chainrule.train import TrainConfig
from chainrule.train.config import Keeping
from chainrule.train.log import read
from tests.runs.survivors import outcome
from tests.runs.tuned.test_adapter import _stop_after
from tests.tasks.preferences.helpers import preferences

SIZE: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 24, "block_size": 16}
LEARN: dict[str, Any] = {"batch_size": 8, "warmup": 2, "eval_windows": 16, "eval_every": 10, "save_every": 20}
IDS = np.arange(12)[None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base that knows prose in lower case, and a task that is prose in capitals, which it must learn anew."""
    made = tmp_path_factory.mktemp("keeping")
    text = load("pydoc").text[:24_000]
    (made / "old.txt").write_text(text.lower() + "ABCDEFGHIJKLMNOPQRSTUVWXYZ", encoding="utf-8")
    (made / "new.txt").write_text(text[:12_000].upper().encode("ascii", "ignore").decode(), encoding="utf-8")
    config = TrainConfig(**LEARN | {"max_steps": 150, "lr": 1e-2, "eval_every": 150})
    Run.new(made / "base", made / "old.txt", config, **SIZE).train()
    return made


def tune(
    folder: Path, name: str, keeping: Keeping | None = None, method: Method | None = None, **settings: Any
) -> Run:
    config = TrainConfig(**LEARN | {"max_steps": 40, "lr": 5e-3} | settings)
    method = method or Full()
    return Run.new(
        folder / name, folder / "new.txt", config, start=folder / "base", method=method, keeping=keeping
    )


def general(run: Run) -> list[tuple[int, float]]:
    return [(r["step"], r["general"]) for r in read(run.files.log) if "general" in r]


@pytest.fixture(scope="module")
def plain(folder: Path) -> Run:
    run = tune(folder, "plain")
    run.train()
    return run


def rise(run: Run) -> float:
    losses = [loss for _, loss in general(run)]
    return losses[-1] - losses[0]


@pytest.mark.requirement("R-391")
def test_the_loss_on_the_old_task_is_stored_before_and_after(folder: Path, plain: Run) -> None:
    steps = [step for step, _ in general(plain)]
    assert steps == [0, 10, 20, 30, 40]
    assert rise(plain) > 0.1  # it forgets
    base, tokenizer = cr.load(folder / "base")
    task = cr.tasks.LanguageModelingTask.of(load(folder / "old.txt"), tokenizer)
    batches = task.eval_batches(base, batch_size=8, limit=16)
    assert general(plain)[0][1] == pytest.approx(base.mean_loss(batches), abs=1e-6)
    tuned, _ = cr.load(folder / "plain" / "checkpoints" / "step_000040")
    assert general(plain)[-1][1] == pytest.approx(tuned.mean_loss(batches), abs=1e-6)


@pytest.mark.requirement("R-391")
@pytest.mark.parametrize("method", [LoRA(rank=2), Full(freeze_layers=1)])
def test_every_method_stores_it(folder: Path, method: Method) -> None:
    run = tune(folder, f"stored-{method.name}", method=method, max_steps=2)
    run.train()
    assert [step for step, _ in general(run)] == [0, 2]


@pytest.mark.requirement("R-392")
def test_a_lower_rate_forgets_less(folder: Path, plain: Run) -> None:
    slow = tune(folder, "slow", lr=5e-4)
    slow.train()
    assert rise(slow) < rise(plain)


@pytest.mark.requirement("R-393")
def test_training_stops_when_the_old_loss_has_risen_and_a_checkpoint_before_is_used(
    folder: Path, plain: Run
) -> None:
    limit = 0.5 * (general(plain)[1][1] + general(plain)[2][1]) - general(plain)[0][1]
    run = tune(folder, "stopped", Keeping(tolerance=limit))
    run.train()
    seen = general(run)
    before = seen[0][1]
    assert seen[-1][1] > before + limit and all(loss <= before + limit for _, loss in seen[:-1])
    assert run.trainer.steps < 40 and run.finished and run.trainer.best_so_far.step < run.trainer.steps
    used, _ = cr.load(folder / "stopped")
    kept, _ = cr.load(run.files.checkpoint(run.trainer.best_so_far.step))
    np.testing.assert_array_equal(used(IDS).numpy(), kept(IDS).numpy())
    again = Run.resume(folder / "stopped")
    assert again.finished and again.trainer.general is not None and again.trainer.general.forgot


def test_a_run_that_forgot_too_much_goes_on_if_it_is_asked_to(folder: Path) -> None:
    tune(folder, "on", Keeping(tolerance=0.0), eval_every=5, lr=2e-2).train()
    run = Run.resume(folder / "on")
    assert run.finished and run.trainer.steps == 5
    run.extend(50)
    assert not run.finished
    run.train()
    assert run.trainer.steps == 10  # it was measured again, and had still forgotten


def test_the_first_step_of_parts_that_start_at_0_is_no_problem(folder: Path) -> None:
    for method in (LoRA(rank=2), BottleneckAdapter(bottleneck=2)):
        run = tune(folder, f"first-{method.name}", method=method, eval_every=1, max_steps=2)
        run.train()
        said = [r["finding"] for r in read(run.files.log) if "finding" in r]
        assert not [f for f in said if "lora_" in f["measured"] or ".adapter." in f["measured"]]


def test_preferences_are_learned_by_a_method(tmp_path: Path) -> None:
    """What is trained is a learner around the model; the old task is that of the model itself."""
    text = "".join(f"say {i}: red green blue cat dog sun moon " for i in range(200))
    (tmp_path / "old.txt").write_text(text, encoding="utf-8")
    preferences(tmp_path)
    config = TrainConfig(**LEARN | {"max_steps": 4, "eval_every": 2})
    Run.new(tmp_path / "base", tmp_path / "old.txt", config, **SIZE | {"block_size": 48}).train()
    cases = {"lora": (LoRA(rank=2), Keeping()), "full": (Full(), Keeping(pull=0.1))}
    for name, (method, keeping) in cases.items():
        run = Run.new(
            tmp_path / name, tmp_path / "preferences.jsonl", config, start=tmp_path / "base", task="dpo",
            method=method, keeping=keeping,
        )  # fmt: skip
        run.train()
        assert [step for step, _ in general(run)] == [0, 2, 4]
        base, _ = cr.load(tmp_path / "base")
        assert run.trainer.general is not None
        for step, model in ((0, base), (-1, run.model.eval())):
            loss = model.mean_loss(run.trainer.general.batches)
            assert general(run)[step][1] == pytest.approx(loss, abs=1e-6)
        assert Run.resume(tmp_path / name).finished


def test_with_no_tolerance_at_all_the_base_is_kept(folder: Path) -> None:
    run = tune(folder, "nothing", Keeping(tolerance=0.0), eval_every=5, lr=2e-2)
    run.train()
    assert run.trainer.best_so_far.step == 0
    used, base = cr.load(folder / "nothing")[0], cr.load(folder / "base")[0]
    np.testing.assert_array_equal(used(IDS).numpy(), base(IDS).numpy())


@pytest.mark.requirement("R-394")
def test_a_pull_towards_the_pretrained_weights_keeps_them_near(folder: Path, plain: Run) -> None:
    pulled = tune(folder, "pulled", Keeping(pull=0.05))
    pulled.train()
    assert rise(pulled) < rise(plain)
    start = cr.load(folder / "base")[0].state()

    def far(run: Run) -> float:
        return sum(float(((a - start[n]) ** 2).sum()) for n, a in run.model.state().items())

    assert far(pulled) < 0.5 * far(plain)
    with pytest.raises(ConfigError, match=r"tune: pull is 1.0 \(must be 0 for lora: what it adds has no"):
        tune(folder, "none", Keeping(pull=1.0), LoRA(rank=2))


@pytest.mark.requirement("R-395")
def test_replay_mixes_the_old_text_in_and_forgets_less(folder: Path, plain: Run) -> None:
    run = tune(folder, "replayed", Keeping(replay_share=0.25))
    mixture: Any = run.trainer.batches
    drawn = [domain for step in range(125) for domain, _ in mixture.schedule(step)]
    assert len(drawn) == 1000 and drawn.count(1) == 250
    text = (folder / "old.txt").read_text(encoding="utf-8")
    for (domain, _), row in zip(mixture.schedule(0), mixture.batch(0)[0], strict=True):
        assert (run.tokenizer.decode(row) in text) == bool(domain)
    run.train()
    assert rise(run) < rise(plain)
    assert run.trainer.evaluate() < 0.5 * plain_start(folder)


def plain_start(folder: Path) -> float:
    """The loss of the base on the new task."""
    return tune(folder, "untouched", max_steps=1).trainer.evaluate()


@pytest.mark.parametrize(
    "keeping",
    [Keeping(pull=0.05), Keeping(replay_share=0.25), Keeping(tolerance=9.0)],
    ids=["pull", "replay", "stop"],
)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    folder: Path, keeping: Keeping, request: Any
) -> None:
    name = request.node.callspec.id
    settings: dict[str, Any] = {"max_steps": 6, "eval_every": 3, "save_every": 2}
    tune(folder, f"{name}-whole", keeping, **settings).train()
    _stop_after(tune(folder, f"{name}-part", keeping, **settings), 5)
    Run.resume(folder / f"{name}-part").train()
    assert outcome(folder / f"{name}-part") == outcome(folder / f"{name}-whole")


def test_a_text_of_ones_own(folder: Path, tmp_path: Path) -> None:
    run = tune(
        folder, "own", Keeping(general=str(folder / "old.txt"), replay=str(folder / "old.txt")), max_steps=2
    )
    run.train()
    assert len(general(run)) == 2 and run.tuning is not None and run.tuning.kept.settings.share == 0.1
    for keeping, error, message in (
        (Keeping(general="nowhere.txt"), DataError, "nowhere.txt: no such file"),
        (Keeping(replay="nowhere.txt"), DataError, "nowhere.txt: no such file"),
    ):
        with pytest.raises(error, match=message):
            tune(folder, "none", keeping)
    with pytest.raises(ConfigError, match=r"tune: keep is .last. \(must be best with a tolerance"):
        tune(folder, "none", Keeping(tolerance=0.1), keep="last")


def test_what_is_not_there_is_not_measured(folder: Path, tmp_path: Path) -> None:
    model, tokenizer = cr.load(folder / "base")
    cr.io.save_pretrained(model, tokenizer, tmp_path / "plain")
    config = TrainConfig(**LEARN | {"max_steps": 2})
    run = Run.new(tmp_path / "run", folder / "new.txt", config, start=tmp_path / "plain", method=LoRA(rank=2))
    assert run.trainer.general is None and run.tuning is not None and "not known" in run.tuning.kept.told
    with pytest.raises(ConfigError, match=r"tune: tolerance is 0.1 .needs an old task: give --general FILE"):
        Run.new(
            tmp_path / "other", folder / "new.txt", config, start=tmp_path / "plain", method=LoRA(rank=2),
            keeping=Keeping(tolerance=0.1),
        )  # fmt: skip


@pytest.mark.requirement("R-408")
def test_tuning_needs_far_less_data_than_training_anew(folder: Path) -> None:
    """A tenth of the old text: a tuned model beats a new one of the same size, with the same steps."""
    text = (folder / "old.txt").read_text(encoding="utf-8")
    (folder / "tenth.txt").write_text(text[: len(text) // 10], encoding="utf-8")
    config = TrainConfig(**LEARN | {"max_steps": 40, "lr": 5e-3})
    tuned = Run.new(folder / "tenth", folder / "tenth.txt", config, start=folder / "base", method=Full())
    fresh = Run.new(folder / "fresh", folder / "tenth.txt", config, "gpt", tuned.tokenizer, **SIZE)
    for run in (tuned, fresh):
        run.train()
    assert tuned.trainer.evaluate() < fresh.trainer.evaluate()
