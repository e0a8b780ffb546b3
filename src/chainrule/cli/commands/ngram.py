"""`chainrule ngram`"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

import chainrule as cr
from chainrule.cli.args.documents import TextColumns, say_reading
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import Folder
from chainrule.cli.args.text import byte_count
from chainrule.cli.render.progress import Progress
from chainrule.columns import Columns
from chainrule.errors import ConfigError
from chainrule.files import plain
from chainrule.types import Ids
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.models.ngram.smoothing import Smoothing

MOST_ORDER = 100  # no text repeats itself for longer in a way that counting could use


@dataclass(frozen=True)
class Command(Reporting):
    """Count which character follows which in a text, and generate more of the same.

    A file is a list of names, one document per line, if no line is longer than 100 characters and fewer than one line
    in ten has a space in it; any other file is one long text.

    Example: chainrule ngram names.txt --order 4 --method kneser-ney --plot figures
    """

    data: Annotated[str, Argument("DATA")] = "identifiers"
    """A text file, a table with a column of texts, or a corpus that `chainrule data list` knows."""
    columns: TextColumns = field(default_factory=Columns)
    order: int = 2
    """n: a character is predicted from the n - 1 before it."""
    smoothing: float | None = None
    """Added to every count (0: none). Default: 1 for --method add, else 0."""
    method: Literal["mle", "add", "good-turing", "kneser-ney"] | None = None
    """How counts become probabilities. Default: add if --smoothing is above 0, else mle."""
    lines: bool = False
    """One document per line, whatever the file looks like."""
    text: bool = False
    """One long text, whatever the file looks like."""
    paired: bool = False
    """A start token and an end token, instead of one token for both."""
    samples: int = 10
    """How many documents to generate."""
    seed: int = 0
    """The same seed writes the same documents."""
    plot: Annotated[Path | None, Folder] = None
    """Directory for a heat map and a transition graph (needs matplotlib)."""

    def run(self) -> None:
        name, smoother = self._smoother()
        if self.lines and self.text:
            raise ConfigError("ngram: --lines and --text (must be at most one of them)")
        as_lines = True if self.lines else False if self.text else None
        check = Check("ngram", self)
        check.between(1, MOST_ORDER, "order")
        check.at_least(0, "samples")
        with Progress("reading and counting"):
            corpus = cr.data.load(self.data, self.columns)
            say_reading(corpus.reading)
            source = Source.of(corpus.text, as_lines, paired=self.paired)
            model = source.fit(source.documents, self.order, smoother)
            report: dict[str, Any] = {"corpus": self.data, "documents": len(source.documents)}
            report |= {"order": self.order, "method": name} | facts(source, model)
            report["held_out_nll"] = plain(held_out(source, self.order, smoother))
            report["samples"] = source.write(model, self.samples, self.seed)
            if self.plot:
                report["plots"] = draw(source, model, self.plot)
        print(json.dumps(report, ensure_ascii=False) if self.json else told(report))

    def _smoother(self) -> tuple[str, Smoothing]:
        name = self.method or ("add" if self.smoothing else "mle")
        Check("ngram", self).at_least(0, "smoothing")
        if self.smoothing and name != "add":
            raise ConfigError.of("ngram", {"smoothing": self.smoothing, "method": name}, "only add has one")
        if name == "good-turing":
            return name, cr.models.GoodTuring()
        if name == "kneser-ney":
            return name, cr.models.KneserNey()
        default = 1.0 if name == "add" else 0.0
        return name, cr.models.Additive(default if self.smoothing is None else self.smoothing)


def is_list(text: str) -> bool:
    """Does a text look like a list of names, one per line?"""
    lines = text.splitlines()
    spaced = sum(" " in line.strip() for line in lines)
    return len(lines) > 1 and max(map(len, lines)) <= 100 and spaced < 0.1 * len(lines)


@dataclass(frozen=True)
class Source:
    """Documents as token ids, and what the tokens are."""

    documents: list[Ids]
    tokens: list[str]  # what each id stands for
    ends: cr.models.Terminals
    bytes: int  # of the text in UTF-8

    @classmethod
    def of(cls, text: str, lines: bool | None, *, paired: bool = False) -> Source:
        """`lines` None decides by the look of the text."""
        size = byte_count(text)
        if not (is_list(text) if lines is None else lines):
            tokenizer = cr.text.CharTokenizer.train(text)
            ends = cr.models.Terminals(tokenizer.vocab_size, None)
            return cls([tokenizer.encode(text)], list(tokenizer.characters), ends, size)
        words = [line.strip() for line in text.splitlines() if line.strip()]
        tokenizer = cr.text.CharTokenizer.train("".join(words))
        inner = list(tokenizer.characters)
        tokens = ["<S>", *inner, "<E>"] if paired else [".", *inner]
        ends = cr.models.Terminals(0, len(tokens) - 1 if paired else 0)
        return cls([tokenizer.encode(word) + 1 for word in words], tokens, ends, size)

    def fit(self, documents: Sequence[Ids], order: int, smoother: Smoothing) -> cr.models.NGram:
        return cr.models.NGram.fit(
            documents, order=order, vocab_size=len(self.tokens), ends=self.ends, smoothing=smoother
        )

    def write(self, model: cr.models.NGram, n: int, seed: int) -> list[str]:
        limit = 1000 if self.ends.end is not None else 200
        rows = model.sample(n, seed=seed, limit=limit) if n else []
        return ["".join(self.tokens[i] for i in row) for row in rows]


def facts(source: Source, model: cr.models.NGram) -> dict[str, Any]:
    """What a count model knows; losses in nats per transition over the whole file."""
    nll, transitions = model.nll(), int(model.levels[0].counts.sum())
    found: dict[str, Any] = {
        "transitions": transitions, "vocab_size": model.vocab_size, "stored": model.stored,
        "table_size": model.table_size, "nll": nll, "uniform_nll": math.log(model.vocab_size),
        "learned": model.learned(), "perplexity": math.exp(nll), "bits": nll / math.log(2),
        "bits_per_byte": nll * transitions / math.log(2) / source.bytes,
    }  # fmt: skip
    if model.order < 2:
        return found
    matrix = model.adjacency()
    start, end = source.ends
    if end is not None:
        found["starts"] = ranking(matrix[start], source.tokens)
        found["ends"] = ranking(matrix[:, end], source.tokens)
    return found | {"doubles": ranking(np.diag(matrix), source.tokens)}


def ranking(counts: Ids, tokens: list[str]) -> list[tuple[str, int]]:
    """The five tokens with the largest counts."""
    first = np.argsort(-counts, kind="stable")[:5]
    return [(tokens[i], int(counts[i])) for i in first if counts[i]]


def held_out(source: Source, order: int, smoother: Smoothing) -> float:
    """The loss on a tenth of the documents, drawn at random, or of the text, its end; counted is the rest."""
    if source.ends.end is None:
        train, new = ([part] for part in cr.data.split(source.documents[0]))
    else:
        shuffled = cr.random.generator("held out", seed=0).permutation(len(source.documents))
        cut = max(1, len(shuffled) // 10)
        train, new = ([source.documents[i] for i in part] for part in (shuffled[cut:], shuffled[:cut]))
    if not sum(map(len, train)) or not sum(map(len, new)):
        return math.inf  # a single document, or nearly none
    return source.fit(train, order, smoother).nll(new)


def draw(source: Source, model: cr.models.NGram, folder: Path) -> list[str]:
    from chainrule.cli.render.plots import ngram as plots
    from chainrule.cli.render.plots.canvas import save

    matrix = model.adjacency()
    heat_map, graph = folder / "heat-map.png", folder / "graph.png"
    save(plots.heat_map(matrix, source.tokens), heat_map)
    save(plots.transition_graph(plots.graph_of(matrix, source.tokens)), graph)
    return [str(heat_map), str(graph)]


def told(r: dict[str, Any]) -> str:
    """A report for people."""
    nll = r["held_out_nll"]
    new = "infinite: a tenth has new grams" if nll is None else f"{nll:.4f} nats on a tenth"
    what = "one text" if r["documents"] == 1 else f"{r['documents']:,} documents"
    rows = [
        f"{r['corpus']}: {what}, {r['transitions']:,} transitions, {r['vocab_size']} tokens",
        f"order {r['order']}, {r['method']}: {r['stored']:,} of {r['table_size']:,} possible grams occur",
        f"nll        {r['nll']:.6f} nats = {r['bits']:.4f} bits per transition, "
        f"{r['bits_per_byte']:.4f} bits per byte",
        f"perplexity {r['perplexity']:.2f}; a guess has {r['vocab_size']} (nll {r['uniform_nll']:.4f})",
        f"learned    {'yes' if r['learned'] else 'nothing: no better than a guess'}",
        f"held out   {new}, counting the rest",
    ]
    for key in ("starts", "ends", "doubles"):
        if r.get(key):
            rows.append(f"{key:<10} {', '.join(f'{t!r} {n:,}' for t, n in r[key])}")
    for file in r.get("plots", []):
        rows.append(f"figure     {file}")
    return "\n".join([*rows, "", *r["samples"]])
