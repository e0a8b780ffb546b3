"""A language pair of a dozen words each: adjectives change their place and agree with their noun."""

from __future__ import annotations

import itertools

from chainrule.data import PairBatches

START, END, FIRST = 1, 2, 3
NOUNS = {"cat": ("le", "chat"), "dog": ("le", "chien"), "house": ("la", "maison"), "car": ("la", "voiture")}
ADJECTIVES = {"small": ("petit", "petite"), "green": ("vert", "verte"), "cold": ("froid", "froide")}
VERBS = {"waits": "attend", "falls": "tombe", "shines": "brille"}


def sentences() -> list[tuple[list[str], list[str]]]:
    """Every sentence, with and without an adjective."""
    pairs = []
    for noun, adjective, verb in itertools.product(NOUNS, [None, *ADJECTIVES], VERBS):
        article, name = NOUNS[noun]
        source = ["the", *([adjective] if adjective else []), noun, verb]
        described = [ADJECTIVES[adjective][article == "la"]] if adjective else []
        pairs.append((source, [article, name, *described, VERBS[verb]]))
    return pairs


PAIRS = sentences()
WORDS = sorted({word for pair in PAIRS for side in pair for word in side})
VOCAB = FIRST + len(WORDS)
SOURCES = [[FIRST + WORDS.index(word) for word in source] for source, _ in PAIRS]
TARGETS = [[FIRST + WORDS.index(word) for word in target] for _, target in PAIRS]
HELD_OUT = [i for i in range(len(PAIRS)) if i % 7 == 3]


def batches(batch_size: int = 16) -> PairBatches:
    """The sentences that are not held out, in batches."""
    kept = [i for i in range(len(PAIRS)) if i not in HELD_OUT]
    return PairBatches(
        [SOURCES[i] for i in kept],
        [TARGETS[i] for i in kept],
        start=START,
        end=END,
        batch_size=batch_size,
        block_size=8,
    )
