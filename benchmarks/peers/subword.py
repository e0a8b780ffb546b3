"""Unigram next to sentencepiece, WordPiece, plain BPE and words next to tokenizers, words next to our own Python too:
training and encoding, in turn, the best of some rounds.

    CHAINRULE_DATA=... python -m benchmarks.peers.subword        needs sentencepiece and tokenizers
    python -m benchmarks.peers.subword book.txt --megabytes 5 --rounds 1

Prints a table in Markdown; ratios above 1 mean that Chainrule is faster. Both sides train Unigram on two threads, and
do all the rest on one. sentencepiece knows only lines, and gets them in one call; we get documents with line ends.
tokenizers trains WordPiece by counts, as BPE, and we by the score; its plain BPE drops white space, ours keeps it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import sentencepiece
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from chainrule import native
from chainrule.data import corpora
from chainrule.io import load_tokenizer
from chainrule.io.hf.tokenizers.wordpiece import write
from chainrule.text import (
    LowercaseWordTokenizer,
    TextbookBPETokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from chainrule.text.words import RULE

VOCABULARY = 8000


def read(files: list[str], megabytes: float) -> str:
    data = os.environ.get("CHAINRULE_DATA")
    paths = [Path(file) for file in files] or sorted(Path(data, "text").glob("*.txt") if data else [])
    whole = "".join(path.read_text(encoding="utf-8") for path in paths) or corpora.load("stdlib").text
    return whole[: int(megabytes * 1e6)]


def documents(text: str, size: int = 100_000) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def best(rounds: int, *runs: Callable[[], object]) -> list[float]:
    """Seconds of each, in turn."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def unigram(text: str, rounds: int) -> list[tuple[str, str, float, float]]:
    lines = [line for line in text.split("\n") if line]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text").write_text("\n".join(lines), encoding="utf-8")

        def train() -> None:
            sentencepiece.SentencePieceTrainer.train(
                input=f"{folder}/text", model_prefix=f"{folder}/peer", vocab_size=VOCABULARY, num_threads=2,
                model_type="unigram", normalization_rule_name="identity", remove_extra_whitespaces=False,
                max_sentence_length=1 << 20, minloglevel=2,
            )  # fmt: skip

        trained = best(rounds, lambda: UnigramTokenizer.train(lines, VOCABULARY, byte_fallback=False), train)
        peer = sentencepiece.SentencePieceProcessor(f"{folder}/peer.model")
    ours = UnigramTokenizer.train(lines, VOCABULARY, byte_fallback=False)
    encoded = best(
        rounds, lambda: [ours.encode(x) for x in documents(text)], lambda: peer.encode(lines, num_threads=1)
    )
    counts = sum(len(ours.encode(x)) for x in lines), sum(map(len, peer.encode(lines)))
    return [
        ("Unigram, training", "sentencepiece", *trained),
        (f"Unigram, encoding (by lines {counts[0]:,} and {counts[1]:,} tokens)", "sentencepiece", *encoded),
    ]


def trained_by_peer(model: Any, before: Any, trainer: Any, text: str) -> Any:
    peer = tokenizers.Tokenizer(model)
    peer.normalizer, peer.pre_tokenizer = before
    peer.train_from_iterator(documents(text), trainer)
    return peer


def wordpiece_training(text: str, rounds: int) -> tuple[str, str, float, float]:
    def theirs() -> None:
        before = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, show_progress=False)
        trained_by_peer(models.WordPiece(unk_token="[UNK]"), before, trainer, text)

    trained = best(rounds, lambda: WordPieceTokenizer.train(documents(text), VOCABULARY), theirs)
    return "WordPiece, training", "tokenizers", *trained


