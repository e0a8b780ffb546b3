"""Forgetting, remedy by remedy: one base is tuned in several ways, and what each gains is set against what it loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.errors import ConfigError
from chainrule.models.tuning import Full, LoRA, Method
from chainrule.runs import Run, RunFolder
from chainrule.runs.warm_start import Start
from chainrule.tasks.tuning import tuning_task
from chainrule.train.config import Keeping, TrainConfig
from chainrule.train.log import read

if TYPE_CHECKING:
    from rich.console import Console

SLOWER = 10  # times, of the remedy that is nothing but a lower rate
OFTENER = (
    5  # times early stopping looks at the old task, while its rate rises: else the first look comes too late
)


@dataclass(frozen=True)
class Outcome:
    """Losses of a way of tuning before and after, at the step whose checkpoint is used."""

    name: str
    step: int
    task_before: float
    task_after: float
    general_before: float
    general_after: float

    @property
    def gain(self) -> float:
        """How far the loss on the new task fell."""
        return self.task_before - self.task_after

    @property
    def rise(self) -> float:
        """How far the loss on the old task rose."""
        return self.general_after - self.general_before

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"gain": self.gain, "rise": self.rise}


def ways(config: TrainConfig, keeping: Keeping, rank: int) -> dict[str, tuple[Method, TrainConfig, Keeping]]:
    """All weights without a remedy, with each of those in `keeping`, and LoRA."""
    plain = Keeping(general=keeping.general)
    slow = replace(config, lr=config.lr / SLOWER)
    often = max(1, config.eval_every // OFTENER)
    careful = replace(config, eval_every=often, warmup=max(config.warmup, config.max_steps // 2))
    old = keeping.replay or keeping.general
    return {
        "full": (Full(), config, plain),
        "lower rate": (Full(), slow, plain),
        "early stopping": (Full(), careful, replace(plain, tolerance=keeping.tolerance)),
        "pull": (Full(), config, replace(plain, pull=keeping.pull)),
        "replay": (Full(), config, replace(plain, replay=old, replay_share=keeping.replay_share)),
        "lora": (LoRA(rank=rank), config, plain),
    }


def compare(
    base: str | Path,
    data: str,
    folder: Path,
    config: TrainConfig,
    keeping: Keeping,
    rank: int,
    tell: Callable[[str], None] = lambda said: None,
    console: Console | None = None,
) -> Iterator[Outcome]:
    """Tune the base in each way, each a run in `folder`; runs that are there are resumed, or read if they are done."""
    family, task = tuning_task(Start.open(base).model, data)
    for name, (method, settings, kept) in ways(config, keeping, rank).items():
        tell(name)
        place = folder / name.replace(" ", "-")
        run = (
            Run.resume(place)
            if RunFolder(place).saved()
            else Run.new(place, data, settings, family, None, base, task=task, method=method, keeping=kept)
        )
        if run.trainer.general is None:
            rule = "must have a run of its own with its data, or give --general FILE"
            raise ConfigError(f"forgetting: the old task of {base} is not known ({rule})")
        if run.trainer.steps == 0:
            (folder / f"{place.name}.before").write_text(repr(run.trainer.evaluate()))
        if not run.finished and run.train(console).interrupted:
            raise KeyboardInterrupt
        yield outcome(name, run, float((folder / f"{place.name}.before").read_text()))


def outcome(name: str, run: Run, before: float) -> Outcome:
    """What a run has reached at the step whose checkpoint is used."""
    general, step = run.trainer.general, run.trainer.best_so_far.step
    assert general is not None
    records = [record for record in read(run.files.log) if record["step"] == step]
    task = next((r["validation"] for r in records if "validation" in r), before)
    old = next((r["general"] for r in records if "general" in r), general.before)
    return Outcome(name, step, before, task, general.before, old)
