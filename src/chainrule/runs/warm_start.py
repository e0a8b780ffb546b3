"""Warm start: what a run may begin with, the weights of another model or vectors of words, by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.errors import ConfigError, DataError, Setting, kind_of
from chainrule.machine import return_freed_memory
from chainrule.models import Model, describe
from chainrule.models import family as family_of
from chainrule.models.bert.heads import body_of
from chainrule.models.heads import fits_head
from chainrule.models.registry import ENCODERS
from chainrule.models.suited import TUNING_RATES, pretraining_rate
from chainrule.models.tuning import merged
from chainrule.runs.load import is_tokenizer, load_vectors, open_model
from chainrule.tasks.registry import TASKS
from chainrule.text import Tokenizer


@dataclass
class Start:
    """A model to begin with, and where it is. One run takes its weights."""

    path: Path
    model: Model
    tokenizer: Tokenizer
    lr: float
    """Highest learning rate of its pretraining; where that is not known, the usual one of its family and width."""
    own: dict[str, Any]
    """What its own run says of its training, empty if it comes without."""
    taken: bool = False
    """A run has begun with it: what that one learns changes these weights."""

    @classmethod
    def open(cls, path: str | Path) -> Start:
        """Of what `load` reads; a tuned model begins with the weights that it has, if its method allows."""
        return_freed_memory()
        loaded = open_model(path)
        model = merged(loaded.model, f"{path}: no base for another training")
        training = {} if loaded.checkpoint is None else loaded.checkpoint.training
        return cls(Path(path), model, loaded.tokenizer, _pretraining_rate(model, training), training)


def _pretraining_rate(model: Model, training: Mapping[str, Any]) -> float:
    own = (training.get("train") or {}).get("lr")
    if own is None:
        usual = family_of(str(describe(model)["model_type"])).lr
        return pretraining_rate(usual, getattr(model.config, "n_embd", 1))
    # What was tuned itself had a rate that follows from another one.
    method = str((training.get("method") or {}).get("method"))
    return float(own) / TUNING_RATES.get(method, 1.0)


def load_start(path: str | Path | Start, tokenizer: Tokenizer | str | None) -> tuple[Model, Tokenizer]:
    """The model to begin with and its tokenizer; no other one fits its weights."""
    start = path if isinstance(path, Start) else Start.open(path)
    if start.taken:
        raise ConfigError(f"train: another run has begun with this Start of {start.path} (open it again)")
    if not is_tokenizer(tokenizer, start.tokenizer):
        raise own_tokenizer(tokenizer, start.path)
    return start.model, start.tokenizer


def checked_start(
    start: Model | str | Path | Start | None,
    tokenizer: Tokenizer | str | None,
    family: str,
    vectors: object = None,
) -> tuple[Start | None, Model | None, Tokenizer | str | None]:
    """What a run of a family begins with, if it is not new: where it is, its model, and its tokenizer."""
    opened = Start.open(start) if isinstance(start, str | Path) else start
    model = opened
    if isinstance(opened, Start):
        model, tokenizer = load_start(opened, tokenizer)
    assert model is None or isinstance(model, Model)
    if model is not None:
        check_family(model, family)
        check_vectors(vectors)
    return opened if isinstance(opened, Start) else None, model, tokenizer


def own_tokenizer(tokenizer: object, owner: object) -> ConfigError:
    """A tokenizer is asked for where there is one already."""
    said = f" is {tokenizer}, {owner} has its own (leave it out)"
    return ConfigError("train: ", Setting("tokenizer"), said)


def check_family(start: Model, family: str) -> None:
    """Weights fit a model of their own family, or the body of a BERT another head."""
    kind = family_of(family).model
    if type(start) is not kind and not fits_head(start, kind):
        theirs = describe(start)["model_type"]
        heads = [name for name, known in ENCODERS.items() if fits_head(start, known.model) and name in TASKS]
        rule = f"they fit a model with a BERT inside: say train {' or '.join(heads)}" if heads else ""
        wanted = "a model with a BERT inside" if family in ENCODERS else f"those of a {family}"
        rule = rule or f"must be {wanted}; what they fit is {TASKS[theirs].command.format(family=theirs)}"
        raise ConfigError(f"train: a {family} cannot begin with the weights of a {theirs} ({rule})")


def embed_words(model: Model, tokenizer: Tokenizer, path: str | Path) -> int:
    """Let the tokens of a new BERT that are words begin with vectors of these words; returns how many there are.

    Vectors of a run of word2vec or of a text file know already which words are alike, which a BERT is slow to find out.
    They are shifted to a mean of 0 and scaled to the spread of the rows that they replace.
    """
    body, name = body_of(model), "embeddings.word_embeddings.weight"
    if body is None:
        rule = "must be left out: only a BERT takes them"
        raise ConfigError("train: ", Setting("init_embeddings"), f" for {kind_of(model)} ({rule})")
    words, vectors = load_vectors(path)
    state = body.state()
    rows = np.array(state[name])
    if vectors.shape[1] != rows.shape[1]:
        rule = f"must be equal: train word2vec with --dim {rows.shape[1]}"
        raise ConfigError(
            "train: ",
            Setting("init_embeddings"),
            f" {path} has vectors of {vectors.shape[1]} numbers, the embeddings {rows.shape[1]} ({rule})",
        )
    encoded = [tokenizer.encode(word) for word in words]
    known: dict[int, int] = {}
    for place, ids in enumerate(encoded):  # of "the" and "The" the first, which is the more frequent one
        if len(ids) == 1 and int(ids[0]) not in tokenizer.special_ids.values():
            known.setdefault(int(ids[0]), place)
    if not known:
        raise DataError(f"{path}: none of {len(words):,} words is a token (must be vectors of such words)")
    found = vectors[list(known.values())]
    rows[list(known)] = (found - found.mean(axis=0)) * (rows.std() / max(float(found.std()), 1e-12))
    body.load(state | {name: rows})
    return len(known)


def check_vectors(vectors: object) -> None:
    """A model to begin with has embeddings already."""
    if vectors is not None:
        rule = "must be left out with init: that model has trained embeddings already"
        raise ConfigError("train: ", Setting("init_embeddings"), f" is {vectors} ({rule})")
