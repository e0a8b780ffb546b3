"""What the n-gram view shows: how likely each letter is after each context, counted in words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import numpy as np

from chainrule import data
from chainrule.cli.commands.ngram import Source, facts, held_out
from chainrule.errors import ConfigError
from chainrule.files import plain
from chainrule.models import Additive, GoodTuring, KneserNey, NGram
from chainrule.models.ngram.grams import listed
from chainrule.web.microscope.looks import packed

SOURCES = {
    "words": "the different words of Python's help",
    "identifiers": "names used in Python's standard library, in small letters",
    "own": "words of your own, one per line",
}
METHODS = {
    "mle": "counts as they are",
    "add": "add the same to every count",
    "good-turing": "Good-Turing",
    "kneser-ney": "Kneser-Ney",
}
ORDERS = (1, 5)
LONGEST = 12_000  # bytes of own words in an address, which hold them
LETTERS = 150  # different ones: the table has a row and a column for each
EXAMPLE = "emma\nolivia\nava\nisabella\nsophia\nmia\namelia\nella\nlena\nanna"
SAMPLES = 12
FINDS = {
    "words": (data.corpora.DEFAULT, r"\b[a-z]{3,}\b"),
    "identifiers": ("identifiers", r"(?m)^[a-z]{2,}$"),
}


def words_of(source: str, own: str) -> list[str]:
    """The words that are counted, each once."""
    if source == "own":
        if (size := len(quote(own))) > LONGEST:
            raise ConfigError(f"n-grams: {size:,} bytes of words in an address (at most {LONGEST:,})")
        if (letters := len(set(own) - set("\n"))) > LETTERS:
            raise ConfigError(f"n-grams: {letters} different characters (at most {LETTERS})")
        found = [line.strip() for line in own.splitlines() if line.strip()]
        if not found:
            raise ConfigError("n-grams: no words (write some, one per line)")
        return found
    if source not in FINDS:
        raise ConfigError(f"n-grams: source {source[:40]!r} (must be one of {', '.join(SOURCES)})")
    corpus, pattern = FINDS[source]
    return sorted(set(re.findall(pattern, data.load(corpus).text)))


@lru_cache(maxsize=8)
def _source(source: str, own: str) -> Source:
    return Source.of("\n".join(words_of(source, own)), True)


def smoother(method: str, s: float) -> Additive | GoodTuring | KneserNey:
    """The rule that makes probabilities of counts."""
    if method not in METHODS:
        raise ConfigError(f"n-grams: method {method[:40]!r} (must be one of {', '.join(METHODS)})")
    if not 0 <= s <= 1e6:
        raise ConfigError(f"n-grams: s is {s:g} (must be from 0 to a million)")
    if method in ("mle", "add"):
        return Additive(s if method == "add" else 0.0)
    return GoodTuring() if method == "good-turing" else KneserNey()


@lru_cache(maxsize=16)
def _fitted(source: str, own: str, order: int, method: str, s: float) -> tuple[NGram, float]:
    found, rule = _source(source, own), smoother(method, s)
    return found.fit(found.documents, order, rule), held_out(found, order, rule)


def counted(
    source: str, own: str, order: int, before: str, method: str, s: float, seed: int
) -> dict[str, Any]:
    """The table P(next | `before` and the letter of the row), what it says of the words, and new words."""
    low, high = ORDERS
    if not low <= order <= high:
        raise ConfigError(f"n-grams: order is {order} (must be from {low} to {high})")
    model, new = _fitted(source, own if source == "own" else "", order, method, s)
    found = _source(source, own if source == "own" else "")
    prefix = _prefix(found.tokens, before, order)
    contexts = _contexts(prefix, order, len(found.tokens))
    described = facts(found, model)
    return {
        "tokens": found.tokens,
        "words": len(found.documents),
        "order": order,
        "before": before[-max(order - 2, 0) :] if order > 2 else "",
        "table": packed(model.probabilities(contexts)),
        "counts": packed(_counts(model, prefix)),
        "totals": model.levels[0].totals.tolist(),
        "frequencies": _frequencies(model).tolist(),
        **{
            name: plain(described[name])
            for name in ("transitions", "stored", "table_size", "nll", "uniform_nll")
        },
        "perplexity": plain(described["perplexity"]),
        "held_out": plain(new),
        "samples": found.write(model, SAMPLES, seed),
        "python": _program(source, own, order, contexts, method, s, seed),
    }


def _prefix(tokens: list[str], before: str, order: int) -> list[int]:
    """Ids of the letters before the one of the row; a word's start where there are too few."""
    wanted = max(order - 2, 0)
    letters = before[-wanted:] if wanted else ""
    unknown = [letter for letter in letters if letter not in tokens]
    if unknown:
        raise ConfigError(f"n-grams: letter {unknown[0]!r} (must be one of {''.join(tokens)})")
    return [0] * (wanted - len(letters)) + [tokens.index(letter) for letter in letters]


def _contexts(prefix: list[int], order: int, size: int) -> list[list[int]]:
    return [[]] if order == 1 else [[*prefix, last] for last in range(size)]


def _counts(model: NGram, prefix: list[int]) -> Any:
    """How often each token followed each context: (V, V), or (1, V) without a context"""
    contexts, tokens, counts = listed(model.levels)
    found = np.zeros((1 if model.order == 1 else model.vocab_size, model.vocab_size))
    if model.order == 1:
        found[0, tokens] = counts
        return found
    here = (contexts[:, :-1] == prefix).all(axis=1)
    found[contexts[here, -1], tokens[here]] = counts[here]
    return found


def _frequencies(model: NGram) -> Any:
    """How often each token occurs (V,)"""
    _, tokens, counts = listed(model.levels[:1])
    found = np.zeros(model.vocab_size, np.int64)
    found[tokens] = counts
    return found


def _program(
    source: str, own: str, order: int, contexts: list[list[int]], method: str, s: float, seed: int
) -> str:
    if source == "own":
        words = f"words = {words_of(source, own)!r}"
    else:
        corpus, pattern = FINDS[source]
        words = f"words = sorted(set(re.findall({pattern!r}, cr.data.load({corpus!r}).text)))"
    rule = {
        "mle": "Additive(0.0)",
        "add": f"Additive({s!r})",
        "good-turing": "GoodTuring()",
        "kneser-ney": "KneserNey()",
    }[method]
    rows = "[[]]" if order == 1 else f"[[*{contexts[0][:-1]}, last] for last in range(len(tokens))]"
    return "\n".join(
        [
            "import re",
            "",
            "import chainrule as cr",
            "",
            words,
            'tokenizer = cr.text.CharTokenizer.train("".join(words))',
            'tokens = [".", *tokenizer.characters]  # the point begins and ends a word',
            "model = cr.models.NGram.fit(",
            f"    [tokenizer.encode(word) + 1 for word in words], order={order}, vocab_size=len(tokens),",
            f"    smoothing=cr.models.{rule},",
            ")",
            f"table = model.probabilities({rows})",
            f'samples = ["".join(tokens[i] for i in row) for row in model.sample({SAMPLES}, seed={seed})]',
            "print(model.nll(), samples)",
            "",
        ]
    )
