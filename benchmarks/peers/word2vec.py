"""word2vec beside gensim: the same words, the same settings, an epoch of each in turn.

    CHAINRULE_DATA=... python -m benchmarks.peers.word2vec [--epochs 5] [--seeds 3] [--model cbow] [--threads 2]

Prints a Markdown table: effective words per second (those that subsampling leaves, as gensim counts them) and
Spearman's correlation with WordSim-353. Needs gensim (pip install 'chainrule[peers]') and the texts of the data.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import chainrule as cr
from chainrule.data import load
from chainrule.inspect.embeddings import WordVectors, similarity_report
from chainrule.io.vectors import read_pairs
from chainrule.models import CBOW, NOTHING, SkipGram, Word2VecConfig
from chainrule.tasks.word_vectors import word_ids
from chainrule.text import LowercaseWordTokenizer
from chainrule.train import WordTrainConfig, WordVectorStep

TEXTS = [
    "austen", "fortunes", "jargon", "moby_dick", "sotu_1790_1989", "tinyshakespeare", "tinystories_sample",
    "wiki_demo", "wikitext2_valid",
]  # fmt: skip
DIM, WINDOW, NEGATIVES, SAMPLE, MIN_COUNT = 100, 5, 5, 1e-3, 5
LONGEST = 10_000  # words: gensim would cut off the rest of a longer sentence


class Ours:
    name = f"chainrule {cr.__version__}"

    def __init__(self, args: argparse.Namespace, seed: int, tokenizer: LowercaseWordTokenizer, ids) -> None:
        cr.set_threads(args.threads)
        cr.seed(seed)
        kind = SkipGram if args.model == "skip-gram" else CBOW
        self.words = tokenizer.words
        self.model = kind(Word2VecConfig(vocab_size=tokenizer.vocab_size, dim=DIM, window=WINDOW))
        config = WordTrainConfig(epochs=args.epochs, negatives=NEGATIVES, sample=SAMPLE, seed=seed)
        self.step = WordVectorStep(self.model, ids, config)

    def epoch(self, number: int) -> int:
        return sum(progress.words for progress in self.step.read(number))

    def vectors(self) -> WordVectors:
        return WordVectors(self.words, self.model.input.weight.array)


class Gensim:
    def __init__(self, args: argparse.Namespace, seed: int, tokenizer: LowercaseWordTokenizer, ids) -> None:
        import gensim
        from gensim.models import Word2Vec

        self.name = f"gensim {gensim.__version__}"
        self.epochs, self.sentences = args.epochs, sentences(tokenizer, ids)
        skip_gram = args.model == "skip-gram"
        self.model = Word2Vec(
            vector_size=DIM, window=WINDOW, negative=NEGATIVES, sample=SAMPLE, min_count=1, sg=int(skip_gram),
            workers=args.threads, seed=seed,
        )  # fmt: skip
        self.model.build_vocab(self.sentences)

    def epoch(self, number: int) -> int:
        first, last = (0.025 * (1 - done / self.epochs) for done in (number, number + 1))
        effective, _ = self.model.train(
            self.sentences,
            total_examples=len(self.sentences),
            epochs=1,
            start_alpha=first,
            end_alpha=max(last, 1e-4),
        )
        return effective

    def vectors(self) -> WordVectors:
        return WordVectors(self.model.wv.index_to_key, self.model.wv.vectors)


def sentences(tokenizer: LowercaseWordTokenizer, ids) -> list[list[str]]:
    """The same words between the same boundaries, as lists."""
    found, sentence = [], []
    for i in [*ids.tolist(), NOTHING]:
        if i != NOTHING:
            sentence.append(tokenizer.words[i])
        if sentence and (i == NOTHING or len(sentence) == LONGEST):
            found.append(sentence)
            sentence = []
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=["skip-gram", "cbow"], default="skip-gram")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    text = "\n\n".join(load(name).text for name in TEXTS)
    pairs = read_pairs(Path(os.environ["CHAINRULE_DATA"], "wordsim", "EN-WS-353-ALL.txt"))
    tokenizer = LowercaseWordTokenizer.train(text, min_count=MIN_COUNT)
    ids = word_ids(text, tokenizer)

    names: list[str] = []
    speeds: list[list[float]] = [[], []]
    scores: list[list[float]] = [[], []]
    for seed in range(args.seeds):
        programs = [Ours(args, seed, tokenizer, ids), Gensim(args, seed, tokenizer, ids)]
        names = [program.name for program in programs]
        for number in range(args.epochs):
            for program, speed in zip(programs, speeds, strict=True):
                began = time.perf_counter()
                words = program.epoch(number)
                speed.append(words / (time.perf_counter() - began))
                print(f"seed {seed} epoch {number}: {program.name} {speed[-1]:,.0f} words/s", file=sys.stderr)
        for program, score in zip(programs, scores, strict=True):
            score.append(similarity_report(program.vectors(), pairs)["spearman"])

    words = int((ids != NOTHING).sum())
    print(f"{words:,} words, {tokenizer.vocab_size - 1:,} different; {args.model}, {DIM} wide, window {WINDOW}, "
          f"{NEGATIVES} negatives, {args.epochs} epochs, {args.threads} threads.\n")  # fmt: skip
    print("| | words/s, median of epochs | fastest | ratio of medians | WordSim-353 Spearman, each seed |")
    print("|---|---|---|---|---|")
    base = statistics.median(speeds[1])
    for name, speed, score in zip(names, speeds, scores, strict=True):
        middle = statistics.median(speed)
        print(f"| {name} | {middle:,.0f} | {max(speed):,.0f} | **{middle / base:.2f}** | "
              f"{', '.join(f'{s:.3f}' for s in score)} |")  # fmt: skip
    print(f"\n`python {' '.join(sys.argv)}`")


if __name__ == "__main__":
    main()
