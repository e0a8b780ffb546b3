"""A training as a form describes it: the words of `chainrule train`, what is wrong with them, what they would cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from chainrule.cli.args.errors import BadValue
from chainrule.cli.args.families import sizes_of
from chainrule.cli.args.options import Option, options_of
from chainrule.cli.args.reader import read
from chainrule.cli.args.runs.training import CHOSEN, TrainOptions
from chainrule.data.corpora import BUILT_IN, find
from chainrule.errors import ChainruleError, ConfigError, DataError, Setting
from chainrule.models.registry import KNOWN
from chainrule.web.jobs import Tell
from chainrule.web.runs.findings import said

FAMILIES = ("gpt", "llama", "neox", "lstm", "gru", "rnn", "mlp")
# What the form offers beside the data and the length, with what is said of it; each family has some of them.
OPTIONS: dict[str, str] = {
    "n_layer": "Blocks",
    "n_head": "Heads",
    "n_embd": "Width",
    "n_hidden": "Hidden units",
    "block_size": "Context",
    "batch_size": "Batch",
    "lr": "Learning rate",
    "weight_decay": "Weight decay",
    "tokenizer": "Tokenizer",
    "seed": "Seed",
}
QUICK: dict[str, Any] = {"family": "gpt", "data": "pydoc", "budget": "120", "name": "", "options": {}}
NAME = re.compile(r"[\w][\w.-]{0,60}")
EVERY = {"sample-every": 50, "watch-every": 25}  # so that there is something to look at
NAMED = {"max_steps": "steps"}  # settings that the form calls by another name
SOUND = {"budget": "60", "steps": "1"}  # stand for a length that was refused while the rest is checked


class Refused(ConfigError):
    """A form that `chainrule train` would refuse; `fields` are those it is about."""

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message)
        self.fields = fields


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
            rule = f"must be one of {', '.join(FAMILIES)}"
            raise Refused(f"train: no family {texts['family'][:40]!r} ({rule})", "family")
        if not texts["data"] or texts["data"].startswith("-"):
            raise Refused(f"train: data is {texts['data'][:80]!r} (must be a corpus or a path)", "data")
        if texts["name"] and not NAME.fullmatch(texts["name"]):
            rule = "must be letters, digits, - _ and ."
            raise Refused(f"train: the name {texts['name'][:80]!r} ({rule})", "name")
        if bool(texts["budget"]) == bool(texts["steps"]):
            raise Refused("train: must have a time or a number of steps, not both", "budget", "steps")
        unknown = [key for key in options if key not in OPTIONS]
        if unknown:
            raise ConfigError(f"train: no option {unknown[0][:40]!r} (must be one of {', '.join(OPTIONS)})")
        return cls(**texts, options=options)

    def words(self, folder: Path) -> list[str]:
        """What follows `chainrule`."""
        return ["train", self.family, self.data, "--out", str(folder), *self._chosen]

    @property
    def _chosen(self) -> list[str]:
        """The options, as `--name=value`: a value may begin with a dash."""
        length = {"budget": self.budget} if self.budget else {"max-steps": self.steps}
        return [
            f"--{key.replace('_', '-')}={value}" for key, value in (length | EVERY | {**self.options}).items()
        ]

    # -- what is wrong -------------------------------------------------------------------------------------------

    @property
    def known(self) -> dict[str, Option]:
        """The options of the family that the form offers, by name."""
        found = {option.name: option for option in options_of(self._command)}
        return {name: found[name] for name in OPTIONS if name in found}

    @property
    def _command(self) -> type[TrainOptions]:
        made: type[TrainOptions] = import_module("chainrule.cli.commands.train.family").command(self.family)
        return made

    def asked(self) -> TrainOptions:
        """The options as the command line reads them, without a directory; what it would refuse is `Refused`.

        Only the data are not read: what is wrong inside them shows when they are.
        """
        from chainrule.cli.args.runs.new import check_tokenizer

        command = self._command
        if foreign := [name for name in self.options if name not in self.known]:
            rule = f"must be one of {', '.join(self.known)}: leave it empty"
            raise Refused(f"train: {foreign[0]} is no option of a {self.family} ({rule})", foreign[0])
        try:
            asked = read(command, options_of(command), [self.data, *self._chosen, "--json"])
            check_tokenizer(asked)
        except ChainruleError as error:
            raise in_form(error) from None
        except OSError as error:
            named = self.options.get("tokenizer", "")[:80]
            raise Refused(
                f"train: tokenizer is {named!r}: {error.strerror} (must be a file)", "tokenizer"
            ) from None
        try:
            if self.data not in BUILT_IN and not find(self.data).exists():
                raise DataError(
                    f"{self.data[:200]}: no such corpus or file (must be one of the list, or a path)"
                )
        except DataError as error:
            raise Refused(str(error), "data") from None
        except (OSError, ValueError):
            raise Refused(f"train: data is {self.data[:80]!r} (must be a corpus or a path)", "data") from None
        return asked

    def problems(self) -> tuple[list[Refused], Plan]:
        """All that is wrong, and the plan without it: what is refused is left out, and the rest is read again."""
        found: list[Refused] = []
        plan = self
        while True:
            try:
                plan.asked()
                return found, plan
            except Refused as error:
                found.append(error)
                sound = plan._without(error.fields)
                if sound == plan:
                    return found, plan
                plan = sound

    def _without(self, names: tuple[str, ...]) -> Plan:
        """Without these options; data and length become ones that are never refused."""
        changes = {name: SOUND[name] for name in names if getattr(self, name, "") and name in SOUND}
        if "data" in names:
            changes["data"] = QUICK["data"]
        options = {name: value for name, value in self.options.items() if name not in names}
        return replace(self, options=options, **changes)

    def defaults(self) -> dict[str, str]:
        """What counts for each option of the family that is left empty, in words."""
        asked = self.asked()
        fitted = {*sizes_of(self.family), *CHOSEN} if asked.chooses else set()
        usual = {"tokenizer": "char"} if KNOWN[self.family].reads == "characters" else {}
        shown = {name: usual.get(name, _text(option.default)) for name, option in self.known.items()}
        return {name: "fits the time" if name in fitted else value for name, value in shown.items()}

    # -- what it would cost --------------------------------------------------------------------------------------

    def forecast(self, tell: Tell) -> dict[str, Any]:
        """The model it would train, and what the doctor says before the first step: time, memory, first loss."""
        from chainrule.cli.args.runs.new import new_run

        asked = self.asked()
        try:
            tell("choosing the sizes" if self.budget else "reading the data", None)
            run = new_run(asked, draft=True, tell=lambda text: tell(text, None))
            tell("one step on the first batch", None)
            found = run.trainer.examine()
        except ChainruleError as error:
            raise in_form(error) from None
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


def in_form(error: ChainruleError) -> Refused:
    """An error of the command line in the words of the form, with its fields."""

    def name(setting: str) -> str:
        return NAMED.get(setting, setting)

    if isinstance(error, Refused):
        return error
    if isinstance(error, BadValue):
        field = name(error.flag.removeprefix("--").replace("-", "_"))
        return Refused(f"train: {field} is {error.value!r} ({error.rule})", field)
    settings = dict.fromkeys(name(part) for part in error.args if isinstance(part, Setting))
    return Refused(error.spelled(name), *settings)


def reviewed(form: Mapping[str, Any]) -> dict[str, Any]:
    """What is wrong with a form before anything starts, and what its empty fields stand for."""
    try:
        problems, sound = Plan.of(form).problems()
    except Refused as error:
        problems, sound = (
            [error],
            Plan.of(QUICK | ({"family": form["family"]} if form.get("family") in FAMILIES else {})),
        )
    return {
        "problems": [{"error": str(each), "fields": [*each.fields]} for each in problems],
        "defaults": sound.defaults(),
    }


def _text(value: Any) -> str:
    return "chosen" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
