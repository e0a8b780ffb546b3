"""A training as a form describes it: the words of `chainrule train`, and what they would cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from chainrule.cli.args.options import options_of
from chainrule.cli.args.reader import read
from chainrule.errors import ChainruleError, ConfigError, Setting
from chainrule.web.jobs import Tell
from chainrule.web.runs.live import said

FAMILIES = ("gpt", "llama", "neox", "lstm", "gru", "rnn", "mlp")
# What the form offers beside the data and the length, with what is said of it.
OPTIONS: dict[str, str] = {
    "n_layer": "Blocks",
    "n_head": "Heads",
    "n_embd": "Width",
    "block_size": "Context",
    "batch_size": "Batch",
    "lr": "Learning rate",
    "tokenizer": "Tokenizer",
    "seed": "Seed",
}
QUICK: dict[str, Any] = {"family": "gpt", "data": "pydoc", "budget": "120", "name": "", "options": {}}
NAME = re.compile(r"[\w][\w.-]{0,60}")
EVERY = {"sample-every": 50, "watch-every": 25}  # so that there is something to look at


@dataclass(frozen=True)
class Plan:
    """One training that was asked for."""

    family: str
    data: str
    name: str
    budget: str = ""
    """Seconds, or 10m; or nothing, then `steps` count."""
    steps: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> Plan:
        """As the page sends it; everything is text."""
        texts = {
            key: str(form.get(key) or "").strip() for key in ("family", "data", "name", "budget", "steps")
        }
        given = form.get("options") or {}
        if not isinstance(given, Mapping):
            raise ConfigError("train: options must be names with values")
        options = {str(key): str(value).strip() for key, value in given.items() if str(value).strip()}
        if texts["family"] not in FAMILIES:
            raise ConfigError(
                f"train: no family {texts['family'][:40]!r} (must be one of {', '.join(FAMILIES)})"
            )
        if not texts["data"] or texts["data"].startswith("-"):
            raise ConfigError(f"train: data is {texts['data'][:80]!r} (must be a corpus or a path)")
        if texts["name"] and not NAME.fullmatch(texts["name"]):
            raise ConfigError(f"train: the name {texts['name'][:80]!r} (must be letters, digits, - _ and .)")
        if bool(texts["budget"]) == bool(texts["steps"]):
            raise ConfigError("train: must have a time or a number of steps, not both")
        unknown = [key for key in options if key not in OPTIONS]
        if unknown:
            raise ConfigError(f"train: no option {unknown[0][:40]!r} (must be one of {', '.join(OPTIONS)})")
        return cls(**texts, options=options)

    def words(self, folder: Path) -> list[str]:
        """What follows `chainrule`."""
        length = ["--budget", self.budget] if self.budget else ["--max-steps", self.steps]
        chosen = [
            word for key, value in self.options.items() for word in (f"--{key.replace('_', '-')}", value)
        ]
        looks = [word for key, value in EVERY.items() for word in (f"--{key}", str(value))]
        return ["train", self.family, self.data, "--out", str(folder), *length, *looks, *chosen]

    def forecast(self, tell: Tell) -> dict[str, Any]:
        """The model it would train, and what the doctor says before the first step: time, memory, first loss."""
        from chainrule.cli.args.runs.new import new_run

        module = import_module("chainrule.cli.commands.train.family")
        command = module.command(self.family)
        words = [*self.words(Path("runs"))[2:], "--json"]
        words = [*words[:1], *words[3:]]  # without --out: nothing is written
        options = options_of(command)
        flags = {option.name: option.flag for option in options}
        try:
            tell("choosing the sizes" if self.budget else "reading the data", None)
            asked = read(command, options, words)
            run = new_run(asked, draft=True, tell=lambda text: tell(text, None))
            tell("one step on the first batch", None)
            found = run.trainer.examine()
        except ChainruleError as error:

            def spell(setting: Setting) -> str:
                return flags.get(setting, str(setting)).removeprefix("--").replace("-", "_")

            raise ConfigError(error.spelled(spell)) from None
        return {
            "model": type(run.model).__name__,
            "parameters": run.model.count(),
            "sizes": {
                key: value
                for key, value in vars(run.model.config).items()
                if isinstance(value, int | float | str)
            },
            "data": run.task.amount(),
            "findings": [said(finding) for finding in found],
        }
