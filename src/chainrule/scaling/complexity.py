"""How costs grow: attention against recurrence, maps of attention, tables of counts.

Numbers are multiply-adds for one sequence, half of the FLOPs of `flops`.
"""

from __future__ import annotations

from typing import NamedTuple

from chainrule.errors import ConfigError


def operations(n: int, d: int, hidden: int, m: int | None = None) -> dict[str, int]:
    """Multiply-adds of one block on n tokens; with `m`, of n queries to the m tokens of another sequence too.

    Up to about n = 6 d most of the work is in the matrices, not in attention.

    >>> operations(n=128, d=512, hidden=2048)
    {'attention': 16777216, 'projections': 134217728, 'feed-forward': 268435456}
    """
    _positive(n=n, d=d, hidden=hidden)
    found = {"attention": 2 * n * n * d, "projections": 4 * n * d * d, "feed-forward": 2 * n * d * hidden}
    return found if m is None else found | {"cross-attention": 2 * m * n * d}


def block_parameters(d: int, hidden: int, *, cross: bool = False, norms: int = 2) -> int:
    """Numbers of a transformer block without biases: 4 d² of attention, twice with attention to a source, 2 d hidden of
    the MLP, and a gain and a shift per norm.

    >>> block_parameters(d=512, hidden=2048)
    3147776
    """
    _positive(d=d, hidden=hidden)
    return (2 if cross else 1) * 4 * d * d + 2 * d * hidden + 2 * norms * d


def gpt_parameters(layers: int, d: int, tokens: int, vocab_size: int) -> int:
    """Numbers of a GPT with biases and a tied head: V d + n d, and 12 d² + 13 d per block; 2 d at the end.

    >>> gpt_parameters(layers=12, d=768, tokens=1024, vocab_size=50257)
    124439808
    """
    _positive(layers=layers, d=d, tokens=tokens, vocab_size=vocab_size)
    return (vocab_size + tokens) * d + layers * (12 * d * d + 13 * d) + 2 * d


class Costs(NamedTuple):
    """What a layer takes to let every token know of every other."""

    work: int
    """Multiply-adds, without the projections that both have."""
    sequential_steps: int
    """Steps that must wait for each other, however many processors there are."""
    path_length: int
    """Steps from the first token to the last."""


def comparison(n: int, d: int) -> dict[str, Costs]:
    """Attention and recurrence on n tokens of width d: n² d at once, or n d² one after the other."""
    _positive(n=n, d=d)
    return {"attention": Costs(n * n * d, 1, 1), "recurrence": Costs(n * d * d, n, n - 1)}


def score_count(n: int) -> int:
    """Scores of n tokens with each other, for one head: twice the length, four times the scores."""
    return n * n


def map_numbers(n: int, heads: int, layers: int) -> int:
    """Numbers in all maps of attention, n² h N, if they are written down. Our op keeps n h N of them instead."""
    return n * n * heads * layers


def activation_numbers(n: int, d: int, layers: int) -> int:
    """Numbers in the outputs of all blocks, n d N."""
    return n * d * layers


def dot_products(d: int, heads: int) -> dict[str, int]:
    """Multiply-adds of one score over all heads: cut into heads as much as one head, full size h times."""
    _positive(d=d, heads=heads)
    if d % heads:
        raise ConfigError(f"dot_products: width {d}, {heads} heads (must divide)")
    return {"one head": d, "cut into heads": heads * (d // heads), "full-size heads": heads * d}


def count_table(vocab_size: int, order: int) -> tuple[int, int]:
    """Shape of the full table of n-gram counts: a row for each context, a column for each token.

    >>> count_table(27, 3)
    (729, 27)
    """
    _positive(vocab_size=vocab_size, order=order)
    return int(vocab_size ** (order - 1)), vocab_size


def one_hot_numbers(tokens: int, vocab_size: int) -> int:
    """Numbers in the one-hot rows of so many tokens, all but one of each row zeros; ids are `tokens` numbers."""
    return tokens * vocab_size


def _positive(**sizes: int) -> None:
    for name, n in sizes.items():
        if n < 1:
            raise ConfigError(f"complexity: {name} is {n} (must be at least 1)")
