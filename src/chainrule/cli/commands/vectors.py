"""`chainrule vectors`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.render.progress import Progress
from chainrule.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from chainrule.inspect.embeddings import WordVectors


@dataclass(frozen=True)
class Command(Reporting):
    """Show neighbors and analogies of word vectors, and how well they agree with human judgments.

    Example: chainrule vectors runs/word2vec module string --analogy lists list string
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run of word2vec, or a text file of vectors in word2vec's format."""
    words: Annotated[tuple[str, ...], Argument("WORD")] = ()
    """Words whose neighbors to show; if there are several, also the cosines between them."""
    analogy: tuple[str, str, str] | None = None
    """A B C: the words nearest to A - B + C, such as king man woman."""
    eval: Path | None = None
    """Evaluate on this file: pairs with scores (WordSim-353), or analogies in sections (questions-words.txt)."""
    n: int = 10
    """Words to show."""

    def run(self) -> None:
        if not (self.words or self.analogy or self.eval):
            raise ConfigError("vectors: nothing asked (give a word, --analogy A B C or --eval FILE)")
        from chainrule.inspect.embeddings import WordVectors

        with Progress("reading and comparing"):
            report = self._report(WordVectors(*cr.runs.load_vectors(self.run_folder)))
        if self.json:
            print(json.dumps(report))
        else:
            self._show(report)

    def _report(self, vectors: WordVectors) -> dict[str, Any]:
        report: dict[str, Any] = {"neighbours": {w: vectors.neighbors(w, self.n) for w in self.words}}
        if len(self.words) > 1:
            report["cosines"] = vectors.table(self.words).tolist()
        if self.analogy:
            report["analogy"] = vectors.analogy(*self.analogy, n=self.n)
        if self.eval:
            report["evaluation"] = evaluate(vectors, self.eval)
        return report

    def _show(self, report: dict[str, Any]) -> None:
        for word, found in report["neighbours"].items():
            show_words(word, found)
        if "cosines" in report:
            width = max(map(len, self.words))
            print("\ncosines")
            for word, row in zip(self.words, report["cosines"], strict=True):
                print(f"  {word:<{width}}  {' '.join(f'{cosine:6.3f}' for cosine in row)}")
        if self.analogy:
            a, b, c = self.analogy
            show_words(f"{a} - {b} + {c}", report["analogy"])
        if self.eval:
            show_evaluation(report["evaluation"])


def evaluate(vectors: WordVectors, path: Path) -> dict[str, Any]:
    """The report for a file of pairs or of analogies, whichever it is."""
    from chainrule.inspect.embeddings import analogy_report, similarity_report

    try:
        return similarity_report(vectors, cr.io.vectors.read_pairs(path))
    except FormatError as error:
        pairs_error = error
    try:
        return analogy_report(vectors, cr.io.vectors.read_analogies(path))
    except FormatError:
        raise pairs_error from None


def show_words(title: str, found: list[tuple[str, float]]) -> None:
    print(title)
    for word, cosine in found:
        print(f"  {cosine:6.3f}  {word}")


def show_evaluation(report: dict[str, Any]) -> None:
    missing = f"{report['missing']} with unknown words"
    if "spearman" in report:
        print(f"Spearman {report['spearman']:.4f} on {report['pairs']} pairs, {missing}")
        return
    print(f"{report['accuracy']:.1%} of {report['questions']} analogies, {missing}")
    for name, section in report["sections"].items():
        accuracy = "-" if section["accuracy"] is None else f"{section['accuracy']:.1%}"
        print(f"  {accuracy:>6} of {section['questions']:>5}  {name}")
