"""The stages of a pipeline, each an ordinary run in its directory.

    DIR/1-pretrain     a GPT on pydoc
    DIR/2-continue     continues with docstrings, as plain text
    DIR/3-instruct     learns to answer what a function does
    DIR/preferences.jsonl, prompts.jsonl       two answers of 3-instruct to each prompt, compared by a rule
    DIR/4-reward       learns which answer is preferred
    DIR/5-ppo          learns from that reward
    DIR/6-dpo          learns from the comparisons themselves

A stage that is finished is left as it is, one that was broken off is resumed: so calling it again leads to the same
end, bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chainrule.align.rollouts import roll_out
from chainrule.data import load_conversations
from chainrule.data.read.preferences import SIDES
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.pipeline.config import PipelineConfig
from chainrule.pipeline.rule import score
from chainrule.runs import Run, RunFolder, load
from chainrule.text import Tokenizer
from chainrule.text.chat.answers import AnswerCoder
from chainrule.train.config import TrainConfig

Tell = Callable[[str], None]
TOGETHER = 64  # prompts that are answered in one batch
TRIES = 4  # answers to a prompt, of which the best and the worst are compared
SETTINGS = "pipeline.json"


class Answered(NamedTuple):
    """A prompt, an answer to it, whether it ended by itself, its score by the rule, and the ids of both."""

    prompt: str
    text: str
    ended: bool
    score: float
    prompt_ids: list[int]
    ids: list[int]


class Stage(NamedTuple):
    """A run of the pipeline."""

    name: str
    about: str
    begin: Callable[[], Run]


def run_pipeline(folder: str | Path, config: PipelineConfig, tell: Tell = lambda said: None) -> list[Path]:
    """Train all stages that are not finished; returns their directories."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _same_settings(folder, config)
    done = []
    for stage in stages(folder, config):
        if stage.name == "4-reward":
            compare_answers(folder, config, tell)
        place = folder / stage.name
        tell(f"{stage.name}: {stage.about}")
        run = Run.resume(place) if RunFolder(place).saved() else stage.begin()
        if not run.finished:
            result = run.train(tell=tell)
            if result.interrupted:
                raise KeyboardInterrupt
        done.append(place)
    return done


