"""`chainrule tune BASE DATA`: a trained model learns something more, all of it or a small part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from chainrule.cli.args.options import Argument, Given, Help, Without
from chainrule.cli.args.runs.training import Speaking
from chainrule.columns import Columns
from chainrule.errors import ChainruleError
from chainrule.train.config import Keeping, TrainConfig

# What a run needs is imported when there is one: the help is there without it.

DEFAULT = "lora"
FOUND = ("ids", "tokens")  # fields of methods that follow from the texts: no options
DEFAULTS = TrainConfig(max_steps=300, lr=3e-4, warmup=20, eval_every=50, save_every=100)


@dataclass(frozen=True)
class Tune(Speaking):
    """What the methods share; `command` adds the settings of one."""

    method_name: ClassVar[str] = DEFAULT

    base: Annotated[str, Argument("BASE")] = ""
    """What is tuned: a run, a checkpoint, a Hugging Face directory, a .gguf or a llama2.c .bin file."""
    data: Annotated[str, Argument("DATA")] = ""
    """Of a language model a text, or a .jsonl or .json of instructions or conversations; of a BERT texts with labels;
    of an encoder-decoder pairs of texts."""
    method: Literal["full", "lora", "adapter", "prefix", "prompt", "bitfit", "head"] = "lora"
    """What learns: all weights (full), a change of low rank beside frozen matrices (lora), small layers between frozen
    ones (adapter), keys and values before those of the text (prefix), embeddings before those of the text (prompt), the
    biases (bitfit), or the head."""
    task: str = ""
    """What is learned: language-modeling, instruction, classification, tagging, embedding, masked-lm or translation.
    Default: what fits the base and the data."""
    out: Path | None = None
    """Directory of the run. Default: runs/METHOD, or the next of runs/METHOD-2, ... that is free."""
    resume: Path | None = None
    """Resume this run, with its base, data and settings, from its newest checkpoint."""
    keeping: Keeping = field(default_factory=Keeping)
    columns: Columns = field(default_factory=Columns)
    training: TrainConfig = field(default_factory=lambda: DEFAULTS)
    given: Given = field(default_factory=Given)

    @classmethod
    def by_data(cls) -> dict[str, str]:
        """What counts for settings that are not given; of conversations and labels their number decides."""
        from chainrule.models.suited import rate_in_words

        names = ("max_steps", "batch_size", "eval_every", "warmup")
        said = {
            name: f"{getattr(DEFAULTS, name)}; by their number for conversations and labels" for name in names
        }
        for name in ("eval_every", "warmup"):
            said[name] += "; less if --max-steps is small"
        return said | {"lr": rate_in_words(cls.method_name)}

    def run(self) -> None:
        from chainrule.cli.args.runs.tuning import new_run, resumed
        from chainrule.cli.render.progress import Progress
        from chainrule.cli.render.training import train

        with Progress("reading"):
            run = resumed(self, self.resume) if self.resume else new_run(self)
        if reading := getattr(run.corpus, "reading", None):
            self.say(str(reading))
        train(run, self)


def command(_: str, words: Sequence[str] = ()) -> type[Tune]:
    """`Tune` with the settings of the method that the words name, or that of the run they resume."""
    from chainrule.models.tuning.registry import METHODS, method_class

    name = method_in(words)
    kind = method_class(name)
    about = (
        f"Tune a trained model: it learns something more, by default with LoRA. METHOD is one of {', '.join(METHODS)}; "
        f"each has options of its own: chainrule tune --method METHOD --help. Here: {name}, {kind.about}.\n\n"
        "Unless all weights learn, the run keeps what learned alone, and finds the base again where it is now.\n\n"
        "Example: chainrule tune runs/base answers.jsonl --method lora --rank 8 --out runs/tuned"
    )
    more: list[Any] = [("settings", Annotated[kind, Without(FOUND)], field(default_factory=kind))]
    if name == "prompt":
        said = "The rows start as the embeddings of this text, in place of --length random ones."
        more.append(("init_text", Annotated[str, Help(said)], field(default="")))
    of_class = {"__doc__": about, "elsewhere": _elsewhere(), "called": f"chainrule tune --method {name}"}
    of_class |= {"method_name": name}
    return make_dataclass("Command", more, bases=(Tune,), namespace=of_class, frozen=True)


def _elsewhere() -> dict[str, str]:
    """Flags of the methods, and which methods have them: said where the method is another."""
    from chainrule.models.tuning.registry import METHODS, method_class

    owners: dict[str, list[str]] = {"--init-text": ["prompt"]}
    for method in METHODS:
        for each in (each for each in fields(method_class(method)) if each.name not in FOUND):
            owners.setdefault(f"--{each.name.replace('_', '-')}", []).append(method)
    return {flag: f"an option of --method {' or '.join(methods)}" for flag, methods in owners.items()}


def method_in(words: Sequence[str]) -> str:
    """The method that the words of a command line name, or that of the run they resume."""
    said = _value(words, "--method")
    if said is None and (folder := _value(words, "--resume")):
        from chainrule.runs import checkpoint

        try:
            saved = checkpoint.read_training(checkpoint.find(Path(folder)))
            said = saved.get("method", {}).get("method")
        except ChainruleError:  # said again, and better, when the run is resumed
            said = None
    return DEFAULT if said is None else said


def _value(words: Sequence[str], flag: str) -> str | None:
    for place, word in enumerate(words):
        if word == flag:
            return words[place + 1] if place + 1 < len(words) else None
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None
