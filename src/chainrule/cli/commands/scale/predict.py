"""`chainrule scale predict`"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from chainrule.cli.args.options import Argument, Reporting
from chainrule.errors import ChainruleWarning
from chainrule.validate import Check

MOST = 1e40  # more than anybody will ever train


@dataclass(frozen=True)
class Command(Reporting):
    """Predict the loss of a run that was not made, by a fitted law, with its interval.

    A factor of ten outside of the data it is called speculation.

    Example: chainrule scale predict fit.json --params 1e9 --tokens 2e10
    """

    fit: Annotated[Path, Argument("FIT.json")]
    """The file that `chainrule scale fit --out` has written."""
    params: float | None = None
    """Parameters."""
    tokens: float | None = None
    """Training tokens."""
    flops: float | None = None
    """Training compute, in FLOPs."""

    def run(self) -> None:
        from chainrule.scaling.fits.report import Report

        Check("scale predict", self).between(1, MOST, "params", "tokens", "flops")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ChainruleWarning)  # said below
            found = Report.read(self.fit).predict(self.params, self.tokens, self.flops)
        record = found.loss._asdict() | {"decades": found.decades, "speculation": found.speculation}
        if self.json:
            print(json.dumps({"loss": record}))
            return
        loss = found.loss
        print(
            f"loss {loss.value:.4f} nats, of a new run from {loss.low:.4f} to {loss.high:.4f} in 95 of 100 cases"
        )
        if found.speculation:
            print(
                f"speculation: {found.decades:.1f} decades outside of the data, where the law was never tested"
            )
        elif found.decades:
            print(f"{found.decades:.1f} decades outside of the data")
