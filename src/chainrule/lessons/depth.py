"""What depth does to a gradient on its way back, with and without residual connections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.inspect.gradients import norm
from chainrule.nn.activation import activation as get_activation
from chainrule.random import generator


def gradients_by_depth(
    weights: Sequence[npt.ArrayLike], x: npt.ArrayLike, *, activation: str = "linear", residual: bool = False
) -> npt.NDArray[np.float64]:
    """Norms of the gradient at the input of every layer and at the output, relative to the output: (L + 1,)

    A layer is f(W x), with `residual` x + f(W x); the gradient at the output is 1 in every entry.

    >>> import numpy as np
    >>> from chainrule.lessons.depth import gradients_by_depth
    >>> float(gradients_by_depth([0.5 * np.eye(2)] * 10, [1.0, 1.0])[0])     # 0.5 ** 10
    0.0009765625
    """
    if not weights:
        raise ConfigError("gradients_by_depth: no weights (must be at least one layer)")
    f = get_activation(activation)
    hidden = Tensor(np.asarray(x, np.float64), requires_grad=True, dtype=np.float64)
    norms: list[float] = []

    def keep(grad: Array) -> None:
        norms.append(norm(grad))

    hidden.register_hook(keep)
    for W in weights:
        out = f(hidden @ np.asarray(W, np.float64).T)
        hidden = hidden + out if residual else out
        hidden.register_hook(keep)
    hidden.backward(np.ones(hidden.shape))
    found = np.array(norms[::-1])  # backward meets the output first
    return found / found[-1]


def random_stack(depth: int, width: int, scale: float, seed: int = 0) -> list[Array]:
    """`depth` matrices with entries N(0, scale²/width)."""
    rng = generator("random stack", seed=seed)
    return [scale / np.sqrt(width) * rng.normal(size=(width, width)) for _ in range(depth)]
