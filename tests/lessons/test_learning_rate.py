"""What the learning rate does, on functions whose paths are known."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.lessons.learning_rate import OPTIMIZERS, START, cross_valley, descend


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9, 1.1])
def test_each_step_multiplies_by_one_minus_twice_the_rate(rate: float) -> None:
    assert np.allclose(descend(rate, 6), (1 - 2 * rate) ** np.arange(7.0))


def test_plain_descent_in_the_valley_is_two_such_functions() -> None:
    path = cross_valley("SGD", 0.09, 10)
    steps = np.arange(11.0)
    assert np.allclose(path[:, 0], START[0] * (1 - 0.09) ** steps)
    assert np.allclose(path[:, 1], START[1] * (1 - 0.09 * 20) ** steps)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_goes_down(name: str) -> None:
    path = cross_valley(name, 0.09, 40)
    assert path.shape == (41, 2) and path[0].tolist() == list(START)
    assert np.abs(path[-1]).max() < np.abs(path[0]).max()


def test_the_first_step_of_adam_has_the_size_of_the_rate() -> None:
    assert np.allclose(cross_valley("Adam", 0.05, 1)[1], np.array(START) - 0.05 * np.sign(START), atol=1e-6)
