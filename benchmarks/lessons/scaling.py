"""How often the intervals of fitted scaling laws cover the law that was planted.

    python -m benchmarks.lessons.scaling                 about four minutes
    python -m benchmarks.lessons.scaling --tries 30      a quick look

Of 95 % intervals 90 to 99 of 100 should. Each line is a JSON object: the form, the runs, and the share by number.
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks.harness import command_line, progress
from chainrule.scaling.fits import Runs, fit_additive, fit_power, fit_power_with_floor
from chainrule.scaling.laws import PowerLaw
from chainrule.scaling.laws.joint import FLOPS
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED as JOINT

NOISE = 0.01  # of ln L
FLOOR = PowerLaw(1e9, 0.3, 1.5)
LINE = PowerLaw(1e13, 0.08)


def joint(seed: int, runs: int) -> dict[str, bool]:
    """Of runs over three decades of size and four of compute"""
    rng = np.random.default_rng(seed)
    N, C = 10 ** rng.uniform(7, 10.2, runs), 10 ** rng.uniform(17.5, 21.5, runs)
    L = JOINT(N, C / (FLOPS * N)) * np.exp(rng.normal(0, NOISE, runs))
    found = fit_additive(Runs.of(L, params=N, flops=C), resamples=150, seed=seed).estimates
    return {name: each.low <= getattr(JOINT, name) <= each.high for name, each in found.items()}


def floor(seed: int, runs: int) -> dict[str, bool]:
    rng = np.random.default_rng(seed)
    x = np.logspace(5, 9, runs)
    y = FLOOR(x) * np.exp(rng.normal(0, NOISE, runs))
    found = fit_power_with_floor(Runs.of(y, params=x), "params", resamples=150, seed=seed).estimates
    truth = {"alpha": FLOOR.exponent, "a": FLOOR.prefactor, "E": FLOOR.floor}
    return {name: each.low <= truth[name] <= each.high for name, each in found.items()}


def line(seed: int, runs: int) -> dict[str, bool]:
    rng = np.random.default_rng(seed)
    x = np.logspace(5, 9, runs)
    alpha = fit_power(x, LINE(x) * np.exp(rng.normal(0, NOISE, runs))).estimates["alpha"]
    return {"alpha": alpha.low <= LINE.exponent <= alpha.high}


def main() -> None:
    asked = command_line(__doc__)
    asked.add_argument("--tries", type=int, default=120)
    tries = asked.parse_args().tries
    for form, tried, runs in (("chinchilla", joint, 40), ("floor", floor, 12), ("power", line, 6)):
        found = []
        for seed in range(tries):
            found.append(tried(seed, runs))
            if seed % 20 == 19:
                progress(f"{form}: {seed + 1} of {tries}")
        covered = {name: sum(each[name] for each in found) / tries for name in found[0]}
        print(json.dumps({"form": form, "runs": runs, "tries": tries, "covered": covered}), flush=True)


if __name__ == "__main__":
    main()
