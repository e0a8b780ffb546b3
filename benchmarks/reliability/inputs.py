"""Files of other programs and of users, damaged: refused in one line, within limits on memory and time."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
from tests.io import sentencepiece_files
from tests.runs.helpers import new_run
from tests.runs.survivors import TEXT, write_data

from benchmarks.harness import progress
from benchmarks.reliability.mutate import damaged, edited, flip_or_cut
from benchmarks.reliability.tries import Tally, attempt, command

EVERY = 250
TINY = ("--max-steps=1", "--n-layer=1", "--n-head=2", "--n-embd=8", "--block-size=8", "--batch-size=2")


def campaign(count: int, seed: int, folder: Path) -> Tally:
    """`count` damaged files, of every kind in turn."""
    tally, draw = Tally("fuzzed input files"), random.Random(seed)
    whole, tried, scratch = (folder / name for name in ("whole", "tried", "scratch"))
    for made in (whole, scratch):
        made.mkdir()
    cases = _cases(whole)
    for words in (words for _, several in cases for words in several):  # each works on a whole file
        shutil.copytree(whole, tried)
        ended = attempt(command(words), tried, scratch)
        shutil.rmtree(tried)
        if ended.code:
            tally.problems.append(
                f"{' '.join(words)} on a whole file: {ended.code} {ended.err.strip()[-300:]}"
            )
    shutil.copytree(whole, tried)
    while tally.tries < count:
        name, several = cases[tally.tries % len(cases)]
        words, path = draw.choice(several), tried / name
        as_json = path.suffix in (".json", ".jsonl") and draw.random() < 0.6
        damage = edited if as_json else draw.choice((flip_or_cut, damaged, damaged))
        before = path.read_bytes()
        path.write_bytes(damage(before, draw))
        ended = attempt(command(words), tried, scratch)
        tally.add(f"{' '.join(words)} after {damage.__name__} of {name}", ended)
        if ended.problem:  # keep what shows it
            kept = folder / "kept" / f"{tally.tries}-{path.name}"
            kept.parent.mkdir(exist_ok=True)
            shutil.copy(path, kept)
        path.write_bytes(before)
        for made in ("out", "runs"):
            shutil.rmtree(tried / made, ignore_errors=True)
        if tally.tries % EVERY == 0:
            progress(f"{tally.tries} fuzzed files, {len(tally.problems)} problems")
    return tally


def _cases(folder: Path) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Whole files, each with the commands that read it."""
    from chainrule.cli import main

    write_data(folder)
    with open("/dev/null", "w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
        text = str(folder / "text.txt")
        new_run(folder, "run", max_steps=1).train()
        for kind, name in (("bpe", "bpe.json"), ("wordpiece", "wordpiece.json"), ("unigram", "unigram.json")):
            main(
                [
                    "tokenize",
                    "train",
                    text,
                    "--kind",
                    kind,
                    "--vocab-size",
                    "400",
                    "--out",
                    str(folder / name),
                ]
            )
        for family in ("gpt", "llama", "neox"):
            run = str(folder / f"{family}-run")
            main(["train", family, text, *TINY, "--tokenizer", str(folder / "bpe.json"), "--out", run])
            main(["export", run, "--format", "gguf", "--out", str(folder / f"{family}-gguf")])
            if family != "neox":  # whose activation Hugging Face does not have
                main(["export", run, "--out", str(folder / f"{family}-hf")])
        main(
            [
                "data",
                "build",
                text,
                "--by",
                "paragraph",
                "--out",
                str(folder / "shards"),
                "--validation",
                "0.3",
            ]
        )
    _tables(folder)
    cases = _models() + _tokenizers(folder) + _data()
    for left in folder.glob("*-run"):
        shutil.rmtree(left)
    return cases


def _models() -> list[tuple[str, list[tuple[str, ...]]]]:
    cases: list[tuple[str, list[tuple[str, ...]]]] = []
    for family in ("gpt", "llama", "neox"):
        gguf, hf = f"{family}-gguf/model.gguf", f"{family}-hf"
        read = [("sample", gguf, "--max-new-tokens", "2"), ("import", gguf, "--out", "out")]
        cases += [(gguf, [*read, ("tokenize", "encode", "text.txt", "--vocab", gguf, "--json")])] * 2
        use = [("sample", hf, "--max-new-tokens", "2"), ("import", hf, "--out", "out")]
        names = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json")
        cases += [(f"{hf}/{name}", use) for name in names if family != "neox"]
    return cases


def _tokenizers(folder: Path) -> list[tuple[str, list[tuple[str, ...]]]]:
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(c, -float(i), 1) for i, c in enumerate(sorted({*"".join(TEXT.split())} | {"▁"}))]
    for name, kind in (("unigram.model", 1), ("bpe.model", 2)):
        (folder / name).write_bytes(sentencepiece_files.model(pieces, kind=kind))
    shutil.copy(folder / "gpt-hf/tokenizer.json", folder / "tokenizer.json")
    names = ("bpe.json", "wordpiece.json", "unigram.json", "tokenizer.json", "unigram.model", "bpe.model")
    return [(name, [("tokenize", "encode", "short.txt", "--vocab", name, "--json")]) for name in names]


def _data() -> list[tuple[str, list[tuple[str, ...]]]]:
    stats = ("data", "stats")
    bow = ("--max-steps", "1", "--eval-every", "1")
    cases = [
        (
            f"shards/{name}",
            [("train", "gpt", "shards", *TINY), ("train", "ngram", "shards", "--max-steps", "1")],
        )
        for name in ("train.npy", "train.documents.npy", "meta.json", "tokenizer.json", "validation.npy")
    ]
    for name in ("labels.jsonl", "labels.csv", "labels.tsv", "labels.parquet", "labels.jsonl.gz"):
        cases.append((name, [(*stats, name), ("train", "bow-classifier", name, *bow)]))
    cases.append(
        ("text.txt.gz", [(*stats, "text.txt.gz"), ("train", "ngram", "text.txt.gz", "--max-steps", "1")])
    )
    cases.append(("short.txt", [("tokenize", "encode", "short.txt", "--json"), (*stats, "short.txt")]))
    return cases


def _tables(folder: Path) -> None:
    """The same records in every format."""
    import pyarrow
    import pyarrow.parquet

    (folder / "short.txt").write_text(TEXT[:500], encoding="utf-8")
    lines = (folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()[:200]
    (folder / "labels.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = [json.loads(line) for line in lines]
    for name, comma in (("labels.csv", ","), ("labels.tsv", "\t")):
        plain = [row["text"].translate({44: 32, 34: 32, 9: 32}) for row in rows]
        cells = [f"{text}{comma}{row['label']}" for text, row in zip(plain, rows, strict=True)]
        cells.insert(0, f"text{comma}label")
        (folder / name).write_text("\n".join(cells) + "\n", encoding="utf-8")
    table = pyarrow.table({name: [row[name] for row in rows] for name in ("text", "label")})
    pyarrow.parquet.write_table(table, folder / "labels.parquet", compression="gzip")
    for name in ("labels.jsonl", "text.txt"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    assert np.load(folder / "shards/train.npy").size
