"""Where a model has what tuning changes: its matrices by what they make, its sublayers, blocks, head and biases.

    q k v o      queries, keys, values and the output of attention
    mlp          the matrices of the feed-forward part
    h.3.*.c_fc   a pattern over the names of layers

A matrix is named after its layer. Where one layer holds several, as GPT's c_attn, each has a name of its own behind it:
`h.0.attn.c_attn.q`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from chainrule.errors import ConfigError, Setting
from chainrule.models.bert.heads import body_of
from chainrule.models.model import Model
from chainrule.models.reward import Reward
from chainrule.nn import Layer, Linear
from chainrule.suggest import closest

# The last names of layers inside a block, by what they make; any other linear layer there is of the MLP.
ROLES = {
    "q": ("q_proj", "query", "q"),
    "k": ("k_proj", "key", "k"),
    "v": ("v_proj", "value", "v"),
    "o": ("o_proj", "out_proj", "o", "attn.c_proj", "attention.output.dense"),
}
FUSED = "c_attn"  # queries, keys and values, one above the other
PARTS = ("q", "k", "v")
MLP = "mlp"
# Sublayers whose output goes into the residual stream, by the ends of their names.
SUBLAYERS = {
    "attention": (
        *("attn", "self_attn", "encoder_attn", "SelfAttention", "EncDecAttention", "attention.output.dense"),
        "layers.#.attention",
    ),
    MLP: ("mlp", "fc2", "DenseReluDense", "layer.#.output.dense"),
}
EMBEDDINGS = ("wte", "wpe", "embed_tokens", "embed_positions", "embed_in", "embeddings", "shared")
NEAREST = 3  # names that a refusal shows


class Matrix(NamedTuple):
    """A matrix of a linear layer: all of it, or the rows from `start` to `stop`."""

    name: str
    path: str
    """Of its layer."""
    role: str
    layer: Linear
    rows: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(out, in)"""
        out, into = self.layer.weight.shape
        return (out if self.rows is None else self.rows[1] - self.rows[0]), into


def matrices(model: Layer) -> list[Matrix]:
    """The matrices of all linear layers inside blocks, in the order of the model."""
    found: list[Matrix] = []
    for path, layer in model.named_layers():
        if type(layer) is not Linear or block_of(path) is None:
            continue
        if path.endswith(f".{FUSED}"):
            size = layer.weight.shape[0] // len(PARTS)
            rows = ((place * size, (place + 1) * size) for place in range(len(PARTS)))
            found += [
                Matrix(f"{path}.{part}", path, part, layer, each)
                for part, each in zip(PARTS, rows, strict=True)
            ]
        else:
            found.append(Matrix(path, path, _role(path), layer))
    return found


def chosen(owner: str, model: Layer, targets: Sequence[str]) -> list[Matrix]:
    """The matrices that roles or patterns name; one that names nothing is refused."""
    there = matrices(model)
    named: set[str] = set()
    for target in targets:
        hits = [each.name for each in there if _is_meant(each, target)]
        if not hits:
            raise ConfigError(
                f"{owner}: ", Setting("targets"), f" {target!r} {_nothing(model, target, there)}"
            )
        named.update(hits)
    return [each for each in there if each.name in named]


def _is_meant(matrix: Matrix, target: str) -> bool:
    return target in (matrix.role, "all") or any(fnmatchcase(n, target) for n in (matrix.name, matrix.path))


def _nothing(model: Layer, target: str, there: Sequence[Matrix]) -> str:
    """Why a target names no matrix, and which it may mean."""
    if not there:
        return f"names no layer of a {type(model).__name__} (must be a model with linear layers in blocks)"
    roles = sorted({matrix.role for matrix in there})
    near = closest(target, [matrix.name for matrix in there], NEAREST, 0.4) or [there[0].name]
    listed = f"{', '.join(roles)}, all, or a pattern over names such as {', '.join(near)}"
    return f"names no layer of this {type(model).__name__} (must be {listed})"


def _role(path: str) -> str:
    return next((role for role, ends in ROLES.items() if _ends(path, ends)), MLP)


def _ends(path: str, ends: Sequence[str]) -> bool:
    """The path ends with one of these names; # is a number."""
    plain = re.sub(r"(?<=\.)\d+(?=\.|$)", "#", f".{path}")
    return any(plain.endswith(f".{end}") for end in ends)


def sublayers(model: Layer, kind: str) -> list[tuple[str, Layer]]:
    """The paths and layers of all sublayers of a kind, attention or mlp."""
    found: dict[str, Layer] = {}
    for path, layer in model.named_layers():
        inside = any(path.startswith(f"{outer}.") for outer in found)  # the last layer of one that was found
        if block_of(path) is not None and not inside and _ends(path, SUBLAYERS[kind]):
            found[path] = layer
    return list(found.items())


def block_of(path: str) -> int | None:
    """The number of the block that a path leads into, counted in each stack; None outside of all blocks."""
    found = re.search(r"(?:^|\.)(?:h|layers|layer|block)\.(\d+)(?:\.|$)", path)
    return None if found is None else int(found[1])


def embeddings(model: Layer) -> Iterator[Layer]:
    """What reads ids and positions."""
    for path, layer in model.named_layers():
        if block_of(path) is None and path.rpartition(".")[2] in EMBEDDINGS:
            yield layer


def head_of(model: Model) -> list[Layer]:
    """The layers that make of hidden rows what the model says; none if they are parts of the body too."""
    if isinstance(model, Reward):
        return [model.score]
    body = body_of(model)
    if body is not None:
        own: list[Layer] = [] if body is model else _beside(model, body)
        return own + ([body.pooler] if own and hasattr(body, "pooler") else [])
    head = getattr(model, "lm_head", None)
    return [head] if isinstance(head, Linear) else []


def _beside(model: Model, body: Layer) -> list[Layer]:
    return [
        part for part in vars(model).values() if isinstance(part, Layer) and part is not body and part.count()
    ]


def layer_at(model: Layer, path: str) -> Any:
    """The layer, or the list or dict of layers, at a path."""
    found: Any = model
    for word in path.split(".") if path else ():
        found = found[int(word)] if isinstance(found, list | tuple) else _inside(found, word)
    return found


def _inside(found: Any, word: str) -> Any:
    return found[word] if isinstance(found, dict) else getattr(found, word)


def put(model: Layer, path: str, layer: Layer | None) -> None:
    """Replace the layer at a path, by None to remove it."""
    parent, _, name = path.rpartition(".")
    setattr(layer_at(model, parent), name, layer)
