"""Fits and plans of the scaling laboratory, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chainrule.cli.render.tables import table

if TYPE_CHECKING:
    from chainrule.scaling.fits.report import Report
    from chainrule.scaling.plan import Plan

FORMULAS = {
    "chinchilla": "L = E + A / N^alpha + B / D^beta",
    "kaplan": "L = ((N_c / N)^(alpha_N/alpha_D) + D_c / D)^alpha_D",
    "power": "L = a x^-alpha",
    "floor": "L = E + a x^-alpha",
    "isoflop": "N_opt = k C^a, the lowest point of a parabola at each budget",
    "envelope": "L ~ C^-alpha along the runs that none beats; their N ~ C^a",
}


def fit_in_words(found: Report) -> str:
    """The numbers of a law with their intervals, the test on the largest run, and what is doubtful"""
    lines = [f"{FORMULAS[found.form]}    {found.runs} runs"]
    lines += [f"left out: {why}" for why in found.dropped]
    head = ("", "value", "95 % from", "to", "standard error")
    rows = [(name, *(f"{value:.4g}" for value in each)) for name, each in found.estimates.items()]
    lines += ["", *table(head, rows)]
    if found.form in ("chinchilla", "kaplan", "isoflop"):
        a = found.estimates["a"]
        lines.append(
            f"\nThe best size for a budget grows as C^{a.value:.3f}, the tokens as C^{1 - a.value:.3f}."
        )
    if found.valleys:
        columns = ("budget, FLOPs", "best N", "tokens", "loss")
        cells = [[f"{v[name]:.3g}" for name in ("flops", "params", "tokens", "loss")] for v in found.valleys]
        lines += ["", *table(columns, cells)]
    if v := found.validation:
        expected = f"{v['predicted']:.4f} [{v['low']:.4f}, {v['high']:.4f}] predicted without it"
        said = f"{expected}, {v['measured']:.4f} measured"
        lines.append(f"The largest run: {said} ({v['predicted'] / v['measured'] - 1:+.1%}).")
    lines += [f"doubt: {remark}" for remark in found.remarks] or [
        "no doubt found: decades, ends, outliers, floor"
    ]
    return "\n".join(lines)


def plan_in_words(plan: Plan) -> str:
    """The models of a study as a table, and what all of them take"""
    head = ["budget", "N", "layers", "width", "tokens D", "D/N", "batch", "lr", "steps", "exact/6ND"]
    timed = all(model.seconds is not None for model in plan.models)
    rows = [
        [
            f"{m.budget:.0e}", f"{m.params:,}", str(m.sizes["n_layer"]), str(m.sizes["n_embd"]), f"{m.tokens:,}",
            f"{m.tokens / m.params:.1f}", str(m.batch_size), f"{m.lr:.2g}", f"{m.steps:,}",
            f"{m.exact_flops / m.flops:.2f}", *([f"{m.seconds:,.0f} s"] if m.seconds is not None else []),
        ]
        for m in plan.models
    ]  # fmt: skip
    seeds = plan.config.seeds
    models = f"{len(plan.models)} model{'s' * (len(plan.models) > 1)}"
    each = f"{models}, {seeds} run{'s' * (seeds > 1)} of each: {plan.total_flops:.3g} FLOPs"
    seconds = seeds * sum(model.seconds or 0 for model in plan.models)
    time = f", about {seconds / 60:,.0f} minutes one after the other" if timed else ""
    doubts = [f"note: {doubt}" for doubt in plan.doubts()]
    return "\n".join([*table([*head, *(["time"] if timed else [])], rows), each + time, *doubts])
