"""What the figures of the lessons show, as series of points, maps and numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.foundations import calculus
from chainrule.foundations.attention import attend
from chainrule.foundations.information import entropy
from chainrule.inspect import maps
from chainrule.lessons import attention_heads, attention_scores, initialization, learning_rate, recurrence
from chainrule.lessons.depth import gradients_by_depth, random_stack
from chainrule.web.microscope.looks import packed

Made = dict[str, Any]


def line(name: str, x: Any, y: Any, **more: Any) -> Made:
    """A series: its name, its points, and how it is drawn."""
    return {"name": name, "x": np.asarray(x, float).tolist(), "y": np.asarray(y, float).tolist(), **more}


def slope(x: float, h: float) -> Made:
    """3x² - 4x + 5, its tangent and a secant."""

    def f(at: Any) -> Any:
        return 3 * at**2 - 4 * at + 5

    across = np.linspace(-2, 3, 80)
    secant, tangent = calculus.secant_slope(f, x, x + h), calculus.central_difference(f, x)
    return {
        "plots": [
            {
                "x": "x",
                "y": "f(x)",
                "low": -6,
                "high": 26,
                "series": [
                    line("f(x) = 3x² − 4x + 5", across, f(across)),
                    line("tangent", across, f(x) + tangent * (across - x), dashed=True, color=1),
                    line("secant", across, f(x) + secant * (across - x), dashed=True, color=2),
                    line("points", [x, x + h], [f(x), f(x + h)], dots=True, color=2),
                ],
            }
        ],
        "numbers": {"slope of the secant": secant, "slope of the tangent": tangent},
        "python": "from chainrule.foundations import calculus\n\n"
        f"print(calculus.secant_slope(lambda x: 3 * x**2 - 4 * x + 5, {x}, {x} + {h}))\n",
    }


def activations() -> Made:
    """The bends of networks and their slopes."""
    x = np.linspace(-4, 4, 121)
    values, slopes = [], []
    for color, name in enumerate(("sigmoid", "tanh", "relu", "gelu", "silu")):
        at = Tensor(x, requires_grad=True, dtype=np.float64)
        y = ops.all_ops()[name](at)
        y.backward(np.ones_like(x))
        values.append(line(name, x, y.numpy(), color=color))
        slopes.append(line(name, x, at.grad, color=color))
    plots = [{"x": "x", "y": "f(x)", "series": values}, {"x": "x", "y": "the slope f′(x)", "series": slopes}]
    return {
        "plots": plots,
        "numbers": {},
        "python": "import chainrule as cr\n\nprint(cr.ops.tanh(cr.Tensor([-1.0, 0.0, 1.0])))\n",
    }


def descent(rate: float) -> Made:
    """θ after each step of gradient descent on θ²."""
    path = learning_rate.descend(rate, 20)
    return {
        "plots": [
            {"x": "step", "y": "θ", "low": -2, "high": 2, "series": [line("θ", range(21), path, dots=True)]}
        ],
        "numbers": {"θ after one step": path[1], "θ after 20 steps": path[-1]},
        "python": f"from chainrule.lessons.learning_rate import descend\n\nprint(descend({rate}, 20))\n",
    }


def valley(rate: float) -> Made:
    """The paths of five optimizers."""
    paths = {name: learning_rate.cross_valley(name, rate, 40) for name in learning_rate.OPTIMIZERS}
    series = [
        line(name, *np.clip(path, -6, 6).T, dots=True, color=i)
        for i, (name, path) in enumerate(paths.items())
    ]
    return {
        "plots": [
            {"x": "x", "y": "y", "low": -1.6, "high": 1.6, "left": -4.6, "right": 1.6, "series": series}
        ],
        "numbers": {
            f"{name}: distance left": float(np.linalg.norm(path[-1])) for name, path in paths.items()
        },
        "python": "from chainrule.lessons.learning_rate import cross_valley\n\n"
        f'print(cross_valley("Adam", {rate}, 40)[-1])\n',
    }


@cache
def first_losses() -> Made:
    """Losses of the same training with bad and with good weights."""
    bad, good, V = initialization.loss_curves(300)
    smooth = np.ones(15) / 15
    x = np.arange(len(bad) - 14)
    series = [
        line("N(0, 1)", x, np.convolve(bad, smooth, "valid"), color=1),
        line("drawn with the gain, small last layer", x, np.convolve(good, smooth, "valid"), color=0),
        line("ln V: knows nothing", [0, x[-1]], [np.log(V)] * 2, color=7, dashed=True),
    ]
    return {
        "plots": [{"x": "step", "y": "loss in nats", "series": series}],
        "numbers": {
            "first loss, N(0, 1)": bad[0],
            "first loss, with the gain": good[0],
            "ln V": float(np.log(V)),
        },
        "python": "from chainrule.lessons.initialization import loss_curves\n\n"
        "bad, good, V = loss_curves(300)\nprint(bad[0], good[0], V)\n",
    }


def depth(scale: float) -> Made:
    """How a gradient changes on its way back through thirty layers."""
    stack, x = random_stack(30, 32, scale), np.linspace(-1, 1, 32)
    found = {
        "tanh layers": gradients_by_depth(stack, x, activation="tanh"),
        "with residual connections": gradients_by_depth(stack, x, activation="tanh", residual=True),
    }
    series = [
        line(name, range(31), np.maximum(y, 1e-12), color=i) for i, (name, y) in enumerate(found.items())
    ]
    return {
        "plots": [
            {
                "x": "layer (the loss is at the right)",
                "y": "gradient, relative",
                "log": True,
                "series": series,
            }
        ],
        "numbers": {f"{name}: at the first layer": y[0] for name, y in found.items()},
        "python": "import numpy as np\n\nfrom chainrule.lessons.depth import gradients_by_depth, random_stack\n\n"
        f'print(gradients_by_depth(random_stack(30, 32, {scale}), np.linspace(-1, 1, 32), activation="tanh")[0])\n',
    }


def through_time(scale: float) -> Made:
    """How a gradient changes on its way back through time, in nine random networks."""
    ratios = np.maximum(recurrence.ratios(scale), 1e-16)
    series = [
        line(f"network {i + 1}", range(ratios.shape[1]), row, color=0, faint=True)
        for i, row in enumerate(ratios)
    ]
    middle = np.exp(np.median(np.log(ratios), axis=0))
    series.append(line("the middle one", range(ratios.shape[1]), middle, color=1))
    return {
        "plots": [
            {"x": "step (the loss is at the right)", "y": "gradient, relative", "log": True, "series": series}
        ],
        "numbers": {"middle, at the first step": middle[0]},
        "python": f"from chainrule.lessons.recurrence import ratios\n\nprint(ratios({scale})[:, 0])\n",
    }


def gates() -> Made:
    """Plain recurrent networks and an LSTM."""
    found = {name.replace("$_h$", "ₕ"): y for name, y in recurrence.compared().items()}
    series = [line(name, range(1, 17), y, color=i) for i, (name, y) in enumerate(found.items())]
    return {
        "plots": [
            {"x": "step (the loss is at the right)", "y": "gradient, relative", "log": True, "series": series}
        ],
        "numbers": {f"{name}: at step 1": y[0] for name, y in found.items()},
        "python": "from chainrule.lessons.recurrence import compared\n\n"
        "print({name: norms[0] for name, norms in compared().items()})\n",
    }


def scores(d: float) -> Made:
    """Attention weights of one query over eight keys, with scores divided by √d and not."""
    size = round(d)
    raw = attention_scores.random_scores(size, 1, 8)[0]
    weights = {"q·k": ops.softmax(raw), "q·k / √d": ops.softmax(raw / np.sqrt(size))}
    found = attention_scores.score_variance(size, draws=2000)
    series = [
        line(name, range(1, 9), w, dots=True, color=1 - i) for i, (name, w) in enumerate(weights.items())
    ]
    return {
        "plots": [{"x": "key", "y": "weight", "low": 0, "high": 1, "series": series}],
        "numbers": {
            "variance of q·k": found.plain,
            "variance of q·k / √d": found.scaled,
            "largest weight, plain": found.plain_peak,
            "largest weight, divided": found.scaled_peak,
        },
        "python": f"from chainrule.lessons import score_variance\n\nprint(score_variance({size}, draws=2000))\n",
    }


def mixture(angle: float, length: float) -> Made:
    """A query among three keys, and the mean of their values that it gets."""
    around = np.deg2rad([90.0, 210.0, 330.0])
    keys = np.stack([np.cos(around), np.sin(around)], axis=1)
    query = length * np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
    output, weights = (found[0] for found in attend(query[None], keys, keys))
    series = [
        line("keys, and their values", *keys.T, line=False, size=6, color=0, labels=["k₁", "k₂", "k₃"]),
        line("a tenth of the query", [0, query[0] / 10], [0, query[1] / 10], color=7, dashed=True, dots=True),
        line("output", [output[0]], [output[1]], line=False, size=8, color=1),
    ]
    program = f"""\
