"""How time and memory of a training step grow with the context and with the width, beside PyTorch: a table and a chart.

    python -m benchmarks.lessons.growth [--rounds 5]            about three minutes

A GPT of 4 layers: contexts up to 4,096 at width 256, one sequence; widths up to 1,024 at a context of 256, four
sequences. PyTorch is eager, with fused attention and AdamW, and keeps its pages; both take turns. Memory is the growth
of the peak over the process that has only imported its library. Writes benchmarks/results/growth.md and
docs/images/growth.png. What is measured is kept in build/growth.json: stopped and called again, it continues; --again
begins anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, Program, command_line, progress, race
from benchmarks.peers.steps import memory_of, torch_program
from benchmarks.report import Table, describe_machine, milliseconds, page
from chainrule.cli.render.plots.canvas import BAD, GOOD, canvas, save

LAYERS, HEADS, VOCABULARY, THREADS = 4, 4, 256, 2
CASES = {  # axis: its values, and (width, context, batch) of each
    "context": {T: (256, T, 1) for T in (256, 512, 1024, 2048, 4096)},
    "width": {C: (C, 256, 4) for C in (128, 256, 512, 1024)},
}
COLORS = {"Chainrule": GOOD, "PyTorch": BAD}
CHART = ROOT / "docs" / "images" / "growth.png"
KEPT = ROOT / "build" / "growth.json"
RESULT = ROOT / "benchmarks" / "results" / "growth.md"


class Point(NamedTuple):
    ms: float  # median
    mb: float


Curves = Mapping[str, Mapping[int, Mapping[str, Point]]]  # axis, its value, program


def measured(sizes: tuple[int, int, int], rounds: int) -> dict[str, Point]:
    C, T, B = sizes
    config = ",".join(map(str, (LAYERS, HEADS, C, T, B, VOCABULARY)))
    arguments = ("--config", config, "--threads", THREADS)
    ours = Program("Chainrule", "benchmarks.peers.step_chainrule", *arguments)
    programs = [ours, torch_program("step_torch", "eager", *arguments, name="PyTorch")()]
    times = race(programs, "step", rounds, 1)
    points = {time.name: Point(time.median, memory_of(p)[1]) for time, p in zip(times, programs, strict=True)}
    for program in programs:
        program.close()
    return points


def all_measured(rounds: int) -> Curves:
    """Every case that was not measured before, after which all are kept."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for axis, cases in CASES.items():
        for value, sizes in cases.items():
            name = f"{axis} {value}, {rounds} rounds"
            if name not in kept:
                progress(name)
                kept[name] = measured(sizes, rounds)
                KEPT.parent.mkdir(parents=True, exist_ok=True)
                KEPT.write_text(json.dumps(kept))
    return {
        axis: {
            x: {side: Point(*p) for side, p in kept[f"{axis} {x}, {rounds} rounds"].items()} for x in cases
        }
        for axis, cases in CASES.items()
    }


def exponent(points: Sequence[tuple[int, float]]) -> float:
    """p of y ∝ x^p between the last two points."""
    (x0, y0), (x1, y1) = points[-2:]
    return math.log(y1 / y0) / math.log(x1 / x0)


def table_of(curves: Curves, rounds: int) -> Table:
    table = Table(
        "Growth of a training step",
        f"A GPT of {LAYERS} layers and {HEADS} heads, {VOCABULARY} tokens: the context grows at width 256, one "
        f"sequence; the width grows at a context of 256, four sequences. Median of {rounds} steps in turn with PyTorch "
        "(eager, fused attention and AdamW, pages kept). Memory: growth of the peak over the imported library.",
        ["axis", "", "Chainrule", "PyTorch", "ratio", "memory", "PyTorch", "of PyTorch's"],
    )
    for axis, points in curves.items():
        for value, sides in points.items():
            ours, theirs = sides["Chainrule"], sides["PyTorch"]
            table.rows.append(
                (axis, f"{value:,}", milliseconds(ours.ms), milliseconds(theirs.ms), f"{theirs.ms / ours.ms:.2f}",
                 f"{ours.mb:.0f} MB", f"{theirs.mb:.0f} MB", f"{ours.mb / theirs.mb:.2f}")
            )  # fmt: skip
    for axis, points in curves.items():
        told = [
            f"{name}: time as the power {exponent([(x, p[name].ms) for x, p in points.items()]):.2f}, "
            f"memory {exponent([(x, p[name].mb) for x, p in points.items()]):.2f}"
            for name in COLORS
        ]
        table.notes.append(f"Between the last two points of the {axis}: {'; '.join(told)}.")
    return table


def draw(curves: Curves) -> Any:
    figure, axes = canvas(1, 3, size=(11, 3.4))
    plots = (
        ("context", "ms", "ms per step"),
        ("width", "ms", ""),
        ("context", "mb", "MB over the imported library"),
    )
    for ax, (axis, field, label) in zip(axes, plots, strict=True):
        values = list(curves[axis])
        for name, color in COLORS.items():
            heights = [getattr(curves[axis][x][name], field) for x in values]
            ax.plot(values, heights, color=color, marker="o", markersize=4, label=name)
        ax.set(
            xscale="log", yscale="log", xlabel=axis, ylabel=label, xticks=values, xticklabels=map(str, values)
        )
        ax.minorticks_off()
        ax.set_title("memory" if field == "mb" else "time", fontsize=10)
    axes[0].legend(frameon=False, fontsize=9)
    return figure


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="measure all of it anew")
    args = parser.parse_args()
    if args.again:
        KEPT.unlink(missing_ok=True)
    curves = all_measured(args.rounds)
    text = page(
        "growth",
        table_of(curves, args.rounds),
        describe_machine(THREADS),
        "python -m benchmarks.lessons.growth",
    )
    RESULT.write_text(text, encoding="utf-8")
    save(draw(curves), CHART)
    print(text)


if __name__ == "__main__":
    main()
