"""Sizes for a time budget: larger ones for more time, and always some that learn."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.cli.render.progress import Progress
from chainrule.data import Corpus, load
from chainrule.errors import ChainruleError
from chainrule.scaling import budget
from chainrule.scaling.budget import LADDER, TOKENS_PER_PARAMETER, choose, expected, suitable_tokenizer
from chainrule.text import BPETokenizer, CharTokenizer
from chainrule.train import Trainer

TEXT = Corpus("some", "test", load("pydoc").text[:60_000])


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 50 GFLOP/s exactly."""

    def pace(trainer: Trainer, limit: float) -> float:
        return 6 * trainer.model.count() * trainer.batches.tokens / 50e9

    monkeypatch.setattr(budget, "seconds_per_step", pace)


def test_more_time_means_a_larger_model_that_sees_enough() -> None:
    found = [choose(TEXT, seconds) for seconds in (1, 12, 60, 600, 6000)]
    counts = [choice.parameters for choice in found]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    for choice in found[1:]:
        tokens = choice.steps * choice.training["batch_size"] * choice.sizes["block_size"]
        assert tokens >= TOKENS_PER_PARAMETER * choice.parameters
        assert choice.epochs == pytest.approx(tokens / (0.9 * len(TEXT.text)), rel=0.05)
    outlooks = [choice.expected for choice in found]
    assert None not in outlooks and outlooks == sorted(
        outlooks, key=lambda each: each or (0, 0), reverse=True
    )


def test_a_text_that_is_read_often_gets_dropout() -> None:
    assert "dropout" not in choose(TEXT, 0.2).sizes
    assert choose(TEXT, 600).sizes["dropout"] == 0.1


def test_of_a_rate_far_from_the_usual_nothing_is_foretold() -> None:
    usual = choose(TEXT, 60)
    for lr in (usual.training["lr"] / 10, usual.training["lr"] * 10):
        choice = choose(TEXT, 60, training={"lr": lr})
        assert (
            choice.expected is None and f"lr {lr:g} is far from the {usual.training['lr']:g}" in choice.remark
        )
    assert choose(TEXT, 60, training={"lr": usual.training["lr"] / 2}).expected == usual.expected


def test_the_warm_up_is_a_small_part_of_a_short_run() -> None:
    for seconds in (0.2, 1, 10, 600):
        choice = choose(TEXT, seconds)
        assert choice.training["warmup"] == min(100, choice.steps // 10)


def test_what_is_given_is_measured_and_kept() -> None:
    choice = choose(TEXT, 60, "gpt", 0, {"dropout": 0.25}, {"batch_size": 8, "lr": 1e-4})
    assert choice.sizes["dropout"] == 0.25
    assert (choice.training["batch_size"], choice.training["lr"]) == (8, 1e-4)
    usual = choose(TEXT, 60)
    assert choice.steps > 1.5 * usual.steps  # of half as many windows
    assert choice.training["clip"] == usual.training["clip"] > 3  # above the gradients of models this small


def test_little_compute_is_expected_to_reach_what_single_characters_do() -> None:
    early, late = expected(TEXT, 1e8), expected(TEXT, 1e15)
    assert early is not None and late is not None
    assert 3 < early[0] < early[1] < 7 and late[0] < late[1] < early[0]
    assert expected(TEXT, 1e8) == pytest.approx(expected(TEXT, 1e6), rel=0.01)  # no more than that


def test_of_a_sorted_list_nothing_is_foretold() -> None:
    words = sorted(
        {f"{first}{second}{n}" for first in "abcdefgh" for second in "ijklmnop" for n in range(30)}
    )
    ordered = choose(Corpus("list", "test", "\n".join(words)), 12)
    assert ordered.expected is None and "expect" not in str(ordered)
    assert "the lines of the text are sorted" in ordered.remark and "shuffle the lines" in ordered.remark
    shuffled = choose(
        Corpus("list", "test", "\n".join(words[n * 997 % len(words)] for n in range(len(words)))), 12
    )
    assert shuffled.expected is not None and "sorted" not in shuffled.remark


def test_another_machine_can_be_asked_about() -> None:
    slow = choose(
        TEXT, 60, pace=lambda trainer, limit: 6 * trainer.model.count() * trainer.batches.tokens / 5e9
    )
    assert slow.steps * slow.parameters < 0.2 * choose(TEXT, 60).steps * choose(TEXT, 60).parameters


def test_every_size_of_the_ladder_can_be_made_and_grows() -> None:
    widths = [rung.n_embd for rung in LADDER if rung.n_embd % rung.n_head == 0]
    assert len(widths) == len(LADDER) and widths == sorted(set(widths))


def test_long_texts_are_read_in_pieces_of_words() -> None:
    text = "some words and some more of them, " * 40_000
    assert isinstance(suitable_tokenizer(text[:1000], 600), CharTokenizer)
    assert isinstance(suitable_tokenizer(text, 10), CharTokenizer)
    assert isinstance(suitable_tokenizer(text, 600), BPETokenizer)


def test_a_text_that_is_too_short_is_refused() -> None:
    with pytest.raises(ChainruleError, match="some"):
        choose(Corpus("some", "test", "too short"), 60)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["train", "gpt", "--budget", "1e99"],
            "--budget is 1e+99 (must be a positive number of seconds, at most",
        ),
        (["train", "gpt", "--budget", "9000h"], "at most 31,536,000, a year"),
        (["demo", "--minutes", "1e9"], "minutes, at most 525,600, a year"),
    ],
)
def test_a_budget_beyond_all_patience_is_refused_at_once(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.fixture
def small_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.txt").write_text(TEXT.text[:3000], encoding="utf-8")


@pytest.mark.usefixtures("small_text")
def test_a_small_text_for_a_long_budget_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = Progress.turn

    def slowly(self: Progress, what: str) -> None:
        turn(self, what)
        time.sleep(0.2)  # however short the work is

    monkeypatch.setattr(Progress, "turn", slowly)
    monkeypatch.setattr("chainrule.cli.render.progress.PATIENCE", 0.0)
    monkeypatch.setattr("chainrule.cli.render.progress.PLAIN", 0.01)
    main(["train", "gpt", "small.txt", "--budget", "2s", "--eval-windows", "4"])
    out, err = capsys.readouterr()
    assert (
        "the text is small for this budget: read more than 40 times" in out and "a budget of about 1s" in out
    )
    assert "choosing sizes for the budget: 0 s" in err
    assert choose(TEXT, 12).remark == ""
    assert "a budget of about 3m" in choose(TEXT, 6000).remark


@pytest.mark.usefixtures("small_text")
def test_half_a_training_is_not_compared_with_the_forecast_of_a_whole_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    update = Trainer.update

    def interrupted(self: Trainer, lr: float) -> object:
        if self.steps == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, lr)

    monkeypatch.setattr(Trainer, "update", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(["train", "gpt", "small.txt", "--budget", "30s", "--eval-windows", "4"])
    out = capsys.readouterr().out
    assert stop.value.code == 130 and "interrupted after step 6" in out
    assert "validation loss" in out and "expected" not in out and "pace" not in out


@pytest.mark.parametrize(("said", "seconds"), [("90", 90.0), ("1.5m", 90.0), ("2h", 7200.0), ("45s", 45.0)])
def test_a_budget_is_said_in_seconds_minutes_or_hours(
    said: str, seconds: float, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--budget", said], [f"--budget={said}"]):
        main(["train", "gpt", *words, "--print-config"])
        assert f"budget = {seconds}\n" in capsys.readouterr().out
