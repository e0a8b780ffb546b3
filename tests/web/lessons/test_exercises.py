"""Exercises: every answer is what the library computes, and nothing of a reply is executed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.foundations import calculus, information, linear_algebra
from chainrule.scalar import Expression
from chainrule.web.lessons import reading
from chainrule.web.lessons.exercises import Exercise


def gradient(text: str, name: str, **values: float) -> float:
    nodes = Expression.read(text).graph(values)
    nodes[Expression.read(text).root].backward()
    return nodes[name].grad


def size(**sizes: int) -> int:
    return cr.models.MLPConfig(batch_norm=False, **sizes).n_params


def first_step() -> float:
    place = cr.autograd.Param(np.array([1.0]), "w", dtype=np.float64)
    parameters = cr.autograd.Parameters([("w", place)])
    optimizer = cr.optim.Adam(parameters, 0.1)
    (place * 5.0).sum().backward()
    optimizer.step()
    return 1.0 - float(place.array[0])


def weights(model: Any, *parts: str) -> int:
    return sum(
        p.size
        for name, p in model.named_parameters()
        if any(part in name for part in parts) and len(p.shape) > 1
    )


def gpt(**sizes: int) -> Any:
    return cr.models.GPT.abstract(cr.models.GPTConfig(**sizes))


# Lesson -> what each exercise asks for, as the library computes it.
COMPUTED: dict[str, list[Callable[[], Any]]] = {
    "one-number": [
        lambda: "10*x - 3",
        lambda: calculus.gradient_descent(lambda x: np.array([6 * x[0] - 4]), [0.0], 0.1, 200)[-1][0],
    ],
    "chain-rule": [
        lambda: gradient("w6 * (w3 + w1 * w2)", "w2", w1=2, w2=-3, w3=10, w6=-2),
        lambda: gradient("b * b + b", "b", b=5),
    ],
    "vectors": [lambda: linear_algebra.dot([1, 2, 3], [4, -5, 6]), lambda: cr.nn.Linear(3, 4).count()],
    "probability": [lambda: information.surprise(1 / 8), lambda: cross_entropy_gradient(0.7)],
    "counting": [lambda: cr.models.NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4).nll(),
                 lambda: cr.models.NGram.fit([[1]], order=3, vocab_size=27).table_size],
    "network": [
        lambda: gradient("sigmoid(w1*x1 + w2*x2 + b)", "w1", w1=0.4, x1=0.5, w2=0.6, x2=0.8, b=-0.5),
        lambda: size(block_size=3, n_embd=4, n_hidden=32, vocab_size=8),
    ],
    "descent": [lambda: 0.5, first_step],
    "initialization": [
        lambda: cr.inspect.expected_loss(27),
        lambda: 1 - np.tanh(cr.inspect.saturation_point(0.99)) ** 2,
    ],
    "tokens": [lambda: 26 + 100, lambda: 300 * 2.4 / 1200],
    "embeddings": [
        lambda: cr.inspect.embeddings.cosine_similarity([1, 2], [2, 1]),
        lambda: cr.nn.Embedding(50_000, 512).count(),
    ],
    "recurrence": [
        lambda: cr.lessons.gradients_by_depth([0.5 * np.eye(2)] * 10, [1.0, 1.0])[0],
        lambda: np.prod([0.9] * 20),
    ],
    "attention": [
        lambda: cr.ops.attention_weights(
            np.array([[[[2.0, 0, 0, 0]]]]), np.array([[[[1.0, 0, 0, 0], [0, 0, 0, 0]]]])
        )[0, 0, 0, 0],
        lambda: cr.lessons.score_variance(100, draws=20_000).plain ** 0.5,
    ],
    "self-attention": [
        lambda: np.count_nonzero(cr.foundations.attention.averaging_matrix(4)),
        lambda: cr.ops.layernorm(np.array([[1.0, 3.0]]), np.ones(2), np.zeros(2), eps=0.0)[0, 1],
    ],
    "heads": [lambda: 768 // cr.models.GPTConfig(n_head=12, n_embd=768).n_head,
              lambda: weights(gpt(n_layer=1, n_head=12, n_embd=768, vocab_size=10, block_size=10), "attn")],
    "positions": [lambda: cr.nn.positions.sinusoidal(4, 8)[3, 0], lambda: cr.nn.positions.wavelengths(8)[0]],
    "transformer": [
        lambda: weights(gpt(n_layer=12, n_head=12, n_embd=768, vocab_size=10, block_size=10), "attn", "mlp"),
        lambda: (4000 / 1000) ** 2,
    ],
    "objectives": [lambda: information.perplexity(2.0), lambda: np.divide(*cr.ops.softmax(np.array([2.0, 1.0]) / 0.5))],
    "scaling": [
        lambda: cr.scaling.laws.published.KAPLAN_N(2e9) / cr.scaling.laws.published.KAPLAN_N(1e9),
        lambda: 20 * cr.scaling.laws.allocation.chinchilla(6 * 70e9 * 1.4e12).params,
    ],
    "tuning": [lambda: 15, lambda: sum(np.prod(shape) for shape in ((768, 8), (8, 768)))],
    "preferences": [lambda: 1 / (1 + np.exp(-1.0)), lambda: np.divide(*tilted(0.5)), lambda: dpo_start()],
}  # fmt: skip


def cross_entropy_gradient(p: float) -> float:
    logits = cr.Tensor(np.log([[p, 1 - p]]), requires_grad=True, dtype=np.float64)
    cr.ops.cross_entropy(logits, targets=np.array([0])).backward()
    return float(logits.grad[0, 0])


def tilted(beta: float) -> Any:
    """π* of two answers that are alike but for a reward of 1"""
    p = 0.5 * np.exp(np.array([1.0, 0.0]) / beta)
    return p / p.sum()


def dpo_start() -> float:
    world = cr.align.World.random(vocabulary=3, length=2, prompts=2, seed=1)
    model = cr.align.DPO(world.reference, cr.align.preference_loss("sigmoid", beta=0.5))
    return float(model.loss(*world.preferences()).item())


@pytest.mark.parametrize("name", reading.lessons())
def test_the_answer_of_every_exercise_is_what_the_library_computes(ask: Any, name: str) -> None:
    assert len(COMPUTED[name]) == len(reading.lesson(name).exercises)
    for number, compute in enumerate(COMPUTED[name]):
        value = compute()
        reply = value if isinstance(value, str) else repr(float(value))
        judged = ask(f"/api/lessons/{name}/check", reply=reply, exercise=number)
        assert judged["right"], (name, number, reply, judged)
        wrong = f"({reply}) * 1.3 + 1.1"
        assert not ask(f"/api/lessons/{name}/check", reply=wrong, exercise=number)["right"]


def made(**given: Any) -> Exercise:
    return Exercise("?", **given)


def test_numbers_and_expressions() -> None:
    number = made(answer="2 / 3", hint="think", why="because")
    assert number.judge("0.667")["right"] and number.judge("2/3") == {
        "right": True,
        "said": "Right.",
        "more": "because",
    }
    assert number.judge("1")["said"] == "Not yet: 1 is too large." and number.judge("-1")["more"] == "think"
    slope = made(answer="2 * x * y")
    assert slope.judge("x * y + y * x")["right"] and slope.judge("2x*y".replace("2x", "2*x"))["right"]
    assert not slope.judge("2 * x")["right"] and "at x = 0.37" in slope.judge("2 * x")["said"]
    assert made(answer="x ** 2").judge("x^2")["right"]
    assert (
        made(answer="16", within=0).judge("16")["right"]
        and not made(answer="16", within=0).judge("16.1")["right"]
    )


@pytest.mark.parametrize(
    "reply",
    [
        "__import__('os')",
        "open('x')",
        "x.__class__",
        "(lambda: 1)()",
        "[1]",
        "'a'",
        "",
        "z + 1",
        "9 ** 9 ** 9",
        "1 / 0",
    ],
)
def test_nothing_of_a_reply_is_executed(reply: str) -> None:
    with pytest.raises(cr.ChainruleError):
        made(answer="2 * x").judge(reply)


def test_long_and_missing_replies_are_refused(ask: Any) -> None:
    assert "301 characters" in ask("/api/lessons/vectors/check", status=400, reply="1" * 301)["error"]
    assert "no exercise 9" in ask("/api/lessons/vectors/check", status=400, reply="1", exercise=9)["error"]


@pytest.mark.parametrize("reply", ["2*pi", "2π", "π * 2", "6.283"])
def test_pi_is_known(reply: str) -> None:
    assert made(answer="6.283185").judge(reply)["right"]
    assert made(answer="2 * pi").judge(reply)["right"]


@pytest.mark.parametrize("line", ["answer: 1\nwithin: abc", "answer: open(1)", "answer: 2 +"])
def test_a_field_that_cannot_be_read_names_the_file(line: str) -> None:
    with pytest.raises(cr.ConfigError, match=r"lesson\.md: (within|answer)"):
        Exercise.read(f"ask: a\n{line}", Path("lesson.md"))


def test_a_field_twice_is_refused() -> None:
    with pytest.raises(cr.ConfigError, match="exercise has"):
        Exercise.read("ask: a\nask: b\nanswer: 1", Path("lesson.md"))
