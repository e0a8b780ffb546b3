"""A fit with all that is known of it, as a file that `predict` reads again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from chainrule.errors import ConfigError, DataError
from chainrule.scaling.fits.bootstrap import Estimate, Tell
from chainrule.scaling.fits.isoflop import IsoFlopFit, envelope, fit_isoflop
from chainrule.scaling.fits.joint import fit_additive, fit_unified
from chainrule.scaling.fits.power import fit_power, fit_power_with_floor, line
from chainrule.scaling.fits.predict import Prediction, predict, predict_power
from chainrule.scaling.fits.table import QUANTITIES, Runs
from chainrule.scaling.fits.verdict import Doubt, Remark, largest_off, remarks
from chainrule.scaling.laws.joint import Additive, Unified
from chainrule.scaling.laws.power import PowerLaw
from chainrule.suggest import hinted

JOINT = {"chinchilla": (fit_additive, Additive), "kaplan": (fit_unified, Unified)}
SINGLE = ("power", "floor")
FORMS = (*JOINT, *SINGLE, "isoflop", "envelope")


@dataclass(frozen=True)
class Report:
    """What `chainrule scale fit` finds."""

    form: str
    quantity: str
    """Of a law in one quantity: params, tokens or flops"""
    runs: int
    largest: dict[str, float]
    """The largest params, tokens and flops of the runs"""
    smallest: dict[str, float]
    estimates: dict[str, Estimate]
    remarks: list[Remark]
    dropped: list[str]
    law: dict[str, float] = field(default_factory=dict)
    draws: list[dict[str, float]] = field(default_factory=list)
    noise: float = 0.0
    free: int = 1
    points: list[float] = field(default_factory=list)
    """The sizes of a law by least squares, whose interval depends on them"""
    validation: dict[str, float] = field(default_factory=dict)
    """The largest run, left out and predicted by the others"""
    valleys: list[dict[str, Any]] = field(default_factory=list)
    """Of IsoFLOP slices"""

    def to_dict(self) -> dict[str, Any]:
        """For JSON; each number of the law as an object with value, low, high and error"""
        found = asdict(self) | {"estimates": {}}
        found["remarks"] = [{"code": remark.code.value, "text": remark.text} for remark in self.remarks]
        numbers = {name: each._asdict() for name, each in self.estimates.items()}
        return (
            numbers
            | {name: value for name, value in found.items() if name != "estimates"}
            | {"numbers": list(numbers)}
        )

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """What `to_dict` wrote to a file"""
        rule = "must be the --out of chainrule scale fit"
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            numbers = {name: Estimate(**found.pop(name)) for name in found.pop("numbers")}
            found["remarks"] = [Remark(Doubt(each["code"]), each["text"]) for each in found["remarks"]]
            return cls(**found, estimates=numbers)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}; {rule})") from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(f"{path}: is not a fit ({rule})") from error

    def predict(
        self, params: float | None = None, tokens: float | None = None, flops: float | None = None
    ) -> Prediction:
        """The loss to expect there"""
        from chainrule.scaling.fits import joint, power

        if self.form in JOINT:
            kind = JOINT[self.form][1]
            N, D = _two_of(params, tokens, flops)
            laws = [kind(**draw) for draw in self.draws]
            fit = joint.JointFit(kind(**self.law), {}, np.array([]), laws, self.noise, self.free)
            ends = {name: [self.smallest[name], self.largest[name]] for name in QUANTITIES}
            return predict(fit, Runs.of([1.0, 1.0], **ends), N, D)
        if not self.law:
            raise ConfigError(
                f"predict: a fit of the form {self.form} has no law (fit chinchilla, kaplan, power or floor)"
            )
        given = {"params": params, "tokens": tokens, "flops": flops}
        x = given[self.quantity]
        if x is None and list(given.values()).count(None) == 1:
            x = float(getattr(_sizes(given), self.quantity)[0])
        if x is None:
            raise ConfigError(f"predict: the law is in {self.quantity} (must be given)")
        draws = [PowerLaw(**draw) for draw in self.draws]
        of_one = power.PowerFit(
            PowerLaw(**self.law), {}, np.array(self.points), np.array([]), draws, self.noise, self.free
        )
        return predict_power(of_one, x)


def fit(
    runs: Runs,
    form: str = "chinchilla",
    quantity: str = "params",
    *,
    resamples: int = 400,
    seed: int = 0,
    tell: Tell | None = None,
) -> Report:
    """A law of this form, with intervals, remarks and the test on the largest run

    `chinchilla` and `kaplan` are laws in parameters and tokens, `power` and `floor` in one `quantity`; `isoflop` reads
    the best sizes off parabolas, `envelope` off the runs that none beats.
    """
    if form not in FORMS:
        rule = hinted(f"must be one of {', '.join(FORMS)}", form, FORMS)
        raise ConfigError(f"fit: form {form!r} ({rule})")
    if quantity not in QUANTITIES:
        raise ConfigError(f"fit: quantity {quantity!r} (must be one of {', '.join(QUANTITIES)})")
    how: dict[str, Any] = {"resamples": resamples, "seed": seed, "tell": tell}
    facts: dict[str, Any] = {
        "form": form,
        "quantity": quantity,
        "runs": len(runs),
        "largest": {name: float(getattr(runs, name).max()) for name in QUANTITIES},
        "smallest": {name: float(getattr(runs, name).min()) for name in QUANTITIES},
        "dropped": list(runs.dropped),
    }
    if form in JOINT:
        return _joint(runs, form, facts, how)
    if form in SINGLE:
        return _single(runs, form, quantity, facts, how)
    if form == "isoflop":
        return _isoflop(runs, facts, fit_isoflop(runs, **how))
    return _envelope(runs, facts)


def _joint(runs: Runs, form: str, facts: dict[str, Any], how: dict[str, Any]) -> Report:
    fitted, others = JOINT[form][0], _without_largest(runs, "flops")
    found = fitted(runs, **how)
    sizes = {"params": runs.params, "tokens": runs.tokens}
    said = remarks(runs, sizes, found.residuals, found.estimates)
    validation: dict[str, float] = {}
    if len(others) > len(found.estimates):
        before = fitted(others, resamples=min(how["resamples"], 100), seed=how["seed"])
        row = int(np.argmax(runs.flops))
        N, D, measured = runs.params[row], runs.tokens[row], float(runs.loss[row])
        expected = predict(before, others, N, D).loss
        validation = _validation(measured, expected)
        said += largest_off(measured, expected)
    return Report(
        **facts, estimates=found.estimates, remarks=said, law=asdict(found.law), noise=found.noise, free=found.free,
        draws=[asdict(draw) for draw in found.draws], validation=validation,
    )  # fmt: skip


def _single(runs: Runs, form: str, quantity: str, facts: dict[str, Any], how: dict[str, Any]) -> Report:
    runs.known(quantity)
    x = getattr(runs, quantity)

    def fitted(some: Runs) -> Any:
        if form == "power":
            return fit_power(getattr(some, quantity), some.loss)
        quiet = how | {"tell": how["tell"] if some is runs else None}
        return fit_power_with_floor(some, quantity, **quiet)

    found, others = fitted(runs), _without_largest(runs, quantity)
    said = remarks(runs, {quantity: x}, found.residuals, found.estimates)
    validation: dict[str, float] = {}
    if len(np.unique(getattr(others, quantity))) > 3:
        row = int(np.argmax(x))
        expected = predict_power(fitted(others), float(x[row])).loss
        validation = _validation(float(runs.loss[row]), expected)
        said += largest_off(float(runs.loss[row]), expected)
    return Report(
        **facts, estimates=found.estimates, remarks=said, law=asdict(found.law), noise=found.noise, free=found.free,
        draws=[asdict(draw) for draw in found.draws], points=x.tolist(), validation=validation,
    )  # fmt: skip


def _isoflop(runs: Runs, facts: dict[str, Any], found: IsoFlopFit) -> Report:
    valleys = [
        {"flops": v.flops, "params": v.params, "tokens": v.tokens, "loss": v.loss, "curve": list(v.curve)}
        for v in found.valleys
    ]
    facts["dropped"] += found.left_out
    said = remarks(
        runs, {"flops": np.array([v.flops for v in found.valleys])}, np.zeros(len(valleys)), found.estimates
    )
    return Report(**facts, estimates=found.estimates, remarks=said, valleys=valleys)


def _envelope(runs: Runs, facts: dict[str, Any]) -> Report:
    """The frontier of all runs: loss and size as power laws of compute"""
    best = envelope(runs)
    loss = fit_power(best.flops, best.loss)
    sizes = line(np.log(best.flops), np.log(best.params)).slope
    estimates = {"alpha": loss.estimates["alpha"], "a": sizes}
    said = remarks(best, {"flops": best.flops}, loss.residuals, estimates)
    facts |= {"quantity": "flops"}
    return Report(
        **facts,
        estimates=estimates,
        remarks=said,
        law=asdict(loss.law),
        noise=loss.noise,
        points=best.flops.tolist(),
    )


def _without_largest(runs: Runs, quantity: str) -> Runs:
    """All but the runs of the largest size"""
    values = getattr(runs, quantity)
    return runs.take(values < values.max())


def _validation(measured: float, expected: Estimate) -> dict[str, float]:
    return {"measured": measured, "predicted": expected.value, "low": expected.low, "high": expected.high}


def _two_of(params: float | None, tokens: float | None, flops: float | None) -> tuple[float, float]:
    """N and D, of any two of N, D and C"""
    given = {"params": params, "tokens": tokens, "flops": flops}
    if sum(value is not None for value in given.values()) != 2:
        raise ConfigError("predict: two of params, tokens and flops must be given")
    found = _sizes(given)
    return float(found.params[0]), float(found.tokens[0])


def _sizes(given: Mapping[str, float | None]) -> Runs:
    """A run of these sizes: two give the third"""
    return Runs.of([1.0], **{name: None if value is None else [value] for name, value in given.items()})
