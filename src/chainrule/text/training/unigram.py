"""Training of the Unigram tokenizer (Kudo 2018) in Python: the reference for native/text/unigram_*.cpp.

    p(text) = Σ over all cuts of the text into pieces  Π p(piece)

1. Candidates: letters, and strings that occur often (count times length).
2. E step: the expected count of each piece, over all cuts of each word. M step: p ∝ exp ψ(count), about count - ½,
   which makes rare pieces rarer.
3. Prune: drop the quarter of the pieces that the best cuts of the text miss least; continue with 2.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

# No piece crosses a unit: line ends, or spaces and the word after them.
UNIT = re.compile(r"\n+| *[^ \n]+| +")
LEAST_COUNT = 0.5  # a piece with a lower expected count is dropped
SEEDS_PER_PIECE = 20

Scores = dict[str, float]  # piece -> log probability


@dataclass(frozen=True)
class Settings:
    """Settings of training, for Python and C++."""

    pieces: int
    """Number of pieces to learn, letters included."""
    coverage: float = 0.9995
    """Fraction of the text whose letters must be pieces."""
    most_letters: int = 16
    """Length of the longest piece."""
    shrink: float = 0.75
    """Fraction of the pieces that a round of pruning keeps."""
    iterations: int = 2
    """E and M steps between two rounds."""

    @property
    def seeds(self) -> int:
        """Candidates to start from."""
        return SEEDS_PER_PIECE * self.pieces


def train(texts: Iterable[str], settings: Settings) -> Scores:
    """Pieces and their log probabilities, the most probable first; none if there is no text."""
    units = Counter(unit for text in texts for unit in UNIT.findall(text))
    letters = frequent_letters(units, settings.coverage)
    if not letters:
        return {}
    words = cut_at_unknown(units, letters)
    counts = letters | frequent_strings(words, settings)
    total = math.log(sum(counts.values()))
    scores = {piece: math.log(count) - total for piece, count in counts.items()}
    # The last tenth is chosen by probability; letters always stay.
    enough = max(settings.pieces + settings.pieces // 10, len(letters))
    while True:
        for _ in range(settings.iterations):
            scores = maximize(expect(words, scores), letters)
        if len(scores) <= enough:
            break
        scores = prune(words, scores, letters, max(enough, int(settings.shrink * len(scores))))
    ranked = sorted(scores, key=lambda piece: (-np.float32(scores[piece]), piece))
    others = [piece for piece in ranked if piece not in letters][: max(0, settings.pieces - len(letters))]
    chosen = letters.keys() | others
    return {piece: scores[piece] for piece in ranked if piece in chosen}


def frequent_letters(units: Counter[str], coverage: float) -> dict[str, int]:
    """The most frequent letters that make up `coverage` of the text, with their counts."""
    counts: Counter[str] = Counter()
    for unit, count in units.items():
        for letter in unit:
            counts[letter] += count
    kept: dict[str, int] = {}
    goal = coverage * counts.total()
    for letter in sorted(counts, key=lambda letter: (-counts[letter], letter)):
        if sum(kept.values()) >= goal:
            break
        kept[letter] = counts[letter]
    return kept


def cut_at_unknown(units: Counter[str], letters: dict[str, int]) -> dict[str, int]:
    """Words: units cut at letters that are not pieces."""
    words: Counter[str] = Counter()
    for unit, count in units.items():
        for known, part in groupby(unit, letters.__contains__):
            if known:
                words["".join(part)] += count
    return dict(sorted(words.items()))


def frequent_strings(words: dict[str, int], settings: Settings) -> dict[str, int]:
    """Strings of two letters or more that occur at least twice, the best by count times letters.

    A string that is always followed by the same letter is dropped in favor of the longer one.
    """
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + settings.most_letters) + 1):
                counts[word[start:end]] += count
    always = {string[:-1] for string, count in counts.items() if counts[string[:-1]] == count}
    found = {s: n * len(s) for s, n in counts.items() if n >= 2 and len(s) >= 2 and s not in always}
    return {s: found[s] for s in sorted(found, key=lambda s: (-found[s], s))[: settings.seeds]}


def expect(words: dict[str, int], scores: Scores) -> Scores:
    """The expected count of each piece in the text, over all cuts of its words."""
    expected = dict.fromkeys(scores, 0.0)
    longest = max(map(len, scores), default=0)
    for word, count in words.items():
        n = len(word)
        spans = ((i, j) for i in range(n) for j in range(i + 1, min(n, i + longest) + 1))
        cuts = [(i, j) for i, j in spans if word[i:j] in scores]
        # Log sums over the cuts before and after each place.
        alpha, beta = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
        alpha[0] = beta[n] = 0
        for i, j in cuts:
            alpha[j] = np.logaddexp(alpha[j], alpha[i] + scores[word[i:j]])
        for i, j in reversed(cuts):
            beta[i] = np.logaddexp(beta[i], beta[j] + scores[word[i:j]])
        for i, j in cuts:
            expected[word[i:j]] += count * math.exp(alpha[i] + scores[word[i:j]] + beta[j] - alpha[n])
    return expected


def maximize(expected: Scores, letters: dict[str, int]) -> Scores:
    """Log probabilities from expected counts; letters always stay."""
    often = {piece: count for piece, count in expected.items() if count >= LEAST_COUNT or piece in letters}
    kept = {piece: max(count, LEAST_COUNT) for piece, count in often.items()}
    total = digamma(sum(kept.values()))
    return {piece: digamma(count) - total for piece, count in kept.items()}


def prune(words: dict[str, int], scores: Scores, letters: dict[str, int], wanted: int) -> Scores:
    """The letters, and the pieces whose loss would lower the likelihood of the text most."""
    used: Counter[str] = Counter()
    for word, count in words.items():
        for piece in best_cut(word, scores):
            used[piece] += count
    total = used.total()

    def cost(piece: str) -> float:
        """The loss of log likelihood if the piece is replaced by its best cut into others."""
        others = best_cut(piece, scores, without=piece)
        grown = math.log(total + used[piece] * (len(others) - 1))
        after = sum(math.log(used[other] + used[piece]) - grown for other in others)
        return used[piece] * (math.log(used[piece]) - math.log(total) - after)

    costs = {piece: np.float32(cost(piece)) for piece in scores if used[piece] and piece not in letters}
    ranked = sorted(costs, key=lambda piece: (-costs[piece], piece))
    kept = letters.keys() | ranked[: max(0, wanted - len(letters))]
    return {piece: score for piece, score in scores.items() if piece in kept}


def best_cut(word: str, scores: Scores, without: str | None = None) -> list[str]:
    """Viterbi: the most probable cut; all letters must be known."""
    best = [(0.0, "")] + [(-math.inf, "")] * len(word)  # score and last piece, by end
    for start in range(len(word)):
        for end in range(start + 1, len(word) + 1):
            piece = word[start:end]
            if piece in scores and piece != without and best[start][0] + scores[piece] > best[end][0]:
                best[end] = best[start][0] + scores[piece], piece
    pieces: list[str] = []
    end = len(word)
    while end > 0:
        pieces.append(best[end][1])
        end -= len(best[end][1])
    return pieces[::-1]


def digamma(x: float) -> float:
    """ψ(x), the derivative of log Γ, by its recurrence and its series for large x"""
    total = 0.0
    while x < 7:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    return total + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
