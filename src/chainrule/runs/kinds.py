"""What a run is of, models of text or word vectors, and who takes which."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from chainrule.errors import CheckpointError
from chainrule.io.hf.architectures import family_name
from chainrule.models.registry import KNOWN
from chainrule.runs import checkpoint
from chainrule.runs.checkpoint import Checkpoint


class Kind(NamedTuple):
    """Runs that the same commands take."""

    what: str
    types: tuple[str, ...]
    """The model_type of their checkpoints."""
    used_by: str
    trained_by: str


MODEL = Kind("a model of text", tuple(KNOWN), "sample", "train {}")
WORD_VECTORS = Kind("word vectors", ("skip-gram", "cbow"), "vectors", "train word2vec")


def load(path: str | Path, wanted: Kind) -> Checkpoint:
    """The checkpoint at `path`, or the newest of the run there; one of the other kind is refused."""
    saved = checkpoint.load(Path(path))
    found = family_name(saved.config)
    for kind in (MODEL, WORD_VECTORS):
        if kind != wanted and found in kind.types:
            raise CheckpointError(
                f"{path}: holds {kind.what} ({found}), not {wanted.what} (must be used with "
                f"chainrule {kind.used_by}, or trained on with chainrule {kind.trained_by.format(found)} --resume)"
            )
    return saved
