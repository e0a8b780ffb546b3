"""`diagnose` on any model: complete, in words, and without leaving a trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn, optim
from chainrule.doctor import Code, Watch, diagnose
from chainrule.errors import ConfigError
from chainrule.lessons.initialization import UNSCALED, LetterConfig, LetterModel
from chainrule.models import GPT, GPTConfig, LanguageModel, Llama, LlamaConfig

V = 19


class Recurrent(LanguageModel):
    """An embedding, a recurrent layer and a head."""

    def __init__(self, layer: Callable[[int, int], nn.Layer]) -> None:
        self.config = GPTConfig(vocab_size=V, block_size=12)
        self.table = nn.Embedding(V, 10)
        self.cell = layer(10, 14)
        self.head = nn.Linear(14, V)

    def forward(self, ids: np.ndarray) -> cr.Tensor:
        return self.head(self.cell(self.table(ids))[0])


def gpt(**options: object) -> GPT:
    return GPT(
        GPTConfig(**{"n_layer": 3, "n_head": 2, "n_embd": 32, "block_size": 12, "vocab_size": V} | options)
    )


MODELS = {
    "GPT": gpt,
    "dropout": lambda: gpt(dropout=0.2),
    "Llama": lambda: Llama(
        LlamaConfig(n_layer=2, n_head=2, n_kv_head=1, n_embd=16, n_hidden=24, vocab_size=V)
    ),
    "RNN": lambda: Recurrent(nn.RNN),
    "GRU": lambda: Recurrent(nn.GRU),
    "LSTM": lambda: Recurrent(nn.LSTM),
}


def batch(B: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(seed).integers(V, size=(B, 13))
    return ids[:, :-1], ids[:, 1:]


@pytest.mark.parametrize("name", MODELS)
def test_any_model_is_diagnosed_and_left_alone(name: str) -> None:
    cr.seed(0)
    model = MODELS[name]().eval()
    model.loss(*batch(seed=1)).backward()
    params = model.parameters()
    optimizer = optim.AdamW(params, 1e-3)
    before = model.state(), params.grad.copy(), cr.random.position()
    report = diagnose(model, batch(), optimizer=optimizer)
    assert all((value == before[0][key]).all() for key, value in model.state().items())
    assert (params.grad == before[1]).all() and cr.random.position() == before[2]
    assert not model.training and optimizer.steps == 0

    assert report.findings[0].code.startswith("initial_loss") and report.expected_loss == pytest.approx(
        np.log(V)
    )
    assert report.layers and all(layer.grad is not None for layer in report.layers)
    assert [p.name for p in report.parameters] == list(dict(model.named_parameters()))
    assert all(p.grad_norm > 0 and p.update_norm > 0 for p in report.parameters)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["layers"][0]["value"]["histogram"]["counts"]


def test_a_healthy_gpt_has_no_problem_and_keeps_none_back() -> None:
    cr.seed(0)
    report = diagnose(gpt(), batch(16))
    assert report.problems == () and report.findings[0].level == "ok"
    assert [layer.name for layer in report.layers][:4] == ["add", "h.0.add", "h.0.mlp.gelu", "h.0.add#2"]


def test_the_bad_letter_model_is_told_what_is_wrong() -> None:
    cr.seed(0)
    rng = np.random.default_rng(0)
    examples = rng.integers(27, size=(200, 3)), rng.integers(27, size=200)
    bad = diagnose(LetterModel(LetterConfig(27, **UNSCALED)), examples)
    assert {Code.INITIAL_LOSS_HIGH, Code.SATURATED} <= {f.code for f in bad.problems}
    assert "measured" in bad.problems[0].meaning and "tanh" in bad.problems[1].measured
    assert diagnose(LetterModel(LetterConfig(27)), examples).problems == ()


def test_batch_norm_keeps_its_running_statistics() -> None:
    cr.seed(0)
    model = nn.MLP([4, 6, 2], "tanh", norm="batch")
    before = model.state()
    diagnose(model, (np.random.default_rng(0).normal(5, size=(8, 4)).astype(np.float32),), loss=_sum)
    assert all((value == before[key]).all() for key, value in model.state().items())


def _sum(model: nn.Layer, x: np.ndarray) -> cr.Tensor:
    return model(x).sum()


def test_the_first_layer_that_breaks_is_named() -> None:
    cr.seed(0)
    model = gpt()
    model.h[1].mlp.c_fc.weight.array[0, 0] = np.inf
    problems = {f.code: f for f in diagnose(model, batch()).problems}
    assert "h.1.mlp.gelu is the first of" in problems[Code.ACTIVATIONS_NOT_FINITE].measured
    assert "the gradient is not finite" in problems[Code.GRADIENT_NOT_FINITE].measured


def test_parameters_without_gradient_are_named() -> None:
    cr.seed(0)
    model = nn.MLP([4, 6, 2], "tanh")
    for layer in model.layers:
        layer.weight.array[...] = 0  # all zeros: nothing but the last bias ever learns (E-002-22)
    (finding,) = diagnose(model, (np.ones((3, 4), np.float32),), loss=_sum).problems
    assert finding.measured.startswith("layers.0.weight, layers.0.bias, layers.1.weight: the gradient is 0")


def test_a_trained_model_must_beat_guessing() -> None:
    cr.seed(0)
    model = gpt()
    assert diagnose(model, batch(), step=100).findings[0].code in (Code.LOSS_OK, Code.LOSS_HIGH)
    model.wte.weight.array *= 100
    assert diagnose(model, batch(), step=100).findings[0].code is Code.LOSS_HIGH


def test_watching_a_run_does_not_change_it(tmp_path: Path) -> None:
    """The same bits with and without, dropout included; the records are lines of log.jsonl."""

    def steps(watch: Watch | None) -> tuple[list[float], list[dict[str, object]]]:
        cr.seed(0)
        model = gpt(dropout=0.1)
        optimizer = optim.AdamW(model.parameters(), 1e-2)
        losses, records = [], []
        for step in range(1, 8):
            optimizer.zero_grad()
            with cr.random.step(step):
                loss = model.loss(*batch(seed=step))
                loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if watch and (record := watch.observe(step, model, batch(seed=step), optimizer)):
                records.append(record)
        return losses, records

    watched, records = steps(Watch(every=3))
    assert watched == steps(None)[0]
    assert [record["step"] for record in records] == [1, 3, 6]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record, allow_nan=False) + "\n" for record in records))
    seen = cr.train.log.read(path)[-1]["watch"]
    assert set(seen) == {"loss", "entropy", "layers", "parameters", "problems", "findings"}
    assert set(seen["layers"]["h.0.mlp.gelu"]) == {"std", "grad_std", "flat", "dead"}
    assert 0 < seen["parameters"]["wte.weight"]["update_ratio"] < 1
    with pytest.raises(ConfigError, match="every is 0"):
        Watch(every=0)


def test_a_record_holds_the_numbers_of_the_report() -> None:
    model = gpt()
    optimizer = optim.AdamW(model.parameters(), 1e-2)
    report = diagnose(model, batch(), optimizer=optimizer, step=4)
    seen = Watch(every=4).observe(4, model, batch(), optimizer)
    assert seen is not None and seen["watch"]["loss"] == report.loss
    for layer in report.layers:
        assert layer.grad is not None
        assert seen["watch"]["layers"][layer.name] == {
            "std": layer.value.std,
            "grad_std": layer.grad.std,
            "flat": layer.flat,
            "dead": len(layer.dead),
        }
    for p in report.parameters:
        found = seen["watch"]["parameters"][p.name]
        assert found == {"weight": p.weight_norm, "grad": p.grad_norm, "update_ratio": p.update_ratio}
