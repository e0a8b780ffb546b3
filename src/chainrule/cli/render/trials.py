"""`chainrule train FAMILY DATA --overfit` and `--find-lr`: trials before a run, on a copy of the model."""

from __future__ import annotations

import json
from collections.abc import Sequence

from chainrule.cli.render.findings import words
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import size
from chainrule.runs import Run
from chainrule.train.trials import find_rate, overfit

WIDTH, HEIGHT = 60, 8  # of a curve, in characters


def overfit_one_batch(run: Run, *, as_json: bool) -> None:
    """Say whether the model can overfit one batch; exit code 1 if not."""
    with Progress("one batch") as progress:
        finding = overfit(run.trainer, said=progress.say)
    print(json.dumps(finding.to_dict()) if as_json else f"{size(run.model)}\n\n{words(finding)}")
    if finding.level != "ok":
        raise SystemExit(1)


def find_lr(run: Run, *, as_json: bool) -> None:
    """Draw the loss against the learning rate, and name the rate to take."""
    with Progress("learning rates") as progress:
        seen, choice, advised = find_rate(run.trainer, said=progress.say)
    if as_json:
        found = {"low": choice.low, "high": choice.high, "best": choice.best, "lr": advised}
        print(json.dumps(found | {"rates": seen.rates.tolist(), "losses": seen.losses.tolist()}))
        return
    print(f"{size(run.model)}; loss after one step at each rate, {seen.start:.3f} before\n")
    print("\n".join(curve(seen.losses.tolist(), ceiling=seen.start)))
    print(f"{'':9}{seen.rates[0]:<{WIDTH - 6}.0e}{seen.rates[-1]:>6.0e}\n")
    print(f"lowest loss at {choice.best:.1e}; flat and falling from {choice.low:.1e} to {choice.high:.1e}")
    print(f"try: --lr {advised:g}   (a tenth of the best: one step bears more than many do)")


def curve(values: Sequence[float], *, ceiling: float) -> list[str]:
    """Numbers from left to right as lines of text; what is above `ceiling` is drawn there."""
    columns = [values[i * len(values) // WIDTH] for i in range(min(WIDTH, len(values)))]
    low = min(columns)
    span = max(ceiling - low, 1e-12)
    heights = [round((HEIGHT - 1) * min(1.0, (value - low) / span)) for value in columns]
    lines = []
    for row in range(HEIGHT - 1, -1, -1):
        scale = f"{low + span * row / (HEIGHT - 1):8.3f} "
        lines.append((scale + "".join("•" if h == row else " " for h in heights)).rstrip())
    return lines
