"""`chainrule train FAMILY`: one command per family of models, its flags the fields of the family's config."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from chainrule.cli.args.families import DATA, NAMES, TEXT, decided, without
from chainrule.cli.args.options import Argument, Help, Without
from chainrule.cli.args.runs.training import TrainOptions
from chainrule.columns import Columns
from chainrule.errors import ConfigError, Failure
from chainrule.models.registry import ENCODERS, KNOWN
from chainrule.suggest import did_you_mean
from chainrule.train.config import TrainConfig, defaults

if TYPE_CHECKING:
    from chainrule.runs import Run

# What a run needs is imported when there is one: the help is there without it.

TOKENS = {  # the help of --tokenizer, by what a family reads
    "characters": "char: each character is a token; bpe, bpe:4000, unigram or wordpiece: learned from the data, of "
    "this size; or the path of a tokenizer's file. Default: char, or that of the shards.",
    "byte pairs": "bpe, bpe:4000, unigram or wordpiece: learned from both sides, of this size; char; or the path of a "
    "tokenizer's file. Default: bpe, of a size that suits the amount of text.",
    "word pieces": "The path of a tokenizer's file, which must have [CLS], [SEP], [MASK] and [PAD]; or wordpiece:4000, "
    "bpe:4000 or unigram:4000. Default: word pieces that are learned from the data, or the tokenizer of the shards.",
    "words": "The path of a tokenizer's file, or bpe:4000, unigram:4000 or wordpiece:4000. Default: the words of the "
    "data in lower case.",
}

VECTORS = (
    "Vectors of words, a run of word2vec or a text file, that the tokens begin with which are such words; as many "
    "numbers as the embeddings are wide."
)


@dataclass(frozen=True)
class Train(TrainOptions):
    """What the commands share; `command` adds the sizes of a family."""

    def run(self) -> None:
        from chainrule.cli.args.runs.seeds import parent_of

        if self.print_config:
            print(self.settings(), end="")
        elif parent := parent_of(self):
            self._train_seeds(parent)
        elif self.overfit or self.find_lr:
            self._try()
        else:
            from chainrule.cli.render.training import train

            train(self._run(), self)

    def _train_seeds(self, parent: Path) -> None:
        """A run for each seed, then the mean of what they reach; one that diverges does not stop the others."""
        from chainrule.cli.args.runs.seeds import each_seed
        from chainrule.cli.render import seeds
        from chainrule.cli.render.show import command_line
        from chainrule.cli.render.training import train
        from chainrule.runs.records.history import History
        from chainrule.runs.records.seeds import folder_of, folders, seed_of, together
        from chainrule.train.skips import Diverged

        diverged: dict[int, Diverged] = {}
        try:
            for asked in each_seed(self, parent):
                seed = asked.training.seed if asked.resume is None else seed_of(asked.resume)
                self.say(f"seed {seed}" if not asked.resume else f"resumes {asked.resume}")
                try:
                    train(asked._run(), asked, alone=False)
                except Diverged as error:
                    self.say(f"seed {seed} diverged; the others are trained all the same")
                    diverged[seed] = error
        except SystemExit:
            count = () if self.seeds == 1 else ("--seeds", self.seeds)
            self.say(f"all seeds: {command_line('train', self.family, '--resume', parent, *count)}")
            raise
        lost = {folder_of(parent, seed) for seed in diverged}
        made = [History.of(folder) for folder in folders(parent) if folder not in lost]
        facts = seeds.summary(made, parent) | {"diverged": [*diverged]}
        print(
            json.dumps(facts) if self.json else "\n".join(seeds.in_words(together(made), len(made), parent))
        )
        if diverged:
            first, names = next(iter(diverged)), ", ".join(map(str, diverged))
            said = f"train: of {len(made) + len(diverged)} seeds diverged {names}; {first}: "
            raise Failure(said, *diverged[first].args)

    def _run(self, *, draft: bool = False) -> Run:
        """The run that is resumed, or a new one; a draft is not written."""
        from chainrule.cli.args.runs.new import new_run
        from chainrule.cli.args.runs.resume import resumed
        from chainrule.cli.render.progress import Progress

        with Progress("reading") as progress:
            run = (
                resumed(self, self.resume) if self.resume else new_run(self, draft=draft, tell=progress.turn)
            )
        if reading := getattr(run.corpus, "reading", None):
            self.say(str(reading))
        return run

    def _try(self) -> None:
        """The trials that were asked for."""
        from chainrule.cli.render.trials import find_lr, overfit_one_batch

        run = self._run(draft=True)
        if self.find_lr:
            find_lr(run, as_json=self.json)
        if self.overfit:
            overfit_one_batch(run, as_json=self.json)


def command(family: str, words: Sequence[str] = ()) -> type[Train]:
    """The command of a family: `Train` with the sizes of its config, but for those that the data decide.

    Without a family it is gpt, but a first word that is not data either was meant to be one.
    """
    default = not family
    if default:
        refuse_family(words[0] if words else "")
        family = "gpt"
    config, kind = KNOWN[family].config, DATA.get(family, TEXT)
    others = ", ".join(name for name in [*NAMES, "word2vec"] if name != family)
    steps = "" if kind.chosen else " --max-steps 5000"
    about = (
        (
            f"Train a model. FAMILY is {family} if it is left out; others are {others}. Each has options of its own: "
            "chainrule train FAMILY --help.\n\n"
            if default
            else f"Train a model of the family {family}. Other families: {others}, each with options of its own.\n\n"
        )
        + (kind.chosen and f"{kind.chosen}\n\n")
        + f"Example: chainrule train {family} {kind.example}{steps} --out runs/mine"
    )
    tokens = TOKENS[KNOWN[family].reads]
    more: list[Any] = [
        ("data", Annotated[str, Argument("DATA"), Help(kind.about)], field(default=kind.default)),
        ("tokenizer", Annotated[str | None, Help(tokens)], field(default=None)),
        ("columns", Annotated[Columns, Without(without(kind))], field(default_factory=Columns)),
        ("sizes", Annotated[config, Without(decided(family))], field(default_factory=config)),
        ("training", TrainConfig, field(default_factory=partial(defaults, family))),
    ]
    if family in ENCODERS:
        more.append(("init_embeddings", Annotated[Path | None, Help(VECTORS)], field(default=None)))
    shared: dict[str, Any] = {"family": family, "__doc__": about} | ({"first": "[FAMILY]"} if default else {})
    return make_dataclass("Command", more, bases=(Train,), namespace=shared, frozen=True)


def refuse_family(word: str) -> None:
    """`train lstmm`: neither a family nor, by its looks, a file, nor a corpus."""
    if not re.fullmatch(r"\w[\w-]*", word) or Path(word).exists():
        return
    from chainrule.data import available

    corpora = available()
    if word in corpora:
        return
    families = [*NAMES, "word2vec"]
    hint = did_you_mean(word, [*families, *corpora]) or "chainrule data list names the corpora"
    listed = ", ".join(families)
    raise ConfigError(f"train {word!r}: no such family, corpus or file (families are {listed}; {hint})")
