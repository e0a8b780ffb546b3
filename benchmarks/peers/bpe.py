"""Byte-level BPE beside tiktoken and tokenizers: training, and a first pass of encoding over fresh text.

    make bench ONLY=bpe

Every round of encoding has a new tokenizer on each side and a part of the text that no round before has read, so no
cache of words is warm. The vocabulary is GPT-2's if $CHAINRULE_DATA holds it, otherwise one trained on other text.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chainrule as cr
from benchmarks.harness import Measured, faster, in_turn, progress, timed
from benchmarks.peers.texts import data_folder, documents, n_bytes, rotated, whole_text
from benchmarks.report import Row, Table, bold

VOCABULARY = 32_000
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
Encode = Callable[[list[str]], object]


def measure(threads: int, quick: bool) -> Table:
    os.environ["RAYON_NUM_THREADS"] = str(threads)  # before tokenizers starts its threads
    table = Table(
        "Byte-level BPE",
        "Encoding: a first pass, each round with new tokenizers over a part of the text not read before, GPT-2's "
        "vocabulary; megabytes per second, median (maximum) of the rounds. Training: 32,000 tokens, seconds, median "
        "(minimum). Programs in turn.",
        ["work", "threads", "Chainrule", "peer", "", "ratio of medians"],
    )
    text = whole_text()
    encoding(table, text, threads, rounds=2 if quick else 5)
    training(table, text, threads, megabytes=4 if quick else 100, rounds=1 if quick else 3)
    return table


def encoding(table: Table, text: str, threads: int, rounds: int) -> None:
    parts = documents(text, 200_000)
    tokenizer = vocabulary(parts)
    for count in (1, threads):
        times: dict[str, list[float]] = {}
        for i in range(rounds):
            progress(f"encoding, {count} threads, round {i + 1} of {rounds}")
            fresh = parts[i::rounds]
            for name, encode in encoders(tokenizer, count).items():
                (ms,) = timed(lambda encode=encode, fresh=fresh: encode(fresh), 1)
                times.setdefault(name, []).append(ms / n_bytes(fresh) * 1e6)  # per megabyte
        mine, *peers = (Measured(name, ms) for name, ms in times.items())
        for peer in peers:
            ratio = bold(peer.median / mine.median)
            table.rows.append(("encoding", str(count), speeds(mine), peer.name, speeds(peer), ratio))
        best = faster(peers)
        table.headlines.append(
            Row(
                f"BPE, first pass of encoding, {count} thread{'s' * (count > 1)}",
                f"{1e3 / mine.median:.1f} MB/s",
                f"{best.name} {1e3 / best.median:.1f} MB/s",
                f"{best.median / mine.median:.1f}",
            )
        )


def speeds(measured: Measured) -> str:
    return f"{1e3 / measured.median:.1f} ({1e3 / measured.minimum:.1f}) MB/s"


def vocabulary(parts: list[str]) -> Any:
    files = data_folder("vocab", "gpt2")
    if files:
        return cr.io.load_tokenizer(files)
    return cr.text.BPETokenizer.train(list(rotated(parts, 10)), VOCABULARY, pattern="gpt2")


def encoders(tokenizer: Any, threads: int) -> dict[str, Encode]:
    """New tokenizers of the same vocabulary, with empty caches."""
    import tiktoken
    import tokenizers

    with tempfile.TemporaryDirectory() as folder:
        own, hugging_face = Path(folder, "own.json"), Path(folder, "hugging-face.json")
        cr.io.save_tokenizer(tokenizer, own)
        cr.io.save_tokenizer(tokenizer, hugging_face, hugging_face=True)
        ours = cr.io.load_tokenizer(own)
        fast = tokenizers.Tokenizer.from_file(str(hugging_face))
    tik = tiktoken.Encoding("gpt2", pat_str=GPT2, mergeable_ranks=tokenizer.ids, special_tokens={})
    cr.set_threads(threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"
    return {
        "Chainrule": lambda parts: [ours.encode(part) for part in parts],
        "tiktoken": lambda parts: tik.encode_ordinary_batch(parts, num_threads=threads),
        "tokenizers": lambda parts: fast.encode_batch_fast(parts, add_special_tokens=False),
    }


def training(table: Table, text: str, threads: int, megabytes: float, rounds: int) -> None:
    parts = list(rotated(documents(text, 1 << 20), megabytes))
    size = n_bytes(parts) / 1e6
    progress(f"training on {size:.0f} MB, {rounds} rounds")
    cr.set_threads(threads)
    runs = {
        "Chainrule": lambda: cr.text.BPETokenizer.train(parts, VOCABULARY, pattern="gpt2"),
        "tokenizers": lambda: train_tokenizers(parts),
    }
    mine, peer = in_turn(runs, rounds).values()
    shown = [f"{m.median / 1e3:.1f} ({m.minimum / 1e3:.1f}) s" for m in (mine, peer)]
    ratio = peer.median / mine.median
    table.rows.append(
        (f"training on {size:.0f} MB", str(threads), shown[0], peer.name, shown[1], bold(ratio))
    )
    table.headlines.append(
        Row(
            f"BPE, training {VOCABULARY:,} tokens on {size:.0f} MB",
            f"{mine.median / 1e3:.1f} s",
            f"tokenizers {peer.median / 1e3:.1f} s",
            f"{ratio:.1f}",
        )
    )


def train_tokenizers(parts: list[str]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, min_frequency=2, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(parts, trainer)
