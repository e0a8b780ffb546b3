"""An induction circuit written by hand: a GPT of two layers that copies what followed a token the last time.

    layer 0, head 0     looks at the token before, and writes it down beside the token:  … [B, after A] …
    layer 1, head 1     looks for a place that stands after its own token: A finds B, and B is what comes next

So "A B … A" continues with B, whatever A and B are. The first head looks by position, the second by what the first has
written: neither can do it alone. (Elhage et al. 2021; Olsson et al. 2022) Other heads and the MLPs add nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.models import GPT, GPTConfig

START = 0  # the first token of every text, and of no other place
SHARP = 30.0  # the score of a match; without one it is 0
SURE = 10.0  # the logit of the token that is copied


def induction_gpt(vocab_size: int = 10, block_size: int = 24) -> GPT:
    """A GPT that continues a repetition; texts begin with START.

    >>> import numpy as np
    >>> from chainrule.lessons.networks.induction import induction_gpt
    >>> logits = induction_gpt()(np.array([[0, 7, 3, 9, 5, 7, 3]])).numpy()[0]
    >>> logits[-2:].argmax(-1).tolist()                             # 7 3 9 5 7 3: after 7 came 3, after 3 came 9
    [3, 9]
    """
    V, T = vocab_size, block_size
    half = max(V, T, (3 * V + T + 1) // 2)  # numbers of a head
    model = GPT(GPTConfig(2, 2, 2 * half, T, V, tied=False))
    token, position, previous, following = (_part(start, n) for start, n in _layout(V, T))
    for _, param in model.named_parameters():
        param.data[...] = 0
    model.wte.weight.data[:, token] = np.eye(V)
    model.wpe.weight.data[:, position] = np.eye(T)
    for norm, ones in ((model.h[0].ln_1, 2), (model.h[1].ln_1, 3), (model.ln_f, 4)):
        _keep(norm, ones, 2 * half)
    s = np.sqrt(SHARP * np.sqrt(half))
    _head(
        model.h[0].attn, 0, half, (s * np.eye(T, k=1), position), (s * np.eye(T), position), token, previous
    )
    _head(model.h[1].attn, 1, half, (s * np.eye(V), token), (s * np.eye(V), previous), token, following)
    model.lm_head.weight.data[:, following] = SURE * np.eye(V)
    return model


def _layout(V: int, T: int) -> list[tuple[int, int]]:
    """Where in a row of the stream are: the token, its position, the token before, the token that comes next."""
    sizes = [V, T, V, V]
    return [(sum(sizes[:i]), n) for i, n in enumerate(sizes)]


def _part(start: int, n: int) -> slice:
    return slice(start, start + n)


def _keep(norm: Any, ones: int, C: int) -> None:
    """A norm that gives back rows of zeros with so many ones."""
    mean = ones / C
    norm.weight.data[...] = np.sqrt(mean - mean * mean + norm.eps)
    norm.bias.data[...] = mean


def _head(attn: Any, head: int, D: int, query: Any, key: Any, read: slice, write: slice) -> None:
    """A head that compares queries and keys, each a matrix and what it reads, and copies from `read` to `write`."""
    C, first, n = 2 * D, head * D, read.stop - read.start
    for third, (W, of) in enumerate((query, key, (np.eye(n), read))):
        start = third * C + first
        attn.c_attn.weight.data[start : start + len(W), of] = W
    attn.c_proj.weight.data[write, first : first + n] = np.eye(n)
