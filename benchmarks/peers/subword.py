"""Unigram beside sentencepiece; WordPiece, textbook BPE and words beside tokenizers; words beside our own Python too.

    make bench ONLY=subword

Both sides train Unigram on all threads and do the rest on one. sentencepiece knows only lines, and gets them in one
call; we get documents with line ends. tokenizers trains WordPiece by counts, as BPE, and we by the score; its BPE drops
white space, ours keeps it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import chainrule as cr
from benchmarks.harness import Measured, in_turn, progress
from benchmarks.peers.texts import data_folder, documents, whole_text
from benchmarks.report import Table, bold
from chainrule import native, text
from chainrule.text.words import RULE

VOCABULARY = 8000
Run = Callable[[], object]


class Job(NamedTuple):
    """The same work by several programs."""

    title: str
    threads: int
    runs: dict[str, Run]


def measure(threads: int, quick: bool) -> Table:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    sample = whole_text()[: 10**6 if quick else 2 * 10**7]
    rounds, size = 1 if quick else 3, len(sample.encode()) / 1e6
    table = Table(
        "Unigram, WordPiece, textbook BPE, words",
        f"{size:.1f} MB, {VOCABULARY:,} tokens, {rounds} rounds in turn; megabytes per second, median (maximum).",
        ["work", "threads", "Chainrule", "peer", "", "ratio of medians"],
    )
    for job in jobs(sample, threads):
        progress(job.title)
        cr.set_threads(job.threads)
        mine, *peers = in_turn(job.runs, rounds).values()
        for peer in peers:
            cells = speed(mine, size), peer.name, speed(peer, size), bold(peer.median / mine.median)
            table.rows.append((job.title, str(job.threads), *cells))
    return table


def speed(measured: Measured, megabytes: float) -> str:
    return f"{megabytes / measured.median * 1e3:.2f} ({megabytes / measured.minimum * 1e3:.2f})"


def jobs(sample: str, threads: int) -> Iterator[Job]:
    parts = documents(sample, 100_000)
    yield from wordpiece(parts)
    yield from textbook_bpe(parts)
    yield from words(parts)
    yield from lowercase_words(sample, parts)
    yield from unigram(sample, parts, threads)


def encoding(ours: Any, peer: Any, parts: list[str]) -> dict[str, Run]:
    return {
        "Chainrule": lambda: [ours.encode(part) for part in parts],
        "tokenizers": lambda: peer.encode_batch_fast(parts, add_special_tokens=False),
    }


def trained_by_peer(model: Any, normalizer: Any, cut: Any, trainer: Any, parts: list[str]) -> Any:
    import tokenizers

    peer = tokenizers.Tokenizer(model)
    peer.normalizer, peer.pre_tokenizer = normalizer, cut
    peer.train_from_iterator(parts, trainer)
    return peer


def wordpiece(parts: list[str]) -> Iterator[Job]:
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    def theirs() -> Any:
        trainer = trainers.WordPieceTrainer(vocab_size=VOCABULARY, show_progress=False)
        cut = pre_tokenizers.BertPreTokenizer()
        model = models.WordPiece(unk_token="[UNK]")
        return trained_by_peer(model, normalizers.BertNormalizer(), cut, trainer, parts)

    def train() -> Any:
        return text.WordPieceTokenizer.train(parts, VOCABULARY)

    yield Job("WordPiece, training", 1, {"Chainrule": train, "tokenizers": theirs})
    vocabulary = data_folder("vocab", "bert-base-uncased", "vocab.txt")
    ours = cr.io.load_tokenizer(vocabulary) if vocabulary else train()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.json")
        cr.io.save_tokenizer(ours, path, hugging_face=True)
        peer = tokenizers.Tokenizer.from_file(str(path))
    yield Job("WordPiece, encoding", 1, encoding(ours, peer, parts))


def textbook_bpe(parts: list[str]) -> Iterator[Job]:
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    def ours() -> Any:
        return text.TextbookBPETokenizer.train(parts, VOCABULARY, special_tokens=["<unk>"])

    def theirs() -> Any:
        trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False, special_tokens=["<unk>"])
        cut = pre_tokenizers.WhitespaceSplit()
        return trained_by_peer(models.BPE(unk_token="<unk>"), normalizers.Sequence([]), cut, trainer, parts)

    yield Job("textbook BPE, training", 1, {"Chainrule": ours, "tokenizers": theirs})
    yield Job("textbook BPE, encoding", 1, encoding(ours(), theirs(), parts))


def in_python(run: Run) -> Run:
    """The same as if the extension had not been built."""
    return patch.object(native, "available", lambda: False)(run)


def words(parts: list[str]) -> Iterator[Job]:
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    def ours() -> Any:
        return text.WordTokenizer.train(parts, VOCABULARY)

    def theirs() -> Any:
        options = {"show_progress": False, "special_tokens": ["<unk>"]}
        trainer = trainers.WordLevelTrainer(vocab_size=VOCABULARY, **options)
        cut = pre_tokenizers.Split(tokenizers.Regex(RULE.word.pattern), "removed", invert=True)
        return trained_by_peer(
            models.WordLevel(unk_token="<unk>"), normalizers.Sequence([]), cut, trainer, parts
        )

    yield Job("words, training", 1, {"Chainrule": ours, "tokenizers": theirs, "our Python": in_python(ours)})
    runs = encoding(ours(), theirs(), parts)
    yield Job("words, encoding", 1, runs | {"our Python": in_python(runs["Chainrule"])})


def lowercase_words(sample: str, parts: list[str]) -> Iterator[Job]:
    def train() -> Any:
        return text.LowercaseWordTokenizer.train(sample, max_size=VOCABULARY)

    trained = train()
    yield Job("lowercase words, training", 1, {"Chainrule": train, "our Python": in_python(train)})

    def encode() -> object:
        return [trained.encode(part) for part in parts]

    yield Job("lowercase words, encoding", 1, {"Chainrule": encode, "our Python": in_python(encode)})


def unigram(sample: str, parts: list[str], threads: int) -> Iterator[Job]:
    import sentencepiece

    lines = [line for line in sample.split("\n") if line]

    def ours() -> Any:
        return text.UnigramTokenizer.train(lines, VOCABULARY, byte_fallback=False)

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "text").write_text("\n".join(lines), encoding="utf-8")

        def theirs() -> None:
            sentencepiece.SentencePieceTrainer.train(
                input=f"{folder}/text", model_prefix=f"{folder}/peer", vocab_size=VOCABULARY, num_threads=threads,
                model_type="unigram", normalization_rule_name="identity", remove_extra_whitespaces=False,
                max_sentence_length=1 << 20, minloglevel=2,
            )  # fmt: skip

        yield Job("Unigram, training", threads, {"Chainrule": ours, "sentencepiece": theirs})
        peer = sentencepiece.SentencePieceProcessor(f"{folder}/peer.model")
    trained = ours()
    runs: dict[str, Run] = {
        "Chainrule": lambda: [trained.encode(part) for part in parts],
        "sentencepiece": lambda: peer.encode(lines, num_threads=1),
    }
    yield Job("Unigram, encoding", 1, runs)
