"""A new run as the options of `chainrule train` ask for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from chainrule.cli.args.config_file import toml
from chainrule.cli.args.families import sizes_of
from chainrule.cli.args.runs.training import CHOSEN, FITTED, TrainOptions, in_toml, settled
from chainrule.data import Corpus
from chainrule.distributed import world
from chainrule.errors import ConfigError, Setting
from chainrule.machine import memory
from chainrule.models.registry import KNOWN
from chainrule.models.suited import SHAPE, within
from chainrule.runs import Run, RunFolder
from chainrule.runs.warm_start import load_start
from chainrule.scaling.budget import choose
from chainrule.suggest import hinted
from chainrule.tasks.memory import step_bytes
from chainrule.tasks.registry import task_of
from chainrule.text import CharTokenizer
from chainrule.text.training.recipe import KINDS, Recipe

Begin = Callable[..., Run]  # Run.new with all that the options say but data, settings, tokenizer and sizes


def new_run(asked: TrainOptions, *, draft: bool = False, tell: Callable[[str], None]) -> Run:
    """The run in its directory, with its settings for --config beside it; of a draft nothing is written.

    What takes its time, other than reading, is told to `tell`.
    """
    draft = draft or not world().first
    family, folder = asked.family, asked.out or Path("runs", asked.family)
    if asked.out and not draft:
        RunFolder(asked.out).check_free()  # before sizes are chosen, which takes a while
    check_tokenizer(asked)
    said: dict[str, Any] = {"columns": asked.columns, "vectors": asked.init_embeddings, "start": asked.init}
    begin = partial(Run.new, folder, model=family, draft=draft, numbered=asked.out is None, **said)
    run = _for_budget(asked, begin, tell) or _for_data(asked, begin) or _as_given(asked, begin)
    if told := _learned(asked, run):
        asked.say(told)
    if run.embedded:
        tokens = f"{run.embedded:,} of {run.tokenizer.vocab_size:,} tokens"
        asked.say(f"{tokens} begin with the vectors of {asked.init_embeddings}")
    if not draft:
        run.keep_settings(_record(asked, run))
    return run


def check_tokenizer(asked: TrainOptions) -> None:
    """Refuse a tokenizer that the family cannot read, and a word that is neither one to learn nor a file."""
    family, tokenizer = asked.family, asked.tokenizer
    reads = KNOWN[family].reads
    if tokenizer == "char" and reads not in ("characters", "byte pairs"):
        why = "which has no [CLS]" if reads == "word pieces" else "which has no words"
        rule = f"must be {reads} for a {family}: leave it out"
        raise ConfigError("train: ", Setting("tokenizer"), f" is char, {why} ({rule})")
    if tokenizer is None or Recipe.of(tokenizer) or Path(tokenizer).exists():
        return
    kind, _, size = tokenizer.partition(":")
    if not (kind + size).isalnum():
        return  # a path
    listed = f"{', '.join(KINDS)}, with a size as in bpe:4000, or the path of a tokenizer's file; nothing is fetched"
    rule = hinted(f"must be {listed}", kind, KINDS)
    raise ConfigError("train: ", Setting("tokenizer"), f" is {tokenizer} ({rule})")


def _learned(asked: TrainOptions, run: Run) -> str:
    """Which tokenizer was learned, if one was asked for by name or the family has one by default."""
    recipe = Recipe.of(asked.tokenizer)
    byte_pairs = asked.tokenizer is None and asked.init is None and KNOWN[asked.family].reads == "byte pairs"
    if not byte_pairs and (recipe is None or recipe.kind == "char"):
        return ""
    kind = "bpe" if recipe is None else recipe.kind
    other = "" if recipe else "; --tokenizer bpe:SIZE or char for another"
    return f"tokenizer: {kind} of {run.tokenizer.vocab_size:,} tokens, learned from the data{other}"


def _as_given(asked: TrainOptions, begin: Begin) -> Run:
    """With the sizes and settings of the options; with initial weights only those sizes that are said count."""
    names = [name for name in sizes_of(asked.family) if asked.init is None or name in asked.given]
    sizes = {name: getattr(asked.sizes, name) for name in names}
    run = begin(asked.data, asked.planned, tokenizer=asked.tokenizer, **sizes)
    if asked.planned != asked.training:  # said of a run that is there
        said = f"starts from {asked.init}: lr is {asked.planned.lr:g}, a tenth of what it is for new weights"
        asked.say(f"{said} (--lr for another)")
    if window := run.task.facts().get("window"):
        said = f"trains on windows of {window:,} tokens, the context stays {run.model.config.block_size:,}: a step of "
        needed, there = step_bytes(run.model.config, asked.planned, window) / 2**30, memory() / 2**30
        said += f"{asked.planned.batch_size} takes about {needed:.1f} of {there:.0f} GiB"
        asked.say(f"{said} (--batch-size, --block-size for others)")
    return run


def _for_data(asked: TrainOptions, begin: Begin) -> Run | None:
    """With what suits the number of texts, where the family has such a rule."""
    kind = task_of(asked.family)
    if not asked.suits:
        return None
    data, training = kind.find(asked.data, asked.columns), asked.training
    start, tokenizer = (
        (None, asked.tokenizer) if asked.init is None else load_start(asked.init, asked.tokenizer)
    )
    found = kind.suited(data, start=start, frozen=training.freeze != "none")
    fixed = asked.given | ({*SHAPE, "buckets", "l2"} if SHAPE & asked.given else set())
    sizes, settings = (
        {name: value for name, value in part.items() if name not in fixed}
        for part in (found.sizes, found.training)
    )
    if training.budget is not None:
        settings.pop("max_steps", None)
    if "max_steps" in asked.given:
        settings = within(training.max_steps, settings)
    given = {name: getattr(asked.sizes, name) for name in sizes_of(asked.family) if name in asked.given}
    training = replace(training, **settings)
    run = begin(data, training, tokenizer=tokenizer, start=start or asked.init, **sizes | given)
    if chosen := sizes | settings:
        asked.say(f"chosen for {found.texts:,} texts to train on: {in_words(chosen)}")
    return run


def in_words(settings: Mapping[str, Any]) -> str:
    """n_layer 2, dropout 0.3"""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value:,}"
        for name, value in settings.items()
    )


def _for_budget(asked: TrainOptions, begin: Begin, tell: Callable[[str], None]) -> Run | None:
    """With sizes that fit a time budget, where there is one; what stands against them is said."""
    if asked.training.budget is None or asked.suits:
        return None
    corpus = task_of(asked.family).find(asked.data, asked.columns) if asked.chooses else None
    if not isinstance(corpus, Corpus):
        asked.say(f"budget: decides the number of steps, not the sizes ({_why_not(asked)})")
        return None
    if "max_steps" in asked.given:
        asked.say(
            f"max_steps {asked.training.max_steps:,} does not count: the budget decides how many steps there are"
        )
    training = {name: getattr(asked.training, name) for name in CHOSEN if name in asked.given}
    sizes = {name: getattr(asked.sizes, name) for name in sizes_of(asked.family) if name in asked.given}
    tell("choosing sizes for the budget")
    ranks = world()
    choice = ranks.from_first(
        choose(corpus, asked.training.budget, asked.family, asked.training.seed, sizes, training)
        if ranks.first
        else None
    )
    assert choice is not None
    asked.say(f"chosen: {choice}")
    if choice.remark:
        asked.say(f"note: {choice.remark}")
    chosen = {name: value for name, value in choice.training.items() if name not in asked.given}
    config = replace(asked.training, **chosen)
    run = begin(corpus, config, tokenizer=choice.tokenizer, **choice.sizes)
    run.forecast = None if choice.expected is None else (*choice.expected, choice.steps)
    return run


def _why_not(asked: TrainOptions) -> str:
    """Why no sizes are chosen for a budget."""
    if asked.family not in FITTED:
        return f"they are chosen for {' and '.join(FITTED)}"
    if asked.decided:
        return f"{', '.join(asked.decided)} given: they are chosen if none of them is"
    return f"{asked.data} are shards, with a tokenizer of their own"


def _record(asked: TrainOptions, run: Run) -> str:
    """The settings of a run that has begun, with what was chosen for it, as a file for --config."""
    model = {name: getattr(run.model.config, name) for name in sizes_of(asked.family)}
    own = asked.own
    if asked.chooses and isinstance(run.corpus, Corpus) and not isinstance(run.tokenizer, CharTokenizer):
        own["tokenizer"] = run.folder  # where it is kept
    reading = getattr(run.corpus, "reading", None)
    columns = in_toml(reading.columns) if reading else {}
    return toml(own | columns | model | settled(run.trainer.config))
