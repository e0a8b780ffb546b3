from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.autograd import Param, Parameters
from chainrule.errors import ConfigError
from chainrule.optim import clip_global_norm, clip_value, global_norm
from chainrule.optim.optimizer import CHUNK
from tests.optim.helpers import block, set_gradients
from tests.vectors import vector


@pytest.mark.requirement("R-131", "R-473")
def test_vector() -> None:
    v = vector("der-grad-clip")
    clipped = []
    for tau in v.inputs["tau"]:
        params = block(*v.inputs["grads"])
        set_gradients(params, *v.inputs["grads"])
        norm = clip_global_norm(params, tau)
        clipped.append([params.grad_view(p).tolist() for p in params.values()])
    v.check({"norm": norm, "clipped": clipped})


@pytest.mark.requirement("R-131")
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(1e-3, 1e3))
def test_the_norm_is_at_most_the_limit_and_the_direction_stays(grads: list[float], limit: float) -> None:
    params = block(np.zeros(len(grads)))
    set_gradients(params, grads)
    norm = clip_global_norm(params, limit)
    assert norm == pytest.approx(math.sqrt(sum(g * g for g in grads)), rel=1e-12)
    assert global_norm(params) <= limit * (1 + 1e-12) or norm <= limit
    np.testing.assert_allclose(
        params.grad[: len(grads)] * max(norm, limit), np.array(grads) * limit, rtol=1e-9, atol=1e-290
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_is_reported_and_scales_nothing(bad: float) -> None:
    params = block([1.0, 2.0, 3.0])
    set_gradients(params, [1.0, bad, 3.0])
    norm = clip_global_norm(params, 1.0)
    assert math.isnan(norm) if math.isnan(bad) else math.isinf(norm)
    np.testing.assert_array_equal(params.grad[:3], [1.0, bad, 3.0])


def test_float32_norms_do_not_overflow_and_long_blocks_are_summed_whole() -> None:
    params = Parameters([("w", Param(np.zeros(2 * CHUNK + 5)))])
    params.grad[: 2 * CHUNK + 5] = 1e20  # the square is beyond float32
    assert global_norm(params) == pytest.approx(1e20 * math.sqrt(2 * CHUNK + 5), rel=1e-6)


def test_frozen_parameters_do_not_count() -> None:
    frozen, live = Param(np.zeros(3)), Param(np.zeros(3))
    frozen.requires_grad = False
    params = Parameters([("frozen", frozen), ("live", live)])
    live.grad[...] = [3.0, 4.0, 0.0]
    assert global_norm(params) == 5.0
    assert frozen.grad is None and params.grad.size < params.data.size


def test_clip_value_cuts_each_entry() -> None:
    params = block([0.0, 0.0, 0.0])
    set_gradients(params, [-5.0, 0.3, 2.0])
    clip_value(params, 1.0)
    np.testing.assert_array_equal(params.grad[:3], [-1.0, 0.3, 1.0])


@pytest.mark.parametrize("clip", [clip_global_norm, clip_value])
@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_bad_limits_are_refused(clip: object, limit: float) -> None:
    with pytest.raises(ConfigError, match=r"clip_\w+: limit is .* \(must be positive\)"):
        clip(block([1.0]), limit)
