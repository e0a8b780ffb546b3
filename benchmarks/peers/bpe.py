"""Byte-level BPE next to tiktoken and tokenizers: training and encoding, in turn, the best of some rounds.

    CHAINRULE_DATA=... python -m benchmarks.peers.bpe            needs tiktoken and tokenizers
    python -m benchmarks.peers.bpe book.txt --train-mb 20 --rounds 1

Encoding uses GPT-2's vocabulary if $CHAINRULE_DATA holds it, otherwise one that is trained first. Training needs more
text than there is: further copies have their letters rotated, which gives other words with the same frequencies.
Prints a table in Markdown; ratios above 1 mean that Chainrule is faster.
"""

from __future__ import annotations

import os

os.environ["RAYON_NUM_THREADS"] = "2"  # before the peers are loaded: tokenizers trains on this many threads

import argparse
import json
import string
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import tiktoken
import tokenizers
from tokenizers import pre_tokenizers, trainers

from chainrule import native
from chainrule.data import corpora
from chainrule.io import load_tokenizer
from chainrule.io.hf.tokenizers import bpe as bpe_json
from chainrule.text import BPETokenizer

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
DOCUMENT = 1 << 20  # characters
Run = Callable[[], object]


def texts(files: list[str]) -> list[str]:
    """Documents of about a megabyte."""
    data = os.environ.get("CHAINRULE_DATA")
    paths = [Path(file) for file in files] or sorted(Path(data, "text").glob("*.txt") if data else [])
    whole = [path.read_text(encoding="utf-8", errors="replace") for path in paths] or [
        corpora.load("stdlib").text
    ]
    return [text[i : i + DOCUMENT] for text in whole for i in range(0, len(text), DOCUMENT)]


def rotated(documents: list[str], megabytes: int) -> Iterator[str]:
    letters, size, copy = string.ascii_lowercase, 0, 0
    while True:
        table = str.maketrans(letters, letters[copy:] + letters[:copy])
        for document in documents:
            if size >= megabytes * 1e6:
                return
            yield document.translate(table)
            size += len(document)
        copy = (copy + 3) % 26


def vocabulary(documents: list[str]) -> BPETokenizer:
    files = Path(os.environ.get("CHAINRULE_DATA", ""), "vocab", "gpt2")
    tokenizer = (
        load_tokenizer(files) if files.is_dir() else BPETokenizer.train(documents, 32_000, pattern="gpt2")
    )
    assert isinstance(tokenizer, BPETokenizer)
    return tokenizer


def seconds(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """The best time of each, all of them in turn in every round."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def encoders(documents: list[str], ours: BPETokenizer) -> dict[str, Run]:
    theirs = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=ours.ids, special_tokens={})
    hugging_face = tokenizers.Tokenizer.from_str(json.dumps(bpe_json.write(ours)))

    def chainrule(threads: int) -> Run:
        def run() -> None:
            native.set_threads(threads)
            for document in documents:
                ours.encode(document)

        return run

    return {
        "chainrule, 1 thread": chainrule(1),
        "tiktoken, 1 thread": lambda: [theirs.encode_ordinary(document) for document in documents],
        "tokenizers, 1 thread": lambda: [hugging_face.encode(document) for document in documents],
        "chainrule, 2 threads": chainrule(2),
        "tiktoken, 2 threads": lambda: theirs.encode_ordinary_batch(documents, num_threads=2),
        "tokenizers, 2 threads": lambda: hugging_face.encode_batch(documents),
    }


def trainers_of(documents: list[str], size: int) -> dict[str, Run]:
    def chainrule(threads: int) -> Run:
        def run() -> None:
            native.set_threads(threads)
            BPETokenizer.train(documents, size, pattern="gpt2")

        return run

    def hugging_face() -> None:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(documents, trainer)

    return {
        "chainrule, 2 threads": chainrule(2),
        "tokenizers, 2 threads": hugging_face,
        "chainrule, 1 thread": chainrule(1),
    }


def table(title: str, bytes: int, times: dict[str, float]) -> None:
    print(f"\n{title}\n\n| | s | MB/s | chainrule is faster by |\n|---|---:|---:|---:|")
    for name, time_ in times.items():
        peer, _, threads = name.partition(", ")
        ours = times.get(f"chainrule, {threads}", time_)
        ratio = "" if peer == "chainrule" else f"{time_ / ours:.1f}×"
        print(f"| {name} | {time_:.3f} | {bytes / time_ / 1e6:.1f} | {ratio} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="*", help="texts; default: those of $CHAINRULE_DATA, or Python's library"
    )
    parser.add_argument("--train-mb", type=int, default=100)
    parser.add_argument("--vocab", type=int, default=32_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    documents = texts(options.files)
    ours = vocabulary(documents)
    size = sum(len(document.encode()) for document in documents)
    table(f"Encoding {size / 1e6:.1f} MB with {ours.vocab_size} tokens", size,
          seconds(encoders(documents, ours), options.rounds))  # fmt: skip
    for unit in ("a", "\n"):
        title = f"A million times {unit!r}"
        table(title, 10**6, seconds(encoders([unit * 10**6], ours), options.rounds))
    more = list(rotated(documents, options.train_mb))
    size = sum(len(document.encode()) for document in more)
    table(f"Training {options.vocab} tokens on {size / 1e6:.1f} MB", size,
          seconds(trainers_of(more, options.vocab), 1))  # fmt: skip


if __name__ == "__main__":
    main()
