"""`chainrule scale fit`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import replaced
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.scaling import fit_in_words
from chainrule.cli.render.show import command_line
from chainrule.errors import ConfigError
from chainrule.files import write
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Fit a scaling law to a table of runs, with intervals, and say how far it can be trusted.

    The table has a header and a row per run. Of params, tokens and flops two are enough: flops = 6 x params x tokens.

    Example: chainrule scale fit runs.csv --params N --flops C --loss loss --form chinchilla --out fit.json
    """

    table: Annotated[Path, Argument("FILE.csv")]
    """A .csv or .tsv with a header."""
    loss: str = "loss"
    """The column of losses, in nats."""
    params: str | None = None
    """The column of parameters."""
    tokens: str | None = None
    """The column of training tokens."""
    flops: str | None = None
    """The column of training compute, in FLOPs."""
    form: str = "chinchilla"
    """chinchilla: E + A/N^alpha + B/D^beta. kaplan: the joint law without a floor. power: a straight line on
    logarithmic axes. floor: a power law above an irreducible loss. isoflop: parabolas at equal compute. envelope: the
    runs that none beats."""
    of: str = "params"
    """The quantity of a law in one of them (power, floor): params, tokens or flops."""
    where: tuple[str, ...] = ()
    """Of all rows those with this value in a column, as in dataset=c4; several of them for several columns."""
    drop_highest: int = 0
    """Leave out this many runs of the highest loss."""
    within: float | None = None
    """Of isoflop: leave out sizes that are more than so many times larger or smaller than the best of their budget,
    where a parabola no longer fits."""
    resamples: int = 400
    """How often the runs are resampled for the intervals."""
    seed: int = 0
    """Seed of the resampling."""
    out: Annotated[Path | None, replaced(".json")] = None
    """Write the fit to this file, for `chainrule scale predict`."""
    plot: Annotated[Path | None, replaced(".png", ".svg", ".pdf")] = None
    """Draw the runs and the law into this .png, .svg or .pdf."""

    def run(self) -> None:
        from chainrule.scaling.fits.isoflop import near_best
        from chainrule.scaling.fits.report import fit
        from chainrule.scaling.fits.table import Runs, header

        check = Check("scale fit", self)
        check.at_least(20, "resamples")
        check.at_least(0, "drop_highest")
        check.seed()
        if self.within is not None and self.form != "isoflop":
            raise ConfigError.of("scale fit", {"within": self.within}, "must be with the form isoflop")
        columns = {name: getattr(self, name) for name in ("loss", "params", "tokens", "flops")}
        given = {name: column for name, column in columns.items() if column}
        if len(given) < 2:
            names = ", ".join(header(self.table))
            fix = "give --params, --tokens or --flops, by name"
            raise ConfigError(f"scale fit: no column of sizes ({fix}; {self.table} has {names})")
        with Progress("fitting") as progress:
            runs = Runs.read(self.table, given, self._where()).without_highest(self.drop_highest)
            if self.within is not None:
                runs = near_best(runs, self.within)
            found = fit(
                runs, self.form, self.of, resamples=self.resamples, seed=self.seed,
                tell=lambda done, total: progress.say(f"{done:,} of {total:,} resamples"),
            )  # fmt: skip
        text = json.dumps(found.to_dict())
        if self.out:
            write(self.out, f"{text}\n".encode())
        if self.plot:
            from chainrule.cli.render.plots.canvas import save
            from chainrule.cli.render.plots.scaling import fitted

            save(fitted(found, runs), self.plot)
        print(text if self.json else fit_in_words(found))
        if self.out and not self.json:
            sizes = f"--{found.quantity} X" if found.points else "--params N --tokens D"
            if found.law:
                print(f"predict with: {command_line('scale', 'predict', self.out)} {sizes}")

    def _where(self) -> dict[str, str]:
        """COLUMN=VALUE, taken apart"""
        for said in self.where:
            if "=" not in said:
                raise ConfigError.of("scale fit", {"where": said}, "must be COLUMN=VALUE")
        return dict(said.split("=", 1) for said in self.where)
