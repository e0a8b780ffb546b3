"""Processors and beam search next to those of transformers: the same tokens left, the same scores, the same texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from chainrule.generate import Beam, Sampling, process, search
from chainrule.generate import processors as ours

transformers = pytest.importorskip("transformers")
theirs = transformers.generation.logits_process


def logits_of(seed: int, V: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=V) * rng.uniform(0.5, 5)).astype(np.float32)


def peer(processor: Any, logits: np.ndarray, text: list[int] | None = None) -> np.ndarray:
    ids = torch.tensor([text or [0]])
    return np.asarray(processor(ids, torch.tensor(logits[None]).clone())[0])


CASES = [
    ("top_k", theirs.TopKLogitsWarper, [1, 7, 300, 2000]),
    ("top_p", theirs.TopPLogitsWarper, [0.05, 0.5, 0.9, 0.999]),
    ("min_p", theirs.MinPLogitsWarper, [0.01, 0.1, 0.9]),
    ("typical", theirs.TypicalLogitsWarper, [0.1, 0.5, 0.95]),
]


@pytest.mark.parametrize(("name", "kind", "value"), [(n, k, v) for n, k, values in CASES for v in values])
def test_the_same_tokens_are_left(name: str, kind: Any, value: float) -> None:
    for seed in range(8):
        logits = logits_of(seed)
        mine, want = getattr(ours, name)(logits, value), peer(kind(value), logits)
        assert ((mine > -np.inf) == (want > -np.inf)).all()
        assert (mine[mine > -np.inf] == want[mine > -np.inf]).all()


def test_the_same_penalty_of_repetition() -> None:
    text = np.random.default_rng(0).integers(1000, size=60).tolist()
    for penalty in (0.5, 1.3, 4.0):
        want = peer(theirs.RepetitionPenaltyLogitsProcessor(penalty), logits_of(1), text)
        np.testing.assert_allclose(ours.repetition(logits_of(1), text, penalty), want, rtol=1e-6)


def test_the_same_chain() -> None:
    """Bias, penalty, temperature, top-k, top-p, min-p, typical: the order of `generate` there."""
    text = [3, 5, 8]
    for seed in range(8):
        want = logits_of(seed)
        sampling = Sampling(
            temperature=0.7,
            top_k=200,
            top_p=0.95,
            min_p=0.01,
            typical=0.9,
            repetition_penalty=1.2,
            logit_bias={3: 2.0},
        )
        for processor in (
            theirs.SequenceBiasLogitsProcessor([[[3], 2.0]]),
            theirs.RepetitionPenaltyLogitsProcessor(1.2),
            theirs.TemperatureLogitsWarper(0.7),
            theirs.TopKLogitsWarper(200),
            theirs.TopPLogitsWarper(0.95),
            theirs.MinPLogitsWarper(0.01),
            theirs.TypicalLogitsWarper(0.9),
        ):
            want = peer(processor, want, text)
        mine = process(logits_of(seed), sampling, prompt=text)
        left = want > -np.inf
        assert ((mine > -np.inf) == left).all()
        np.testing.assert_allclose(mine[left] - mine[left].max(), want[left] - want[left].max(), atol=1e-5)


class Theirs:
    """A model of transformers as a reader, without a cache."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.seen: list[list[int]] = []

    def read(self, tokens: Any) -> Any:
        before = self.seen or [[] for _ in tokens]
        self.seen = [[*old, *new] for old, new in zip(before, tokens, strict=True)]
        with torch.no_grad():
            return self.model(torch.tensor(self.seen)).logits[:, -1].numpy()

    def keep(self, rows: Any) -> None:
        self.seen = [self.seen[row] for row in rows]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_beam_search_finds_the_same_texts(width: int) -> None:
    """Without a length penalty, since theirs is another: log P / length^α."""
    torch.manual_seed(0)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 40, "vocab_size": 20}
    config = transformers.GPT2Config(
        **size, initializer_range=0.8, bos_token_id=0, eos_token_id=1, pad_token_id=2
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    for start in range(3, 15):
        options = {
            "num_beams": width,
            "num_return_sequences": width,
            "length_penalty": 0.0,
            "max_new_tokens": 12,
        }
        want = model.generate(torch.tensor([[start]]), do_sample=False, early_stopping=False, **options)
        beam = Beam(width=width, n_best=width, length_penalty=0.0, max_new_tokens=12, stop_tokens=(1,))
        (found,) = search(Theirs(model), [[start]], beam)
        mine = [[start, *h.tokens, 1] if h.finished else [start, *h.tokens] for h in found]
        assert mine == [row[: row.index(1) + 1] if 1 in row else row for row in want.tolist()]  # no padding
