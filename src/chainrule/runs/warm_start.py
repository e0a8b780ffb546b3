"""Warm start: a run begins with the weights of another model, or with its body and a new head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.errors import ConfigError, DataError, Setting
from chainrule.models import Model, describe, fine_tune, n_params
from chainrule.models import family as family_of
from chainrule.models.bert.heads import body_of, fits_head
from chainrule.models.registry import ENCODERS
from chainrule.runs.load import is_tokenizer, load, load_vectors
from chainrule.tasks.registry import TASKS
from chainrule.text import Tokenizer

HEAD = ("classes", "labels")  # what the head of a classifier follows from

# Fields of a model's config that say how it learns, not what it computes once it has learned.
LEARNING = {"dropout", "label_smoothing", "scheduled_sampling"}


def load_start(path: str | Path, tokenizer: Tokenizer | str | None) -> tuple[Model, Tokenizer]:
    """The model to begin with and its tokenizer; no other one fits its weights."""
    start, own = load(path)
    if not is_tokenizer(tokenizer, own):
        raise own_tokenizer(tokenizer, path)
    return start, own


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
        rule = f"must be one with a BERT inside: say train {' or '.join(heads)}" if heads else ""
        rule = rule or f"must be one itself: say train {theirs}"
        raise ConfigError(f"train: a {family} cannot begin with the weights of a {theirs} ({rule})")


def begun_with(start: Model, family: str, sizes: Mapping[str, Any]) -> Model:
    """A model of a family with the weights of `start`: the same one, or its body with a new head.

    What only says how it learns may differ, and the context where no weight belongs to a position. All else must be
    the same: the weights would not fit, or would fit and mean something else, as with another number of heads.
    """
    start, sizes = _with_labels(start, sizes), _with_rows(start, sizes)
    kind = family_of(family).model
    # A new head reads the body in its own way.
    free = LEARNING if type(start) is kind else LEARNING | {"pooling"}
    for name, value in sizes.items():
        there = getattr(start.config, name, value)
        if there != value and name not in free and not _context_alone(start, name, value):
            said = f" is {value}, in the model to begin with {there} (must be the same)"
            raise ConfigError("train: ", Setting(name), said)
    if type(start) is not kind:
        return fine_tune(start, kind, **sizes)
    model = kind(replace(start.config, **sizes))
    model.load(start.state())
    return model


def embed_words(model: Model, tokenizer: Tokenizer, path: str | Path) -> int:
    """Let the tokens of a new BERT that are words begin with vectors of these words; returns how many there are.

    Vectors of a run of word2vec or of a text file know already which words are alike, which a BERT is slow to find out.
    They are shifted to a mean of 0 and scaled to the spread of the rows that they replace.
    """
    body, name = body_of(model), "embeddings.word_embeddings.weight"
    if body is None:
        rule = "must be left out: only a BERT takes them"
        raise ConfigError("train: ", Setting("init_embeddings"), f" for a {type(model).__name__} ({rule})")
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


def _with_rows(start: Model, sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes with the vocabulary of the model, which may have more rows than there are tokens."""
    rows, tokens = getattr(start.config, "vocab_size", 0), sizes.get("vocab_size", 0)
    return dict(sizes) | ({"vocab_size": rows} if rows > tokens > 0 else {})


def check_frozen(config: Any, start: Model | None) -> None:
    """What does not learn must have learned before."""
    freeze = getattr(config, "freeze", "none")
    if start is None and freeze != "none":
        raise ConfigError.of(
            "train", {"freeze": freeze}, "must be none without init: a new body knows nothing"
        )


def check_vectors(vectors: object) -> None:
    """A model to begin with has embeddings already."""
    if vectors is not None:
        rule = "must be left out with init, whose embeddings have learned"
        raise ConfigError("train: ", Setting("init_embeddings"), f" is {vectors} ({rule})")


def freeze_body(model: Model) -> None:
    """Let the head learn alone: a classifier on what a trained body says of a text."""
    body = body_of(model)
    if body is None or body is model:
        rule = f"must be none for a {type(model).__name__}: only a head on a BERT has a body"
        raise ConfigError.of("train", {"freeze": "body"}, rule)
    body.embeddings.freeze()
    body.encoder.freeze()


def _context_alone(model: Model, name: str, value: Any) -> bool:
    """It is the context that differs, and the model has as many weights with the other one."""
    there = describe(model)
    return name == "block_size" and n_params(there | {name: value}) == n_params(there)


def _with_labels(start: Model, sizes: Mapping[str, Any]) -> Model:
    """The model itself if its head tells these labels apart, else its body with a new head for them."""
    head = {name: sizes[name] for name in HEAD if name in sizes and hasattr(start.config, name)}
    same = all(getattr(start.config, name) == value for name, value in head.items())
    return start if same else fine_tune(start, type(start), **head)
