"""All stages in order, on data that are built in; killed at any moment they end as if they had not been."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.pipeline import QUICK, report, run_pipeline
from chainrule.pipeline.rule import score
from chainrule.runs import Run, checkpoint
from chainrule.text.chat.answers import AnswerCoder
from tests.runs.survivors import die_after

STAGES = ["1-pretrain", "2-continue", "3-instruct", "4-reward", "5-ppo", "6-dpo"]
KILLED = -9


def _child(folder: Path, moments: int | None) -> None:
    if moments is not None:
        die_after(moments)
    run_pipeline(folder, QUICK)


def in_a_process(folder: Path, moments: int | None) -> int | None:
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_child, args=(folder, moments))
    process.start()
    process.join(120)
    return process.exitcode


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline") / "whole"
    run_pipeline(folder, QUICK)
    return folder


def weights(folder: Path) -> dict[str, bytes]:
    """Of the newest checkpoint of every stage."""
    return {
        f"{stage}/{path.name}": path.read_bytes()
        for stage in STAGES
        for path in checkpoint.find(folder / stage).glob("*.safetensors")
    }


@pytest.mark.requirement("R-407")
def test_the_stages_run_in_order_and_each_is_loadable(whole: Path) -> None:
    said: list[str] = []
    assert [
        path.name for path in run_pipeline(whole, QUICK, said.append)
    ] == STAGES  # all done: nothing to train
    assert [line.split(":")[0] for line in said] == STAGES
    kinds = [type(cr.load(whole / stage)[0]).__name__ for stage in STAGES]
    assert kinds == ["GPT", "GPT", "GPT", "GPTReward", "GPT", "GPT"]


@pytest.mark.requirement("R-411")
def test_each_stage_begins_with_the_right_weights_and_leaves_the_others_alone(whole: Path) -> None:
    def first(stage: str) -> dict[str, np.ndarray]:
        return cr.load(whole / stage / "checkpoints" / "step_000000")[0].state()

    tuned = cr.load(whole / "3-instruct")[0].state()
    for stage in ("5-ppo", "6-dpo"):
        assert all((first(stage)[name] == array).all() for name, array in tuned.items())
    body = first("4-reward")
    assert all((body[f"body.{name}"] == array).all() for name, array in tuned.items())
    pretrained = cr.load(whole / "1-pretrain")[0].state()
    assert all((first("2-continue")[name] == array).all() for name, array in pretrained.items())


@pytest.mark.requirement("R-410", "R-423")
def test_preferences_are_answers_of_the_tuned_model_and_follow_the_rule(whole: Path) -> None:
    rows = [json.loads(line) for line in (whole / "preferences.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) > 10 and all(row["chosen"] != row["rejected"] for row in rows)
    corpus = cr.data.load_preferences(whole / "preferences.jsonl")
    assert len(corpus.without_ties()) == len(rows)
    for row in corpus.comparisons:
        scores = [score(getattr(row, side), ended=side not in row.cut) for side in ("chosen", "rejected")]
        assert scores[0] > scores[1]  # the file says all that the rule has judged by


def test_the_models_that_learn_from_them_see_which_answers_ended(whole: Path) -> None:
    """Else nothing could be learned of what the rule says of ends."""
    run = Run.resume(whole / "4-reward")
    end, cuts = AnswerCoder(run.tokenizer).end, 0
    rows = {row.prompt: row for row in run.corpus.comparisons}  # type: ignore[attr-defined]
    for row in run.task.encoded(list(rows.values())):  # type: ignore[attr-defined]
        cuts += (row.ids.chosen[-1] != end) + (row.ids.rejected[-1] != end)
    assert cuts == sum(len(row.cut) for row in rows.values()) > 0


def test_killed_three_times_it_ends_with_the_same_bits(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    deaths = 0
    for moments in (70, 200, 150, None):
        code = in_a_process(folder, moments)
        deaths += code == KILLED
    assert (code, deaths) == (0, 3)
    assert weights(folder) == weights(whole)
    for name in ("preferences.jsonl", "prompts.jsonl"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert report(folder, QUICK).read_text("utf-8") == report(whole, QUICK).read_text("utf-8")


def test_other_settings_or_another_directory_are_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a pipeline with other settings began here"):
        run_pipeline(whole, cr.pipeline.PipelineConfig())
    (tmp_path / "mine.txt").touch()
    with pytest.raises(ConfigError, match="the directory is not empty"):
        run_pipeline(tmp_path, QUICK)
