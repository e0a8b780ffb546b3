"""Wrong command lines: words of right ones left out, repeated, exchanged and misspelled; values made absurd."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from rich.console import Console
from tests.runs.helpers import new_run
from tests.runs.survivors import write_data

from benchmarks.harness import progress
from benchmarks.reliability.tries import Ended, Tally, attempt, command

EVERY = 100
SMALL = "--max-steps 2 --n-layer 1 --n-head 2 --n-embd 8 --block-size 8 --batch-size 2"
RIGHT = [
    line.split()
    for line in (
        f"train gpt text.txt {SMALL} --out out",
        f"train llama text.txt {SMALL} --norm-eps 1e-5 --lr 1e-3 --out out",
        f"train bert text.txt {SMALL} --dropout 0.1 --seed 3 --out out",
        "train gru text.txt --max-steps 2 --n-embd 8 --n-hidden 8 --out out",
        "train bow-classifier labels.jsonl --max-steps 2 --out out",
        "train word2vec text.txt --epochs 1 --dim 4 --window 2 --negatives 2 --out out",
        "train gpt --resume run --max-steps 2",
        "sample run --prompt The --max-new-tokens 5 --temperature 0.5 --top-k 3 --seed 1",
        "eval run text.txt --json",
        "tokenize train text.txt --kind bpe --vocab-size 280 --special-tokens <a> <b> --out out.json",
        "tokenize encode text.txt --json",
        "data stats text.txt --json",
        "data build text.txt --by paragraph --out out --validation 0.3",
        "runs list . --json",
        "runs compare run run",
        "export run --format gguf --out out.gguf",
        "count gpt --n-layer 2 --n-embd 8",
        "ngram text.txt --order 2 --samples 2",
        "diagnose run --json",
        "replay run --step 1",
        "doctor run",
        f"train gpt text.txt --tokenizer bpe:300 {SMALL} --out out",
        f"train seq2seq pairs.jsonl {SMALL} --tokenizer char --out out",
        "tokenize show text.txt --trace --merges 2 --words 3",
        "tokenize show text.txt --length 20",
        "tokenize decode text.txt --json",
        "chat run --temperature 0.5 --max-new-tokens 3",
        "import run --out out",
        "embed run text.txt --n 2",
        "vectors run the --n 3 --analogy a b c",
        "runs report run --out out.html",
        "data dedup text.txt --near 0.9 --out out.jsonl",
        "figures histograms --out out",
        "ladder text.txt --steps 1 --order 2 --json",
    )
]
CAN_FAIL = ("train",)  # commands whose work can fail after a right call
ABSURD = (
    "", "-1", "0", "99999999999999999999", "1e400", "nan", "inf", "-inf", "x", "--", "-", "1.5", "0x10", "None", "[]",
    "/dev/null", "/dev", ".", "nope", "pipe", "a=b", "é", "\ud800", "true", "1e-320", "'", "--json",
    "--nope", "-x", "%s", "--epochs", "--learning-rate", "--model", "finetune", "serve", "help", "bpe:3",
    "text.txt", "run",
)  # fmt: skip


def campaign(count: int, seed: int, folder: Path) -> Tally:
    """`count` command lines, each near to a right one."""
    tally, draw = Tally("wrong command lines"), random.Random(seed)
    scratch, place = folder / "scratch", folder / "here"
    for made in (scratch, place):
        made.mkdir()
    write_data(place)
    new_run(place, max_steps=1).train(Console(quiet=True))
    os.mkfifo(place / "pipe")
    before = {path.name for path in place.iterdir()}
    while tally.tries < count:
        words = _wrong(draw)
        ended = attempt(command(words), place, scratch)
        tally.add(" ".join(map(repr, words)), ended, _misjudged(words, ended))
        for path in place.iterdir():
            if path.name not in before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if tally.tries % EVERY == 0:
            progress(f"{tally.tries} command lines, {len(tally.problems)} problems")
    return tally


def _misjudged(words: list[str], ended: Ended) -> str:
    """Wrong use is exit code 2; 1 is for work that failed, as a training that diverges does."""
    if ended.code != 1 or words[0] in CAN_FAIL:
        return ""
    return f"exit code 1: {ended.err.strip()}"


def _wrong(draw: random.Random) -> list[str]:
    """A right command with one to three mistakes."""
    words = list(draw.choice(RIGHT))
    for _ in range(draw.choice((1, 1, 2, 3))):
        place = draw.randrange(len(words))
        match draw.randrange(7):
            case 0:
                del words[place]
            case 1:
                words.insert(place, words[place])
            case 2:
                words.insert(place, draw.choice(ABSURD))
            case 3:
                other = draw.randrange(len(words))
                words[place], words[other] = words[other], words[place]
            case 4 if words[place]:
                cut = draw.randrange(len(words[place]))
                words[place] = words[place][:cut] + words[place][cut + 1 :]
            case _:
                words[place] = draw.choice(ABSURD)
        words = words or [""]
    return words
