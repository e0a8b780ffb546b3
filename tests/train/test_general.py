from __future__ import annotations

import numpy as np
import pytest

from chainrule.autograd import Param, Parameters
from chainrule.train.general import Pull
from tests.vectors import vector


@pytest.mark.requirement("R-394")
def test_the_pull_and_its_gradient() -> None:
    v = vector("der-pull-to-pretrained")
    theta, frozen = (Param(np.array(v.inputs["theta"]), dtype=np.float64) for _ in range(2))
    frozen.requires_grad = False
    block = Parameters([("theta", theta), ("frozen", frozen)])
    reference = {name: np.array(v.inputs["theta_pre"]) for name in ("theta", "frozen")}
    pull = Pull(block, reference, v.inputs["lambda"])
    penalty = pull.backward()
    v.check({"penalty": penalty, "grad": theta.grad})
    assert frozen.grad is None
    block.zero_grad()
    pull.backward(4.0)  # a scaled loss has a scaled pull
    assert theta.grad is not None
    np.testing.assert_allclose(theta.grad, 4 * np.array([0.1, -0.2]), rtol=1e-12)
