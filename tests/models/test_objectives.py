"""Objectives: the causal loss and its perplexity; one cross-entropy beneath all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.foundations.information import perplexity
from chainrule.models import FAMILIES, IGNORE, BERTPretraining, BERTPretrainingConfig, LanguageModel
from chainrule.models.microbatch import spare
from tests.models.tiny import float64, tiny
from tests.vectors import vector

IDS = np.random.default_rng(1).integers(11, size=(2, 7))


class Fixed(LanguageModel):
    """Gives the next token, 0, these probabilities, whatever it reads."""

    def __init__(self, p: list[float]) -> None:
        rest = 1 - np.array(p)
        self.logits = np.log(np.stack([p, *(10 * [rest / 10])], axis=-1))[None]  # (1, T, 11)

    def forward(self, ids: Any) -> cr.Tensor:
        return cr.Tensor(self.logits)


@pytest.mark.requirement("R-363", "R-365")
def test_the_loss_of_a_text_and_its_perplexity() -> None:
    v = vector("der-perplexity")
    p = v.inputs["p"]
    zeros = np.zeros((1, len(p)), int)
    mean = Fixed(p).loss(zeros, zeros).item()
    v.check({"sum": mean * len(p), "mean": mean, "ppl": float(perplexity(mean))})


@pytest.mark.requirement("R-363")
@pytest.mark.parametrize("name", FAMILIES)
def test_each_token_is_judged_by_what_came_before_it(name: str) -> None:
    """The loss is -Σ log P(x_t | x_<t) / T, with each factor from the prefix alone."""
    model = float64(tiny(name)).eval()
    losses = []
    for t in range(1, IDS.shape[1]):
        scores = ops.log_softmax(model(IDS[:, :t])).numpy()[:, -1]  # of the prefix of length t
        losses.append(-scores[[0, 1], IDS[:, t]])
    assert model.loss(IDS[:, :-1], IDS[:, 1:]).item() == pytest.approx(np.mean(losses), rel=1e-10)


@pytest.mark.requirement("R-365")
def test_perplexity_is_an_effective_number_of_choices() -> None:
    v = vector("004-13.1.3-ppl10")
    zeros = np.zeros((1, 4), int)
    v.check(float(perplexity(Fixed(v.inputs["p"]).loss(zeros, zeros).item())))
    for choices in (2, 10, 11):
        logits = np.where(np.arange(11) < choices, 0.0, -np.inf)  # equally likely, the others impossible
        loss = ops.cross_entropy(np.tile(logits, (3, 1)), targets=np.array([0, 1, 1]))
        assert perplexity(loss) == pytest.approx(choices)


@pytest.fixture
def rows_judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each call of the common function got."""
    seen: list[int] = []
    common = ops.cross_entropy.forward.__globals__["row_losses"]

    def watched(z: Any, goal: Any) -> Any:
        seen.append(len(z))
        return common(z, goal)

    for op in (ops.cross_entropy, ops.linear_cross_entropy):
        assert op.forward.__globals__["row_losses"] is common
        monkeypatch.setitem(op.forward.__globals__, "row_losses", watched)
    return seen


LOGITS = np.random.default_rng(2).normal(size=(2, 6, 11))
MASKED = np.where(np.random.default_rng(3).random((2, 6)) < 0.4, IDS[:, 1:], IGNORE)
ANSWERS = np.where(np.arange(6) >= 3, IDS[:, 1:], IGNORE)  # an instruction of three tokens does not count

BERT = BERTPretrainingConfig(
    n_layer=1, n_head=2, n_embd=8, n_hidden=16, block_size=6, vocab_size=11, next_sentence=True
)

OBJECTIVES: dict[str, Callable[[], Any]] = {
    "causal, fused with the head": lambda: tiny("gpt").loss(IDS[:, :-1], IDS[:, 1:]),
    "causal": lambda: tiny("rnn").loss(IDS[:, :-1], IDS[:, 1:]),
    "masked": lambda: ops.cross_entropy(LOGITS, targets=MASKED, ignore_index=IGNORE),
    "masked, and next sentence": lambda: BERTPretraining(BERT).loss((IDS[:, 1:], None, None, [0, 1]), MASKED),
    "instruction": lambda: tiny("llama").loss(IDS[:, :-1], ANSWERS),
    "smoothing": lambda: ops.cross_entropy(LOGITS, targets=IDS[:, 1:], label_smoothing=0.1),
    "distributions": lambda: ops.cross_entropy(LOGITS, targets=np.full((2, 6, 11), 1 / 11)),
}


@pytest.mark.requirement("R-376")
@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_is_the_same_cross_entropy(name: str, rows_judged: list[int]) -> None:
    with cr.backend("reference"):
        OBJECTIVES[name]()
    count = int(np.count_nonzero(MASKED != IGNORE))
    asked = count + spare(count, MASKED.size)  # of these and few others BERT computes words
    assert rows_judged == ([asked, 2] if "next sentence" in name else [12])


@pytest.mark.requirement("R-376")
def test_objectives_differ_in_their_targets_alone() -> None:
    """-Σ t log p of a common formula: which rows count, and what t is."""
    logp = ops.log_softmax(LOGITS)
    picked = np.take_along_axis(logp, IDS[:, 1:, None], axis=-1)[..., 0]
    for targets in (MASKED, ANSWERS):
        got = ops.cross_entropy(LOGITS, targets=targets, ignore_index=IGNORE)
        assert got == pytest.approx(-picked[targets != IGNORE].mean())
    smooth = 0.9 * np.eye(11)[IDS[:, 1:]] + 0.1 / 11
    assert OBJECTIVES["smoothing"]() == pytest.approx(-(smooth * logp).sum(-1).mean())
    assert OBJECTIVES["smoothing"]() == pytest.approx(ops.cross_entropy(LOGITS, targets=smooth))
