"""Small networks on which good and bad initialization are compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from chainrule import ops, random
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.data import load
from chainrule.doctor.report import Report, diagnose
from chainrule.errors import DataError
from chainrule.nn import MLP, Embedding, Layer
from chainrule.nn.init import Init, kaiming_normal, normal
from chainrule.optim import SGD

CONTEXT = 3  # letters that are read to guess the next one
EMBEDDING = 10
TANH = partial(kaiming_normal, activation="tanh")
SMALL = partial(normal, std=0.01)


@dataclass(frozen=True)
class LetterConfig:
    """Size and initialization of a LetterModel."""

    vocab_size: int
    hidden: tuple[int, ...] = (200,)
    init: Init = TANH  # of the weights between the layers; N(0, 1) is the bad example
    output_init: Init = SMALL


UNSCALED: dict[str, Any] = {"init": normal, "output_init": normal}


class LetterModel(Layer):
    """The MLP of Bengio et al. (2003): three letters, embedded and joined, tanh layers, scores of the next letter."""

    def __init__(self, config: LetterConfig) -> None:
        self.config = config
        self.embedding = Embedding(config.vocab_size, EMBEDDING)
        sizes = (CONTEXT * EMBEDDING, *config.hidden, config.vocab_size)
        self.mlp = MLP(sizes, "tanh", init=config.init, output_init=config.output_init)

    def forward(self, ids: Array) -> Tensor:
        """ids (N, 3) -> logits (N, V)"""
        return self.mlp(self.embedding(ids).reshape(len(ids), -1))

    def loss(self, ids: Array, targets: Array) -> Tensor:
        """ids (N, 3), targets (N,) -> mean negative log-likelihood in nats"""
        return ops.cross_entropy(self(ids), targets=targets)


def examples(names: list[str]) -> tuple[Array, Array, int]:
    """All contexts (N, 3) and next letters (N,) of the names, and the number of letters; 0 ends a name."""
    if not any(names):
        raise DataError("examples: no names (must be at least one letter)")
    letters = {letter: i + 1 for i, letter in enumerate(sorted(set("".join(names))))}
    contexts, targets = [], []
    for name in names:
        ids = [0] * CONTEXT + [letters[letter] for letter in name] + [0]
        contexts += [ids[i : i + CONTEXT] for i in range(len(ids) - CONTEXT)]
        targets += ids[CONTEXT:]
    return np.array(contexts), np.array(targets), len(letters) + 1


def train(model: LetterModel, contexts: Array, targets: Array, steps: int, lr: float = 0.1) -> Array:
    """The losses of `steps` steps of plain gradient descent on 32 examples each: (steps,)"""
    optimizer = SGD(model.parameters(), lr)
    losses = np.empty(steps)
    for step in range(steps):
        chosen = random.generator("letters", step, seed=0).integers(len(contexts), size=32)
        optimizer.zero_grad()
        loss = model.loss(contexts[chosen], targets[chosen])
        loss.backward()
        optimizer.step()
        losses[step] = loss.item()
    return losses


def loss_curves(steps: int) -> tuple[Array, Array, int]:
    """Losses (steps,) of the same model on the same words with bad and with good weights, and the number of letters."""
    words = sorted(set(re.findall(r"\b[a-z]{3,}\b", load("pydoc").text)))
    contexts, targets, V = examples(words)
    found = []
    for options in (UNSCALED, {}):
        with random.seeded(0):
            found.append(train(LetterModel(LetterConfig(V, **options)), contexts, targets, steps))
    return found[0], found[1], V


DRAWS: dict[str, Init | None] = {
    "gain": None,  # an MLP knows the gain itself
    "no gain": partial(kaiming_normal, activation="linear"),
    "large": normal,
    "small": SMALL,
}


def deep_network(
    depth: int,
    width: int,
    *,
    activation: str = "tanh",
    draw: str = "gain",
    norm: str | None = None,
    lr: float | None = None,
    seed: int = 0,
) -> Report:
    """`depth` hidden layers on standard normal inputs, weights as in `DRAWS`; with a rate also the next update."""
    with random.seeded(seed):
        model = MLP([width] * (depth + 1) + [10], activation, norm=norm, init=DRAWS[draw])
    rng = random.generator("deep tanh", seed=seed)
    x, y = rng.normal(size=(200, width)).astype(np.float32), rng.integers(10, size=200)
    optimizer = None if lr is None else SGD(model.parameters(), lr)
    return diagnose(
        model, (x, y), loss=lambda model, x, y: ops.cross_entropy(model(x), targets=y), optimizer=optimizer
    )


def deep_tanh(depth: int = 6, width: int = 256, *, gain: bool = True, seed: int = 0) -> Report:
    """`depth` tanh layers, drawn with or without the gain of tanh, on standard normal inputs."""
    return deep_network(depth, width, draw="gain" if gain else "no gain", seed=seed)
