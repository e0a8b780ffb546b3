"""What the embedding view shows: neighbors, analogies and a map of the vectors of words or tokens, and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.inspect.embedding_space import anisotropy, principal_components
from chainrule.inspect.embeddings import WordVectors, cosine_table
from chainrule.models.registry import ALL, WORD_VECTORS
from chainrule.nn.positions import sinusoidal, wavelengths
from chainrule.runs.records import environment
from chainrule.web.jobs import Tell
from chainrule.web.kept import Kept
from chainrule.web.microscope.looks import packed
from chainrule.web.models import Loaded, Models

BUILT_IN = "words of Python's help"
SETTINGS: dict[str, Any] = {"dim": 50, "window": 5}
EPOCHS = 12
SHOWN = 250  # points of the map
KNOWN = 2000  # vectors whose directions make the map
PADDING = 128  # rows that a table may have beyond those of its tokens
POSITIONS = 256  # that are shown of a table of positions
NEIGHBORS = 10
WORDS = ("string", "list", "module", "the", "e", "a")  # the first that is known is shown
LENGTHS, SIZES = (2, 512), (2, 256)
LARGEST_BASE = 1e9


_LEARNED: Kept[WordVectors] = Kept(1)


def built_in(tell: Tell) -> WordVectors:
    """word2vec, learned here and now from the default corpus."""
    return _LEARNED.of("built in", lambda: _learn(tell), tell)


def _learn(tell: Tell) -> WordVectors:
    task = cr.tasks.WordVectorsTask.of(cr.data.load("pydoc"))
    with cr.random.seeded(0):
        model = cr.models.SkipGram(cr.models.Word2VecConfig(task.tokenizer.vocab_size, **SETTINGS))
    step = cr.train.WordVectorStep(model, task.ids, cr.train.WordTrainConfig(epochs=EPOCHS))
    for epoch in range(EPOCHS):
        for _ in step.read(epoch):
            tell("learning vectors from Python's help", epoch / EPOCHS)
    return WordVectors(*task.vectors(model))


def listed(models: Models) -> list[dict[str, Any]]:
    """What can be looked at: the vectors that are learned here, and every run with a table of vectors."""
    runs = models.listed(tuple(name for name in ALL if name not in ("ngram", "bow-classifier")))
    return [{"name": BUILT_IN, "family": "word2vec", "steps": [0]}, *runs]


def of_run(models: Models, name: str, step: int | None, tell: Tell) -> tuple[WordVectors, Any, list[str]]:
    """The vectors of a run, its table of positions if it learned one, and the program that reads them."""
    tell("reading the vectors", None)
    path = models.path(name, step)
    if environment.read(models.runs.path(name)).get("family") in WORD_VECTORS:
        program = [f"vectors = WordVectors(*cr.runs.load_vectors({str(path)!r}))"]
        return WordVectors(*cr.runs.load_vectors(path)), None, program
    program = [
        "from chainrule.web.lab.embeddings import tables",
        "from chainrule.web.models import Loaded",
        "",
        f"path = {str(path)!r}",
        "vectors, positions = tables(Loaded(path, *cr.load(path)))",
    ]
    with models.at((name, step)) as (loaded,):
        if ("vectors",) not in loaded.known:
            loaded.known[("vectors",)] = tables(loaded)
        return *loaded.known[("vectors",)], program


def tables(loaded: Loaded) -> tuple[WordVectors, Any]:
    """The first table with a row for each token, and the first with a row for each position."""
    tokenizer = loaded.tokenizer
    words = [tokenizer.piece(id) for id in range(tokenizer.vocab_size)]
    matrix = positions = None
    for name, parameter in loaded.model.named_parameters():
        if len(parameter.shape) != 2:
            continue
        if ("wpe" in name or "position" in name) and positions is None:
            positions = np.array(parameter.array[:POSITIONS], np.float64)
        elif matrix is None and 0 <= parameter.shape[0] - len(words) <= PADDING:
            matrix = parameter.array[: len(words)]
    if matrix is None:
        raise ConfigError(f"embeddings: {loaded.path} has no row for each of its {len(words):,} tokens")
    return WordVectors(words, matrix), positions


def shown(vectors: WordVectors, positions: Any, word: str | None, analogy: tuple[str, ...]) -> dict[str, Any]:
    """Neighbors of a word, a - b + c, and a map of the first words, the word and its neighbors."""
    word = word or next((each for each in WORDS if each in vectors), vectors.words[0])
    neighbors = vectors.neighbors(word, NEIGHBORS)
    asked = tuple(part for part in analogy if part)
    if len(asked) not in (0, 3):
        raise ConfigError(f"analogy: {len(asked)} words (must be three: a, b and c of a - b + c)")
    found = vectors.analogy(asked[0], asked[1], asked[2], NEIGHBORS) if asked else []
    extra = [word, *(each for each, _ in neighbors), *asked, *(each for each, _ in found[:3])]
    rows = list(dict.fromkeys([*map(vectors.id, extra), *range(min(SHOWN, len(vectors.words)))]))
    known = vectors.matrix[:KNOWN]
    components = principal_components(known, 2)
    return {
        "word": word,
        "size": len(vectors.words),
        "dim": int(vectors.matrix.shape[1]),
        "neighbors": [{"word": each, "cosine": cosine} for each, cosine in neighbors],
        "analogy": [{"word": each, "cosine": cosine} for each, cosine in found],
        "map": {
            "words": [vectors.words[row] for row in rows],
            "points": packed(components.project(vectors.matrix[rows])),
            "explained": components.explained.tolist(),
        },
        "anisotropy": anisotropy(known[np.linalg.norm(known, axis=1) > 0]),
        "positions": None
        if positions is None
        else {"table": packed(positions), "cosines": packed(cosine_table(positions))},
    }


def encoded(n: int, d: int, base: float) -> dict[str, Any]:
    """The sinusoidal encodings of n positions in d dimensions, and how alike positions are."""
    for name, value, (low, high) in (("n", n, LENGTHS), ("d", d, SIZES)):
        if not low <= value <= high:
            raise ConfigError(f"positions: {name} is {value} (must be from {low} to {high})")
    if not 1 <= base <= LARGEST_BASE:
        raise ConfigError(f"positions: base is {base:g} (must be from 1 to {LARGEST_BASE:g})")
    table = sinusoidal(n, d, base)
    return {
        "table": packed(table),
        "cosines": packed(cosine_table(table)),
        "wavelengths": wavelengths(d, base).tolist(),
        "python": "\n".join(
            [
                "from chainrule.inspect.embeddings import cosine_table",
                "from chainrule.nn.positions import sinusoidal",
                "",
                f"table = sinusoidal({n}, {d}, {base!r})",
                "print(cosine_table(table)[0])",
                "",
            ]
        ),
    }


LEARNED = [
    'task = cr.tasks.WordVectorsTask.of(cr.data.load("pydoc"))',
    "with cr.random.seeded(0):",
    f"    config = cr.models.Word2VecConfig(task.tokenizer.vocab_size, **{SETTINGS})",
    "    model = cr.models.SkipGram(config)",
    f"step = cr.train.WordVectorStep(model, task.ids, cr.train.WordTrainConfig(epochs={EPOCHS}))",
    f"for epoch in range({EPOCHS}):",
    "    list(step.read(epoch))",
    "vectors = WordVectors(*task.vectors(model))",
]


def program(read: list[str], word: str, analogy: tuple[str, ...]) -> str:
    """The same questions in Python, after the lines that read the vectors."""
    lines = ["import chainrule as cr", "from chainrule.inspect.embeddings import WordVectors", "", *read]
    lines += [f"neighbors = vectors.neighbors({word!r})", "print(neighbors)"]
    if all(analogy):
        lines.append(f"print(vectors.analogy({', '.join(map(repr, analogy))}))")
    return "\n".join([*lines, ""])
