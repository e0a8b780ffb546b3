"""`chainrule scale plan`"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from chainrule.cli.args.kinds import Several
from chainrule.cli.args.options import Given, Reporting, Without
from chainrule.cli.args.outputs import replaced
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.scaling import plan_in_words
from chainrule.cli.render.show import command_line
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.scaling.plan import PlanConfig
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Plan a scaling study: for each compute budget models of several sizes, with their text, rates and time.

    With --compute it says instead what to train with one budget: the best size, what to do with less text than that
    wants (--available), how the size changes if it is to serve many tokens (--served), and what it costs (--price).

    Example: chainrule scale plan --budgets 1e11 3e11 1e12 --seeds 3 --measure --out plan.json
    """

    compute: float | None = None
    """One budget in FLOPs to answer for, instead of a study."""
    available: float | None = None
    """Tokens of text that there are."""
    served: float | None = None
    """Tokens that the model will read and write in use."""
    flops_per_second: float | None = None
    """Speed of a device in FLOP/s, as reached in training, for hours and money."""
    devices: int = 1
    """Devices that train together."""
    price: float | None = None
    """Price of a device per hour."""
    measure: bool = False
    """Measure how long the models take on this machine: about two seconds each."""
    out: Annotated[Path | None, replaced(".json")] = None
    """Write the plan to this file, for `chainrule scale run`."""
    budgets: Annotated[tuple[float, ...], Several] = PlanConfig.budgets
    """Compute budgets of the study in FLOPs."""
    factors: Annotated[tuple[float, ...], Several] = PlanConfig.factors
    """Sizes of each budget, as factors of the size for --ratio tokens per parameter."""
    given: Given = field(default_factory=Given)
    study: Annotated[PlanConfig, Without(("budgets", "factors"))] = field(default_factory=PlanConfig)

    def run(self) -> None:
        from chainrule.scaling.advice import advise
        from chainrule.scaling.plan import Plan, timed

        check = Check("scale plan", self)
        check.positive("compute", "available", "served", "flops_per_second", "price")
        check.at_least(1, "devices")
        if self.compute is not None:
            if self.price is not None and self.flops_per_second is None:
                rule = "must have --flops-per-second beside it: how long the devices work"
                raise ConfigError.of("scale plan", {"price": self.price}, rule)
            for name in sorted(self.given & {"budgets", "factors", "out", "measure"}):
                raise ConfigError.of(
                    "scale plan", {name: getattr(self, name)}, "must be left out with compute"
                )
            found = advise(
                self.compute, self.available, self.served, self.flops_per_second, self.devices, self.price
            )
            self.report(found.to_dict(), lambda: str(found))
            return
        for name in ("available", "served", "flops_per_second", "price"):
            if getattr(self, name) is not None:
                raise ConfigError.of(
                    "scale plan", {name: getattr(self, name)}, "must be left out without compute"
                )
        with Progress("planning"):
            plan = Plan.of(replace(self.study, budgets=self.budgets, factors=self.factors))
            plan = timed(plan) if self.measure else plan
        text = json.dumps(plan.to_dict())
        if self.out:
            write(self.out, f"{text}\n".encode())
        print(text if self.json else plan_in_words(plan))
        if self.out and not self.json:
            print(f"run it with: {command_line('scale', 'run', self.out, 'TEXT', '--out', 'runs/study')}")
