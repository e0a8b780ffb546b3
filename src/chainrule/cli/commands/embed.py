"""`chainrule embed`"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import chainrule as cr
from chainrule.cli.args.documents import TextColumns, texts_in
from chainrule.cli.args.options import Argument
from chainrule.cli.args.outputs import replaced
from chainrule.cli.render.progress import Progress
from chainrule.columns import Columns
from chainrule.errors import ConfigError, DataError
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.generate.embedding import Vectors

SHOWN = 100  # characters of a text that a line shows


@dataclass(frozen=True)
class Command:
    """Turn texts into vectors: one for each line of a file, or each row of a table.

    The model is a BERT of any kind, such as a directory of sentence-transformers. Vectors are written as .npy, float32
    (texts, width); without --out the nearest others of each text are printed, with their cosines.

    Example: chainrule embed models/all-MiniLM-L6-v2 news.csv --text-column title,body --out news.npy
    """

    model: Annotated[Path, Argument("MODEL")]
    """A directory that `chainrule import` takes, a run, or one of its checkpoints."""
    file: Annotated[str, Argument("FILE")]
    """A text per line; or a .jsonl, .csv, .tsv or .parquet with a text per row; - for standard input."""
    out: Annotated[Path | None, replaced(".npy")] = None
    """File to write, .npy."""
    columns: TextColumns = field(default_factory=Columns)
    pooling: Literal["mean", "cls", "max"] | None = None
    """What is made of the rows of the tokens: their mean, the first, or the maximum. Default: as the model says, else
    mean."""
    normalize: bool | None = None
    """Vectors of length 1; --no-normalize leaves them as they are. Default: as the model says, else length 1."""
    batch_size: int = 32
    """Texts that are read at a time."""
    n: int = 3
    """Without --out: how many nearest texts to show for each text."""
    json: bool = False
    """Print one JSON object; without --out a line for each text."""

    def run(self) -> None:
        Check("embed", self).at_least(1, "batch_size", "n")
        if self.out is not None and self.out.suffix != ".npy":
            raise ConfigError.of("embed", {"out": self.out}, "must end in .npy")
        texts = texts_in(self.file, self.columns)
        if self.out is None and len(texts) < 2:
            raise DataError(
                f"{self.file}: holds one text (must be two or more to be compared; --out writes its vector)"
            )
        with Progress("reading the model"):
            model, tokenizer = cr.runs.load(self.model)
        with Progress("embed") as progress:
            vectors = cr.generate.embed(
                model,
                tokenizer,
                texts,
                pooling=self.pooling,
                normalize=self.normalize,
                batch_size=self.batch_size,
                tell=lambda done: progress.say(f"{done:,} of {len(texts):,} texts"),
            )
        if self.out is not None:
            self._write(self.out, vectors)
        else:
            self._show(texts, vectors)

    def _write(self, out: Path, vectors: Vectors) -> None:
        import numpy as np

        from chainrule.files import new_file

        with new_file(out, replace=True) as file:
            np.save(file, vectors)
        N, C = vectors.shape
        said = {"out": str(out), "texts": N, "width": C}
        print(json.dumps(said) if self.json else f"{N:,} vectors of {C} numbers in {out}")

    def _show(self, texts: list[str], vectors: Vectors) -> None:
        from chainrule.tasks.answer_options import shorten

        with Progress("comparing"):
            places, cosines = cr.generate.nearest(vectors, self.n)
        for i, text in enumerate(texts):
            found = [(texts[j], float(c)) for j, c in zip(places[i], cosines[i], strict=True)]
            if self.json:
                neighbors = [{"text": other, "cosine": cosine} for other, cosine in found]
                print(json.dumps({"text": text, "neighbors": neighbors}, ensure_ascii=False))
                continue
            print(shorten(text, SHOWN))
            for other, cosine in found:
                print(f"  {cosine:6.3f}  {shorten(other, SHOWN)}")
