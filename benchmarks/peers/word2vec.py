"""Skip-gram beside gensim: the same words, the same settings, an epoch of each in turn.

    CHAINRULE_DATA=FOLDER make bench ONLY=word2vec

FOLDER holds the texts, and wordsim/EN-WS-353-ALL.txt to evaluate the vectors by: Spearman's correlation with what
people say. Without it the text is that of Python's library, and there is no correlation. Speed is in effective words
per second, as gensim counts them: words that subsampling keeps.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import chainrule as cr
from benchmarks.harness import progress
from benchmarks.peers.texts import data_folder
from benchmarks.report import Row, Table, bold
from chainrule.io.vectors import read_pairs
from chainrule.models import NOTHING, SkipGram, Word2VecConfig
from chainrule.tasks.word_vectors import word_ids
from chainrule.text import LowercaseWordTokenizer
from chainrule.train import WordTrainConfig, WordVectorStep

TEXTS = [
    "austen", "fortunes", "jargon", "moby_dick", "sotu_1790_1989", "tinyshakespeare", "tinystories_sample",
    "wiki_demo", "wikitext2_valid",
]  # fmt: skip
DIM, WINDOW, NEGATIVES, SAMPLE, MIN_COUNT, EPOCHS, SEED = 100, 5, 5, 1e-3, 5, 5, 1
LONGEST = 10_000  # words: gensim would cut off the rest of a longer sentence


class Ours:
    name = "Chainrule"

    def __init__(self, tokenizer: LowercaseWordTokenizer, ids: Any, threads: int, epochs: int) -> None:
        cr.set_threads(threads)
        cr.seed(SEED)
        self.words = tokenizer.words
        self.model = SkipGram(Word2VecConfig(vocab_size=tokenizer.vocab_size, dim=DIM, window=WINDOW))
        config = WordTrainConfig(epochs=epochs, negatives=NEGATIVES, sample=SAMPLE, seed=SEED)
        self.step = WordVectorStep(self.model, ids, config)

    def epoch(self, number: int) -> int:
        """Trains one; returns the effective words."""
        return sum(progress.words for progress in self.step.read(number))

    def vectors(self) -> tuple[Any, Any]:
        return self.words, self.model.input.weight.array


class Gensim:
    def __init__(self, tokenizer: LowercaseWordTokenizer, ids: Any, threads: int, epochs: int) -> None:
        import gensim
        from gensim.models import Word2Vec

        self.name = f"gensim {gensim.__version__}"
        self.epochs, self.sentences = epochs, sentences(tokenizer, ids)
        self.model = Word2Vec(
            vector_size=DIM, window=WINDOW, negative=NEGATIVES, sample=SAMPLE, min_count=1, sg=1,
            workers=threads, seed=SEED,
        )  # fmt: skip
        self.model.build_vocab(self.sentences)

    def epoch(self, number: int) -> int:
        first, last = (0.025 * (1 - done / self.epochs) for done in (number, number + 1))
        rates = {"start_alpha": first, "end_alpha": max(last, 1e-4)}
        effective, _ = self.model.train(self.sentences, total_examples=len(self.sentences), epochs=1, **rates)
        return effective

    def vectors(self) -> tuple[Any, Any]:
        return self.model.wv.index_to_key, self.model.wv.vectors


def sentences(tokenizer: LowercaseWordTokenizer, ids: Any) -> list[list[str]]:
    """The same words between the same boundaries, as lists."""
    found, sentence = [], []
    for i in [*ids.tolist(), NOTHING]:
        if i != NOTHING:
            sentence.append(tokenizer.words[i])
        if sentence and (i == NOTHING or len(sentence) == LONGEST):
            found.append(sentence)
            sentence = []
    return found


def spearman(words: Any, vectors: Any) -> str:
    from chainrule.inspect.embeddings import WordVectors, similarity_report

    pairs = data_folder("wordsim", "EN-WS-353-ALL.txt")
    return (
        f"{similarity_report(WordVectors(words, vectors), read_pairs(pairs))['spearman']:.3f}"
        if pairs
        else "–"
    )


def measure(threads: int, quick: bool) -> Table:
    names = ["stdlib"] if data_folder("text") is None else TEXTS
    text = "\n\n".join(cr.data.load(name).text for name in (names[:1] if quick else names))
    tokenizer = LowercaseWordTokenizer.train(text, min_count=MIN_COUNT)
    ids = word_ids(text, tokenizer)
    epochs = 1 if quick else EPOCHS
    programs = [kind(tokenizer, ids, threads, epochs) for kind in (Ours, Gensim)]
    speeds: list[list[float]] = [[], []]
    for number in range(epochs):
        for program, speed in zip(programs, speeds, strict=True):
            began = time.perf_counter()
            words = program.epoch(number)
            speed.append(words / (time.perf_counter() - began))
            progress(f"epoch {number + 1} of {epochs}: {program.name} {speed[-1]:,.0f} words/s")
    total = int((ids != NOTHING).sum())
    table = Table(
        "word2vec",
        f"Skip-gram, {DIM} wide, window {WINDOW}, {NEGATIVES} negatives, {epochs} epochs over {total:,} words "
        f"({tokenizer.vocab_size - 1:,} different), {threads} threads, an epoch of each in turn.",
        ["", "words/s, median", "fastest", "ratio of medians", "WordSim-353, Spearman"],
    )
    middle = [statistics.median(speed) for speed in speeds]
    for program, speed, median in zip(programs, speeds, middle, strict=True):
        cells = program.name, f"{median:,.0f}", f"{max(speed):,.0f}", bold(median / middle[1])
        table.rows.append((*cells, spearman(*program.vectors())))
    cells = f"{middle[0]:,.0f} words/s", f"{programs[1].name} {middle[1]:,.0f} words/s"
    table.headlines.append(
        Row(f"word2vec, skip-gram, {threads} threads", *cells, f"{middle[0] / middle[1]:.1f}")
    )
    return table
