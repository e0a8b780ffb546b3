"""A study: runs that are made once, the same by one process or two, and found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import Corpus
from chainrule.errors import ConfigError
from chainrule.runs import History
from chainrule.scaling.fits import Runs
from chainrule.scaling.plan import Plan, PlanConfig
from chainrule.scaling.study import TABLE, Measured, Study

CORPUS = Corpus("letters", "1", "the quick brown fox jumps over the lazy dog. " * 400)
PLAN = Plan.of(PlanConfig(budgets=(2e8, 6e8), factors=(0.5, 2.0), context=16, head=4, aspect=4, seeds=2))


def test_every_model_is_an_ordinary_run(tmp_path: Path) -> None:
    study = Study(tmp_path / "study", PLAN, CORPUS)
    assert study.plan.config.vocab_size == len(set(CORPUS.text))  # not that of the plan: the text decides
    told: list[Measured | str] = []
    found = study.run(workers=1, tell=told.append)
    assert len(found) == len(study.items()) == 2 * len(study.plan.models)
    assert told == found
    for row in found:
        history = History.of(tmp_path / "study" / row.name / f"seed-{row.seed}")
        assert history.state == "finished" and history.parameters == row.params
        assert row.standard_error > 0
    runs = Runs.read(tmp_path / "study" / TABLE, {"loss": "loss", "params": "params", "tokens": "tokens"})
    assert runs.loss.tolist() == [row.loss for row in found]

    again = Study(tmp_path / "study", PLAN, CORPUS).run(workers=1)  # nothing is trained again
    assert [row.loss for row in again] == [row.loss for row in found]
    assert [row.seconds for row in again] == [row.seconds for row in found]

    (tmp_path / "study" / "plan.json").write_text("{")
    with pytest.raises(ConfigError, match="another plan or text"):
        Study(tmp_path / "study", PLAN, CORPUS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "log.jsonl").touch()  # another's
    with pytest.raises(ConfigError, match="not empty"):
        Study(tmp_path / "full", PLAN, CORPUS)
    other = Corpus("letters", "1", CORPUS.text + "!")
    with pytest.raises(ConfigError, match="another plan or text"):
        Study(tmp_path / "study", PLAN, other)


def test_two_processes_reach_the_same(tmp_path: Path) -> None:
    plan = Plan.of(PlanConfig(budgets=(2e8,), factors=(0.5, 2.0), context=16, head=4, aspect=4))
    one, two = (Study(tmp_path / str(jobs), plan, CORPUS).run(jobs) for jobs in (1, 2))
    assert [(row.name, row.loss) for row in one] == [(row.name, row.loss) for row in two]


@pytest.mark.requirement("R-448", declared="docs/guide/scaling.md")
def test_methods_that_are_named_are_here_or_declared_out_of_scope() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "scaling.md").read_text(encoding="utf-8")
    rows = [line.lower() for line in page.splitlines() if line.startswith("|")]
    for name in (
        "mixture of experts", "8- and 4-bit quantization", "distillation", "sparse attention", "linear attention",
        "state-space models", "synthetic data", "model collapse",
    ):  # fmt: skip
        row = next(row for row in rows if name in row.split("|")[1])
        assert "out of scope" in row or "`" in row
