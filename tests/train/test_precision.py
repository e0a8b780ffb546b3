"""Training with rounded factors: the same curve, small gradients that survive, overflow that costs one step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, ConfigError
from chainrule.runs import Run
from chainrule.train.precision import PATIENCE, LossScale
from tests.runs.helpers import losses, new_run


@pytest.mark.requirement("R-474")
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_the_loss_curve_is_that_of_float32(tmp_path: Path, precision: str) -> None:
    exact, rounded = new_run(tmp_path, "fp32"), new_run(tmp_path, precision, precision=precision)
    exact.train(), rounded.train()
    a, b = (np.array([loss for _, loss in losses(run)]) for run in (exact, rounded))
    assert not np.array_equal(a, b)
    np.testing.assert_allclose(a, b, atol=0.03)  # the curve falls by 1 over these steps
    assert {p.dtype for p in rounded.model.parameters().values()} == {np.dtype(np.float32)}  # master weights


@pytest.mark.requirement("R-474")
def test_small_gradients_survive_by_scaling() -> None:
    W = cr.Param(np.eye(4, dtype=np.float32))
    x = np.full((1, 4), 0.5, np.float32)
    for factor, survives in ((1.0, False), (2.0**16, True)):
        W.grad = None
        with cr.precision("fp16"):
            (cr.ops.linear(x, W) * 1e-9).sum().backward(np.float32(factor))
        assert bool(np.any(W.grad)) is survives
    np.testing.assert_allclose(W.grad / 2.0**16, np.full((4, 4), 0.5e-9), rtol=1e-3)


@pytest.mark.requirement("R-474")
def test_a_whole_step_keeps_small_gradients_by_scaling(tmp_path: Path) -> None:
    """fp16 has no number for the gradients of so small a loss: with the factor they reach the weights, without not."""

    def gradient(precision: str, factor: float) -> np.ndarray:
        run = new_run(tmp_path, f"{precision}{factor:g}", precision=precision, clip=1e9, weight_decay=0.0)
        loss = run.model.loss
        run.model.loss = lambda *batch: loss(*batch) * 1e-8  # type: ignore[method-assign]
        if precision == "fp16":
            run.trainer.step.scale.factor = factor
        before = run.model.parameters().data.copy()
        run.trainer.update(1e-2)
        run.trainer.gradient.share.complete()
        assert (
            run.model.parameters().data.dtype == before.dtype == np.float32
        )  # master weights, float32 updates
        return run.model.parameters().grad.copy()

    exact, scaled, lost = gradient("fp32", 1.0), gradient("fp16", 2.0**24), gradient("fp16", 1.0)
    size = np.linalg.norm
    assert size(scaled - exact) < 0.01 * size(exact)
    assert size(lost - exact) > 0.1 * size(exact)


@pytest.mark.requirement("R-474")
def test_a_step_that_overflows_is_left_out_and_the_factor_halved(tmp_path: Path) -> None:
    run = new_run(tmp_path, precision="fp16")
    trainer = run.trainer
    trainer.step.scale.factor = 2.0**60
    before = run.model.state()
    trainer.update(1e-2)
    assert trainer.steps == 1 and trainer.step.scale.factor == 2.0**59
    assert all(np.array_equal(before[name], value) for name, value in run.model.state().items())
    trainer.step.scale.factor = 2.0**10
    trainer.update(1e-2)
    assert trainer.step.scale.good == 1
    assert not all(np.array_equal(before[name], value) for name, value in run.model.state().items())


def test_the_factor_grows_after_many_good_steps_and_has_an_end() -> None:
    scale = LossScale(factor=4.0)
    for _ in range(PATIENCE):
        scale.update(True)
    assert (scale.factor, scale.good) == (8.0, 0)
    with pytest.raises(ChainruleError, match="not finite even with the loss scaled"):
        for _ in range(30):
            scale.update(False)


def test_a_run_in_fp16_resumes_bit_for_bit(tmp_path: Path) -> None:
    whole = new_run(tmp_path, "whole", precision="fp16")
    whole.trainer.step.scale.factor = 2.0**40  # so that the first steps are left out
    half = new_run(tmp_path, "half", precision="fp16", max_steps=30)
    half.trainer.step.scale.factor = 2.0**40
    whole.train()
    for _ in range(20):
        half.trainer.update(half.trainer.plan.lr(half.trainer.steps))
    half.save()
    resumed = Run.resume(tmp_path / "half")
    assert resumed.trainer.step.scale == half.trainer.step.scale != LossScale(2.0**40)
    resumed.train()
    a, b = whole.model.state(), resumed.model.state()
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"train: precision is 'fp8' \(must be one of fp32, bf16, fp16\)"):
        cr.train.TrainConfig(precision="fp8")
    with pytest.raises(ConfigError, match="precision: got 'fp8'"), cr.precision("fp8"):
        pass
