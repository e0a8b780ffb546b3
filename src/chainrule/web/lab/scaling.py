"""What the scaling view shows: a law fitted to a table of runs, with its intervals and doubts; and a planner."""

from __future__ import annotations

import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from chainrule import scaling
from chainrule.errors import ChainruleWarning, ConfigError, DataError
from chainrule.scaling.advice import MEANING, advise
from chainrule.scaling.fits.isoflop import near_best
from chainrule.scaling.fits.report import FORMS, Report, fit
from chainrule.scaling.fits.table import QUANTITIES, Runs
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED
from chainrule.web.jobs import Tell
from chainrule.web.kept import Kept

BUILT_IN = Path(scaling.__file__).parent / "isoflop_runs.csv"
COLUMNS = {"loss": "loss", "params": "params", "tokens": "tokens"}
WITHIN = 4.0  # times the best size of a budget, where a parabola fits
LONGEST = 400_000  # characters of a table
RESAMPLES = 200
ABOUT = {
    "isoflop": "the best size for each budget, off parabolas",
    "chinchilla": "E + A/N^α + B/D^β",
    "kaplan": "((N_c/N)^(α_N/α_D) + D_c/D)^α_D",
    "power": "a straight line on logarithmic axes",
    "floor": "a power law above a floor",
    "envelope": "the runs that none of less compute beats",
}
REPEATED = "the law does not cover repeated text"
DECADES = (8.0, 27.0)  # of compute that is planned


def choices() -> dict[str, Any]:
    """Forms of laws, and the table that is there."""
    forms = [{"name": name, "about": ABOUT[name]} for name in FORMS]
    return {
        "forms": forms,
        "quantities": QUANTITIES,
        "decades": DECADES,
        "longest": LONGEST,
        "table": BUILT_IN.read_text("utf-8"),
    }


def fitted(
    text: str | None, columns: dict[str, str], form: str, quantity: str, within: float | None, tell: Tell
) -> dict[str, Any]:
    """A law with the runs it was fitted to; without a text those of our own study."""
    key = _key(text, columns)
    tell("fitting", None)
    runs = _read(text, key, within if form == "isoflop" else None)
    report = _fit(text, key, form, quantity, within if form == "isoflop" else None, tell)
    found = {name: value for name, value in report.to_dict().items() if name not in ("draws", "points")}
    rows = {name: getattr(runs, name).tolist() for name in (*QUANTITIES, "loss")}
    return found | {
        "rows": {name: [None if np.isnan(x) else x for x in values] for name, values in rows.items()},
        "curves": _curves(report, runs),
        "python": _program(text, dict(key), form, quantity, within),
    }


def predicted(
    text: str | None, columns: dict[str, str], form: str, quantity: str, sizes: dict[str, float], tell: Tell
) -> dict[str, Any]:
    """The loss to expect at a size, with its interval, and how far beyond the data it is."""
    key = _key(text, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChainruleWarning)  # the page says how far it is
        found = _fit(text, key, form, quantity, None, tell).predict(**sizes)
    return {"loss": found.loss._asdict(), "decades": found.decades, "speculation": found.speculation}


def planned(compute: float, available: float | None, served: float | None) -> dict[str, Any]:
    """Sizes for a budget, and what the law of Chinchilla expects of each."""
    low, high = DECADES
    if not 10**low <= compute <= 10**high:
        raise ConfigError(f"scaling: compute is {compute:g} (must be from 1e{low:g} to 1e{high:g} FLOPs)")
    for name, tokens in (("available", available), ("served", served)):
        if tokens is not None and not 1 <= tokens <= 1e20:
            raise ConfigError(f"scaling: {name} is {tokens:g} tokens (must be from 1 to 1e20)")
    found = advise(compute, available, served)
    options = {"rule": found.rule, "law": found.law, **found.limited}
    if found.serving:
        options["serving"] = found.serving
    about = {
        "rule": "20 tokens per parameter",
        "law": "the fitted law of Chinchilla",
        "serving": "the same loss, cheapest in training and use",
        **MEANING,
    }
    given = f"{compute!r}, available={available!r}, served={served!r}"
    return {
        "options": [
            {
                "name": name,
                "about": about[name],
                "params": each.params,
                "tokens": each.tokens,
                "flops": each.flops,
                "loss": None if name == "epochs" else CHINCHILLA_REFITTED(each.params, each.tokens).item(),
                "unknown": REPEATED if name == "epochs" else None,
            }
            for name, each in options.items()
        ],
        "python": f"from chainrule.scaling.advice import advise\n\nadvice = advise({given})\nprint(advice)\n",
    }