def plain_bpe(text: str, rounds: int) -> list[tuple[str, str, float, float]]:
    def ours() -> TextbookBPETokenizer:
        return TextbookBPETokenizer.train(documents(text), VOCABULARY, special_tokens=["<unk>"])

    def theirs() -> Any:
        trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False, special_tokens=["<unk>"])
        before = normalizers.Sequence([]), pre_tokenizers.WhitespaceSplit()
        return trained_by_peer(models.BPE(unk_token="<unk>"), before, trainer, text)

    trained = best(rounds, ours, theirs)
    mine, peer = ours(), theirs()
    encoded = best(
        rounds,
        lambda: [mine.encode(x) for x in documents(text)],
        lambda: [peer.encode(x).ids for x in documents(text)],
    )
    return [
        ("plain BPE, training", "tokenizers", *trained),
        ("plain BPE, encoding", "tokenizers", *encoded),
    ]


def wordpiece(text: str, rounds: int) -> tuple[str, str, float, float]:
    vocab = Path(os.environ.get("CHAINRULE_DATA", ""), "vocab", "bert-base-uncased", "vocab.txt")
    ours = load_tokenizer(vocab) if vocab.is_file() else WordPieceTokenizer.train(text, VOCABULARY)
    assert isinstance(ours, WordPieceTokenizer)
    peer = tokenizers.Tokenizer.from_str(json.dumps(write(ours)))
    encoded = best(
        rounds,
        lambda: [ours.encode(x) for x in documents(text)],
        lambda: [peer.encode(x).ids for x in documents(text)],
    )
    return "WordPiece, encoding", "tokenizers", *encoded


def in_python(run: Callable[[], object]) -> Callable[[], object]:
    """The same as if the extension had not been built."""
    return patch.object(native, "available", lambda: False)(run)


def words(text: str, rounds: int) -> list[tuple[str, str, float, float]]:
    def ours() -> WordTokenizer:
        return WordTokenizer.train(documents(text), VOCABULARY)

    def theirs() -> Any:
        trainer = trainers.WordLevelTrainer(
            vocab_size=VOCABULARY, show_progress=False, special_tokens=["<unk>"]
        )
        cut = pre_tokenizers.Split(tokenizers.Regex(RULE.word.pattern), "removed", invert=True)
        before = normalizers.Sequence([]), cut
        return trained_by_peer(models.WordLevel(unk_token="<unk>"), before, trainer, text)

    mine, peer = ours(), theirs()

    def encode() -> object:
        return [mine.encode(x) for x in documents(text)]

    trained = best(rounds, ours, theirs, in_python(ours))
    encoded = best(rounds, encode, lambda: [peer.encode(x).ids for x in documents(text)], in_python(encode))
    return [
        (f"words, {what}", other, times[0], taken)
        for what, times in (("training", trained), ("encoding", encoded))
        for other, taken in zip(("tokenizers", "our Python"), times[1:], strict=True)
    ]


def bare_words(text: str, rounds: int) -> list[tuple[str, str, float, float]]:
    def train() -> LowercaseWordTokenizer:
        return LowercaseWordTokenizer.train(text, max_size=VOCABULARY)

    mine = train()

    def encode() -> object:
        return [mine.encode(x) for x in documents(text)]

    return [
        ("bare words, training", "our Python", *best(rounds, train, in_python(train))),
        ("bare words, encoding", "our Python", *best(rounds, encode, in_python(encode))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"
    text = read(options.files, options.megabytes)
    size = len(text.encode()) / 1e6
    print(f"{size:.1f} MB, {VOCABULARY:,} tokens\n\n| | peer | Chainrule MB/s | peer MB/s | ratio |")
    print("|---|---|---:|---:|---:|")
    native.set_threads(1)
    rows = [wordpiece(text, options.rounds), wordpiece_training(text, options.rounds)]
    rows += plain_bpe(text, options.rounds) + words(text, options.rounds) + bare_words(text, options.rounds)
    native.set_threads(2)
    rows += unigram(text, options.rounds)
    for what, peer, ours, theirs in rows:
        print(f"| {what} | {peer} | {size / ours:.2f} | {size / theirs:.2f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
