"""What the stages have changed, in one page of Markdown: losses, samples before and after, win rates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.align.reward import as_reward
from chainrule.align.rollouts import as_rows
from chainrule.data import load_conversations
from chainrule.files import write
from chainrule.generate import write as write_text
from chainrule.pipeline.compare import COMPARED, answers_of, held_out, win_rate
from chainrule.pipeline.config import PipelineConfig
from chainrule.pipeline.rule import RULE
from chainrule.pipeline.stages import Answered, answered
from chainrule.runs import RunFolder, load
from chainrule.runs.load import steps_in_use
from chainrule.train.log import read

FILE = "report.md"
POLICIES = ("3-instruct", "5-ppo", "6-dpo")
LEARNED = {
    "1-pretrain": ("pydoc", "nats per token"),
    "2-continue": ("docstrings as text", "nats per token"),
    "3-instruct": ("docstrings as answers", "nats per token of an answer"),
    "4-reward": ("comparisons", "nats per pair; a guess: 0.693"),
    "5-ppo": ("prompts", "minus the objective, reward - β KL"),
    "6-dpo": ("comparisons", "nats per pair; a guess: 0.693"),
}
SAMPLES = 3
LONGEST = 160  # characters of a sample


def report(folder: str | Path, config: PipelineConfig) -> Path:
    """Compare the models of a pipeline that is done, and write DIR/report.md."""
    folder = Path(folder)
    models = {name: load(folder / name) for name in (*LEARNED,)}
    answers = {name: answers_of(*models[name], config) for name in POLICIES}
    parts = [
        "# From a text to an aligned model",
        "Every stage is a run in this directory, to be sampled, evaluated and resumed like any other.",
        f"The rule that stands for people: {RULE}. Of two answers the one with the higher score is preferred.",
        "## What each stage has learned",
        _losses(folder),
        "## Who answers better",
        _compared(models, answers),
        "## What they write",
        _samples(models, config),
    ]
    path = folder / FILE
    write(path, ("\n\n".join(parts) + "\n").encode())
    return path


def _losses(folder: Path) -> str:
    rows = []
    for name, (data, unit) in LEARNED.items():
        records = read(RunFolder(folder / name).log)
        found = [r for r in records if r.get("validation") is not None]
        used, steps = steps_in_use(folder / name) or (found[-1]["step"],) * 2
        then = next(r for r in found if r["step"] == used)
        more = then.get("accuracy", then.get("rewards/accuracies"))
        right = "" if more is None else f"{more:.1%}"
        first = f"{found[0]['validation']:.3f} at {found[0]['step']:,}"
        rows.append(
            [f"`{name}`", data, f"{steps:,}", first, f"{then['validation']:.3f} at {used:,}", unit, right]
        )
    said = "The step with the best evaluation is what the next stages and `chainrule sample` use."
    head = ["run", "learns from", "steps", "first evaluation", "used", "unit", "accuracy"]
    return f"{said}\n\n{table(head, rows)}"


def _compared(models: dict[str, Any], answers: dict[str, list[Answered]]) -> str:
    """Scores by the rule and by the reward model, and how often each beats the tuned model."""
    rows, before = [], answers["3-instruct"]
    for name, mine in answers.items():
        rate = win_rate(mine, before)
        low, high = rate.interval
        rows.append([
            f"`{name}`",
            f"{np.mean([each.score for each in mine]):.3f}",
            f"{rewards_of(models['4-reward'][0], mine).mean():.3f}",
            f"{np.mean([each.text.startswith('Return') for each in mine]):.0%}",
            f"{np.mean([len(each.text) for each in mine]):.0f}",
            "–" if mine is before else f"{rate.rate:.1%} ({low:.1%} to {high:.1%})",
        ])  # fmt: skip
    said = (
        f"One answer to each of {len(before)} questions that no stage has learned from. A tie is half a win; in "
        "brackets the 95 % interval (Wilson). The last column is by the rule, not by the reward model: where only the "
        "score of the reward model rises, it was learned badly, and the policy has found out."
    )
    head = [
        "run",
        "score by the rule",
        "by the reward model",
        'begins with "Return"',
        "characters",
        "beats `3-instruct`",
    ]
    return f"{said}\n\n{table(head, rows)}"


def rewards_of(model: Any, answers: list[Answered]) -> npt.NDArray[Any]:
    """What a reward model says of answers (n,)"""
    return np.asarray(as_reward(model)(as_rows([a.prompt_ids for a in answers], [a.ids for a in answers])))


def _samples(models: dict[str, Any], config: PipelineConfig) -> str:
    """Two texts of the first stages, then the same questions to each model that answers."""
    parts = []
    for name in ("1-pretrain", "2-continue"):
        model, tokenizer = models[name]
        text = "".join(write_text(model, tokenizer, "def ", config.answer_tokens, seed=config.seed))
        parts.append(f"`{name}`, after “def ”: {_quoted(text)}")
    asked = load_conversations("docstrings").parts()[1]
    truth = {each.question: each.answer for each in asked}
    for question in held_out(config)[:SAMPLES]:
        lines = [
            f"**{_quoted(question.rpartition(chr(10))[2])}** In the library: {_quoted(truth[question])}",
            "",
        ]
        for name in POLICIES:
            model, tokenizer = models[name]
            found = answered(model, tokenizer, [question], config, number=COMPARED)
            lines.append(f"- `{name}`: {_quoted(found[0][0].text) if found else '(too long a question)'}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _quoted(text: str) -> str:
    flat = " ".join(text.split()).replace("`", "'")
    return f"`{flat[:LONGEST]}`" if flat else "(nothing)"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