def stages(folder: Path, config: PipelineConfig) -> list[Stage]:
    """All runs in their order; what one begins with, the ones before it have made."""
    c = config

    def training(steps: int, lr: float, **more: Any) -> TrainConfig:
        every = max(1, steps // 4)
        when = {"eval_every": every, "save_every": every, "eval_windows": 64, "warmup": min(20, steps // 10)}
        return TrainConfig(max_steps=steps, lr=lr, seed=c.seed, **when | more)

    def pretrain() -> Run:
        sizes = {name: getattr(c, name) for name in ("n_layer", "n_embd", "n_head", "block_size")}
        settings = training(c.pretrain_steps, 2e-3, batch_size=16)
        return Run.new(folder / "1-pretrain", "pydoc", settings, "gpt", f"bpe:{c.vocab_size}", **sizes)

    def on(
        before: str, name: str, data: str | Path, settings: TrainConfig, task: str = "", **more: Any
    ) -> Run:
        start, tokenizer = load(folder / before)
        family = "gpt-reward" if name == "4-reward" else "gpt"
        return Run.new(folder / name, data, settings, family, tokenizer, start, task=task, **more)

    preferences, prompts = folder / "preferences.jsonl", folder / "prompts.jsonl"
    small = {"batch_size": 16, "weight_decay": 0.0}
    # Seen at a low rate and often: at 1e-4 all that the reward has to teach is learned within twenty steps.
    rollouts = small | {"batch_size": 32, "eval_every": max(1, c.ppo_steps // 16)}
    return [
        Stage("1-pretrain", "a GPT on pydoc", pretrain),
        Stage(
            "2-continue",
            "continues with docstrings",
            lambda: on("1-pretrain", "2-continue", "docstrings", training(c.continued_steps, 1e-3, batch_size=16)),
        ),
        Stage(
            "3-instruct",
            "learns to answer questions about functions",
            lambda: on(
                "2-continue", "3-instruct", "docstrings", training(c.instruct_steps, 5e-4, batch_size=16), "instruction"
            ),
        ),
        Stage(
            "4-reward",
            "learns which of two answers is preferred",
            lambda: on("3-instruct", "4-reward", preferences, training(c.reward_steps, 3e-4, **small), center=0.01),
        ),
        Stage(
            "5-ppo",
            "learns from the reward of its own answers",
            lambda: on(
                "3-instruct", "5-ppo", prompts, training(c.ppo_steps, 3e-5, **rollouts), "ppo",
                reward=folder / "4-reward", max_new_tokens=c.answer_tokens, beta=0.05, epochs=2,
            ),
        ),
        Stage(
            "6-dpo",
            "learns from the comparisons themselves",
            lambda: on("3-instruct", "6-dpo", preferences, training(c.dpo_steps, 5e-5, **small), "dpo", beta=0.1),
        ),
    ]  # fmt: skip


def compare_answers(folder: Path, config: PipelineConfig, tell: Tell) -> None:
    """Let the tuned model answer, compare its answers by the rule, and write both files; if they are not there yet."""
    files = folder / "preferences.jsonl", folder / "prompts.jsonl"
    if all(path.exists() for path in files):
        return
    model, tokenizer = load(folder / "3-instruct")
    prompts = [each.question for each in load_conversations("docstrings").parts()[0]][: config.comparisons]
    lines = []
    for first in range(0, len(prompts), TOGETHER):
        tell(f"preferences: {first:,} of {len(prompts):,} prompts answered")
        some = prompts[first : first + TOGETHER]
        for answers in answered(model, tokenizer, some, config, number=first, tries=TRIES):
            worst, *_, best = sorted(answers, key=lambda each: each.score)
            if best.score > worst.score and worst.text and best.text and worst.text != best.text:
                lines.append(compared(best, worst))
    if not lines:
        raise ConfigError("pipeline: no two answers differ (the model has learned too little: more steps)")
    for path, rows in zip(files, (lines, [{"prompt": prompt} for prompt in prompts]), strict=True):
        write(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def compared(best: Answered, worst: Answered) -> dict[str, str]:
    """A record of preferences; it says which answer was cut, or nobody could learn what the rule says of ends."""
    cut = [side for side, each in zip(SIDES, (best, worst), strict=True) if not each.ended]
    row = {"prompt": best.prompt, "chosen": best.text, "rejected": worst.text}
    return row | {"cut": "both" if len(cut) > 1 else "".join(cut)}


def answered(
    model: Any,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    config: PipelineConfig,
    *,
    number: int,
    tries: int = 1,
) -> list[list[Answered]]:
    """`tries` answers to each prompt that leaves room for one

    What is drawn depends on the seed, `number`, and the place of the prompt alone.
    """
    coder, room = AnswerCoder(tokenizer), config.answer_tokens
    rows = zip(prompts, coder.prompts(prompts), strict=True)
    fits = [(prompt, ids) for prompt, ids in rows if len(ids) + room <= model.context for _ in range(tries)]
    if not fits:
        return []
    asked = [ids for _, ids in fits]
    drawn = roll_out(model, asked, max_new_tokens=room, end=coder.end, seed=config.seed, number=number)
    found = []
    for (prompt, ids), answer in zip(fits, drawn.answers, strict=True):
        ended = answer[-1] == coder.end
        text = tokenizer.decode(answer[:-1] if ended else answer).strip()
        found.append(Answered(prompt, text, ended, score(text, ended=ended), ids, answer))
    return [found[first : first + tries] for first in range(0, len(found), tries)]


def _same_settings(folder: Path, config: PipelineConfig) -> None:
    """Remember the settings, or refuse others than the pipeline was begun with."""
    path = folder / SETTINGS
    now = json.dumps(vars(config), indent=1) + "\n"
    if not path.exists():
        if any(folder.iterdir()):
            raise ConfigError(f"{folder}: the directory is not empty (choose another)")
        write(path, now.encode())
    elif path.read_text(encoding="utf-8") != now:
        raise ConfigError(f"{folder}: a pipeline with other settings began here (choose another directory)")