import numpy as np

from chainrule.foundations.attention import attend

around = np.deg2rad([90.0, 210.0, 330.0])
keys = np.stack([np.cos(around), np.sin(around)], axis=1)
query = {length} * np.array([np.cos(np.deg2rad({angle})), np.sin(np.deg2rad({angle}))])
print(attend(query[None], keys, keys))
"""
    return {
        "plots": [{"x": "", "y": "", "low": -1.4, "high": 1.4, "left": -2.6, "right": 2.6, "series": series}],
        "numbers": {f"weight of key {i + 1}": weight for i, weight in enumerate(weights)},
        "python": program,
    }


def average() -> Made:
    """Two heads with weights of their own, and the running average that attention begins with."""
    words = ["the", "cat", "that", "I", "saw", "was", "black"]
    T = len(words)
    found = [("the running average", np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None])]
    found += attention_heads.random_heads(T)[1:]
    return {
        "plots": [],
        "maps": [{"title": name, "labels": words, "values": packed(A)} for name, A in found],
        "numbers": {"sum of each row": float(found[1][1].sum(axis=1)[0])},
        "python": "from chainrule.lessons.attention_heads import random_heads\n\nprint(random_heads(7))\n",
    }


@cache
def heads() -> Made:
    """Both heads of a GPT that was trained just now to name the first token and the one before."""
    model, ids = attention_heads.trained_gpt(), attention_heads.texts(1, step=1 << 20)
    found = [A for layer in maps(model, ids).values() for A in layer[0]]
    T = len(ids[0])
    first = [float(A[1:, 0].mean()) for A in found]
    before = [float(np.diagonal(A, -1)[1:].mean()) for A in found]
    labels = [attention_heads.LETTERS[i] for i in ids[0]]
    numbers: dict[str, float] = {}
    for h in range(len(found)):
        numbers |= {
            f"head {h + 1}: on the first token": first[h],
            f"head {h + 1}: on the one before": before[h],
        }
    return {
        "plots": [],
        "maps": [
            {"title": f"head {h + 1}", "labels": labels, "values": packed(A)} for h, A in enumerate(found)
        ],
        "numbers": numbers,
        "python": "import chainrule as cr\nfrom chainrule.lessons import attention_heads\n\n"
        "model, ids = attention_heads.trained_gpt(), attention_heads.texts(1, step=1 << 20)\n"
        f"print(cr.inspect.maps(model, ids), {T})\n",
    }


def temperature(t: float) -> Made:
    """Five logits as probabilities at a temperature."""
    logits = np.array([3.0, 2.0, 1.0, 0.5, -1.0])
    p, plain = ops.softmax(logits / t), ops.softmax(logits)
    return {
        "plots": [{"x": "token", "y": "probability", "low": 0, "high": 1, "series": [
            line(f"temperature {t:g}", range(1, 6), p, dots=True),
            line("temperature 1", range(1, 6), plain, color=7, dashed=True)]}],
        "numbers": {"probability of the first": p[0], "entropy in nats": entropy(p)},
        "python": f"import chainrule as cr\n\nprint(cr.ops.softmax([x / {t} for x in (3.0, 2.0, 1.0, 0.5, -1.0)]))\n",
    }  # fmt: skip