def _key(text: str | None, columns: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The columns, as what a fit is kept by; a table that is too long is refused."""
    if text is not None and len(text) > LONGEST:
        raise ConfigError(f"scaling: a table of {len(text):,} characters (at most {LONGEST:,})")
    return tuple(sorted((columns or COLUMNS).items()))


@lru_cache(maxsize=8)
def _read(text: str | None, columns: tuple[tuple[str, str], ...], within: float | None) -> Runs:
    if text is None:
        runs = Runs.read(BUILT_IN, dict(columns))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            path.write_text(text, encoding="utf-8")
            try:
                runs = Runs.read(path, dict(columns))
            except DataError as error:
                raise DataError(str(error).replace(str(path), "the table")) from None
    return runs if within is None else near_best(runs, within)


_FITS: Kept[Report] = Kept(8)


def _fit(
    text: str | None,
    columns: tuple[tuple[str, str], ...],
    form: str,
    quantity: str,
    within: float | None,
    tell: Tell,
) -> Report:
    def said(done: int, total: int) -> None:
        tell(f"fitting: resample {done} of {total}", done / total)

    def make() -> Report:
        return fit(_read(text, columns, within), form, quantity, resamples=RESAMPLES, tell=said)

    return _FITS.of((text, columns, form, quantity, within), make, tell)


def _curves(report: Report, runs: Runs) -> list[dict[str, Any]]:
    """Lines to draw: a parabola for each budget, or the law along its quantity."""
    if report.valleys:
        found = []
        for valley in report.valleys:
            near = runs.params[np.abs(np.log(runs.flops / valley["flops"])) < 0.2]
            x = np.geomspace(near.min(), near.max(), 40)
            found.append(
                {
                    "flops": valley["flops"],
                    "x": x.tolist(),
                    "y": np.polyval(valley["curve"], np.log(x)).tolist(),
                }
            )
        return found
    if report.form in ("power", "floor", "envelope"):
        known = getattr(runs, report.quantity)
        x = np.geomspace(known.min(), known.max(), 60)
        from chainrule.scaling.laws.power import PowerLaw

        return [{"x": x.tolist(), "y": PowerLaw(**report.law)(x).tolist()}]
    return []


def _program(
    text: str | None, columns: dict[str, str], form: str, quantity: str, within: float | None
) -> str:
    lines = ["from pathlib import Path", ""]
    if text is None:
        lines += ["from chainrule import scaling"]
        table = ["table = Path(scaling.__file__).parent / 'isoflop_runs.csv'"]
    else:
        rows = [f"    {line!r}," for line in text.splitlines()]
        table = ["rows = [", *rows, "]", "table = Path('table.csv')"]
        table += ["table.write_text('\\n'.join(rows) + '\\n', encoding='utf-8')"]
    lines += ["from chainrule.scaling.fits.isoflop import near_best"] if form == "isoflop" and within else []
    lines += [
        "from chainrule.scaling.fits.report import fit",
        "from chainrule.scaling.fits.table import Runs",
        "",
        *table,
        f"runs = Runs.read(table, {columns!r})",
    ]
    lines += [f"runs = near_best(runs, {within!r})"] if form == "isoflop" and within else []
    return "\n".join(
        [
            *lines,
            f"report = fit(runs, {form!r}, {quantity!r}, resamples={RESAMPLES})",
            "for name, estimate in report.estimates.items():",
            "    print(name, estimate)",
            "",
        ]
    )
