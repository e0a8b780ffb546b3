"""The unrolled network: a cell for every step, and the gradients of the run behind the curve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chainrule import random
from chainrule.cli import main
from chainrule.cli.render.plots.recurrence import unrolled
from chainrule.inspect.recurrence import gradient_norms
from chainrule.lessons.recurrence import STEPS, WIDTH, random_rnn

pytest.importorskip("matplotlib")


@pytest.mark.requirement("R-505")
def test_a_cell_per_step_and_the_norms_of_the_run(tmp_path: Path) -> None:
    above, below = unrolled().axes
    cells = [text.get_gid() for text in above.texts if (text.get_gid() or "").startswith("cell")]
    assert cells == [f"cell {t}" for t in range(1, STEPS + 1)]
    x = random.generator("inputs", seed=0).normal(0, 0.5, size=(STEPS, WIDTH))
    exploding, vanishing, lstm = (line.get_ydata() for line in below.lines[:3])
    norms = gradient_norms(random_rnn(1.0, WIDTH), x)
    np.testing.assert_allclose(vanishing, norms[1:] / norms[-1])
    assert exploding[0] > 10 and vanishing[0] < 0.1 and vanishing[0] < lstm[0] < exploding[0]

    main(["figures", "recurrence", "--out", str(tmp_path)])
    assert (tmp_path / "recurrence.png").read_bytes().startswith(b"\x89PNG")
