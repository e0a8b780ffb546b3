"""The table of docs/guide/doctor.md: healthy runs of every family are left in peace, planted faults are found."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.data import load
from chainrule.doctor import rules
from chainrule.doctor.finding import Code
from chainrule.inspect.activations import Distribution, LayerReport
from chainrule.models.registry import KNOWN
from chainrule.runs import Run
from chainrule.train.config import defaults
from chainrule.train.skips import Diverged

SMALL = {"n_layer": 3, "n_head": 2, "n_embd": 32, "n_hidden": 64, "block_size": 32, "n_context": 4}
SETTINGS: dict[str, Any] = {
    "max_steps": 150,
    "batch_size": 16,
    "warmup": 10,
    "eval_every": 50,
    "eval_windows": 64,
}
TEXTS = ("gpt", "llama", "neox", "mlp", "rnn", "gru", "lstm", "bert")
PAIRS = ("seq2seq", "t5")
LABELS = ("bert-classifier", "bow-classifier")


def data_of(family: str, folder: Path) -> Path:
    """Data that the family can learn something of in a minute of a small machine: built-in text, pairs, labels."""
    path = folder / f"{family}.txt"
    text = load("pydoc").text
    if family in PAIRS:
        words = sorted({word for word in text.lower().split() if word.isalpha() and len(word) < 10})
        path = path.with_suffix(".tsv")
        text = "\n".join(f"{word}\t{word.upper()}" for word in words[:1500])
    elif family in LABELS:
        lines = [line.split() for line in text.splitlines() if 4 <= len(line.split()) <= 12]
        path = path.with_suffix(".tsv")
        text = "text\tlabel\n" + "\n".join(
            f"{' '.join(words)}\t{'with' if 'the' in words else 'without'}" for words in lines[:1500]
        )
    else:
        text = text[:120_000]
    path.write_text(text, encoding="utf-8")
    return path


def run_of(folder: Path, family: str = "gpt", **settings: Any) -> Run:
    known = {f.name for f in fields(KNOWN[family].config)}
    sizes: dict[str, Any] = {name: value for name, value in SMALL.items() if name in known}
    if family == "bert":
        sizes["block_size"] = 64  # of a shorter row no word may be hidden, which is a note
    data = settings.pop("data", None) or data_of(family, folder)
    return Run.new(folder / family, data, replace(defaults(family), **SETTINGS | settings), family, **sizes)


def said(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What training, `diagnose` and `doctor` said of a run that is not ok; each thing once."""
    logged = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [record["finding"] for record in logged if "finding" in record]
    for command in ("diagnose", "doctor"):
        capsys.readouterr()
        main([command, str(folder), "--json"])
        found += json.loads(capsys.readouterr().out)["findings"]
    return list({each["code"]: each for each in found if each["level"] != "ok"}.values())


@pytest.mark.parametrize("family", [*TEXTS, *PAIRS, *LABELS])
def test_a_healthy_run_is_left_in_peace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], family: str
) -> None:
    run = run_of(tmp_path, family)
    run.train()
    findings = said(run.folder, capsys)
    assert not [each for each in findings if each["level"] == "problem"], findings
    assert len(findings) <= 1, findings
    main(["replay", str(run.folder), "--step", "100"])
    assert "PROBLEM" not in capsys.readouterr().out


def scaled(factor: float, *names: str) -> Any:
    """Multiplies the weights with these words in their names before the first step."""

    def plant(run: Run) -> None:
        for name, param in run.model.named_parameters():
            if any(word in name for word in names):
                param.array[...] *= factor
        run.model.parameters().changed()

    return plant


def nothing(run: Run) -> None:
    pass


FAULTS: dict[str, tuple[Any, dict[str, Any], set[Code]]] = {
    "a rate of 1e-9": (nothing, {"lr": 1e-9}, {Code.UPDATES_SMALL, Code.CURVE_FLAT}),
    "a rate of 1": (nothing, {"lr": 1.0, "warmup": 100, "schedule": "constant"}, {Code.CURVE_DIVERGES}),
    "clip of 1e-3": (nothing, {"clip": 1e-3, "max_steps": 260}, {Code.CLIPPING}),
    "a head 60 times as large": (scaled(60, "wte", "lm_head"), {}, {Code.CURVE_HOCKEY_STICK}),
    "a block that is zero": (scaled(0, "h.1.attn"), {"max_steps": 50}, {Code.GRADIENT_ZERO}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    plant, settings, expected = FAULTS[fault]
    run = run_of(tmp_path, **settings)
    plant(run)
    with suppress(Diverged):
        run.train()
    codes = {each["code"] for each in said(run.folder, capsys)}
    assert expected <= codes


def test_a_text_learned_word_for_word_is_overfitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "short.txt"
    path.write_text(load("pydoc").text[:4_000], encoding="utf-8")
    run = run_of(tmp_path, data=path, max_steps=500, lr=1e-2)
    run.train()
    codes = {each["code"] for each in said(run.folder, capsys)}
    assert {Code.OVERFITTING, Code.SPLITS_OVERFIT} <= codes


def test_a_stream_that_loses_its_gradient_gets_advice_that_knows_of_residuals() -> None:
    """x <- norm(x + c): a large c drowns x, and with it the gradient of all layers before."""

    class Stack(cr.nn.Layer):
        def __init__(self, size: float) -> None:
            super().__init__()
            rng = np.random.default_rng(0)
            self.shifts = [cr.Param(rng.normal(0, size, 32).astype(np.float32)) for _ in range(6)]
            self.norms = [cr.nn.LayerNorm(32) for _ in range(6)]

        def forward(self, x: cr.Tensor) -> cr.Tensor:
            for shift, norm in zip(self.shifts, self.norms, strict=True):
                x = norm(cr.ops.add(x, shift))
            return x

    def found(size: float) -> dict[Code | None, str]:
        rng = np.random.default_rng(1)
        x = cr.Tensor(rng.normal(size=(64, 32)).astype(np.float32), requires_grad=True)
        report = cr.doctor.diagnose(
            Stack(size),
            (x, rng.integers(32, size=64)),
            loss=lambda model, x, y: cr.ops.cross_entropy(model(x), targets=y),
            step=1,
        )
        return {each.code: each.advice for each in report.problems}

    assert not found(0.1).keys() & {Code.GRADIENTS_VANISH, Code.GRADIENTS_EXPLODE}
    advice = found(5.0)[Code.GRADIENTS_VANISH]
    assert "residual branches" in advice and "Use residual" not in advice


@pytest.mark.parametrize(("clip", "says"), [(None, True), (1.0, False)])
def test_clipping_is_no_advice_where_gradients_are_clipped(clip: float | None, says: bool) -> None:
    (found,) = rules.of_layers(tanh_stack(2.0), fresh=False, clip=clip)
    assert found.code is Code.GRADIENTS_EXPLODE and ("clip the gradient" in found.advice) == says


def tanh_stack(factor: float, n: int = 6) -> list[LayerReport]:
    """Reports of n layers whose gradients grow by `factor` from each layer to the one before."""

    def spread(std: float) -> Distribution:
        return Distribution.of(np.array([-std, std]))

    return [
        LayerReport(f"h.{i}.tanh", "tanh", 64, 32, spread(1.0), spread(factor ** (n - 1 - i)), 0.0, ())
        for i in range(n)
    ]
