"""Curves as SVG inside a page; colors and sizes of type are the page's (style.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import numpy.typing as npt

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 72, 32, 14, 44
MOST, BANDS = 400, 100  # points of a line, of a band: a screen shows no more

Points = npt.NDArray[np.float64]  # (2, n): x, y


@dataclass(frozen=True)
class Line:
    """A curve; `kind` is its class in the style sheet."""

    name: str
    points: Points
    kind: str
    band: bool = False  # draw the reach of the values instead of each
    dots: bool = False


@dataclass(frozen=True)
class Frame:
    """From numbers to places on the paper."""

    x: tuple[float, float]
    y: tuple[float, float]
    log: bool = False

    @classmethod
    def around(cls, lines: Sequence[Line], log: bool) -> Frame:
        """Large enough for all lines; a band may leave it, so that one wild batch does not press all else flat."""
        xs = np.concatenate([line.points[0] for line in lines])
        kept = [(line.points[1], (0.005, 0.995) if line.band else (0, 1)) for line in lines]
        ys = np.concatenate([np.quantile(y, reach) for y, reach in kept])
        low, high = float(ys.min()), float(ys.max())
        margin = 0.04 * (high - low) or 0.5
        y = (low / 1.1, high * 1.1) if log else (low - margin, high + margin)
        return cls((0, float(xs.max())), y, log)

    def place(self, points: Points) -> list[tuple[float, float]]:
        x = LEFT + (points[0] - self.x[0]) / (self.x[1] - self.x[0] or 1) * (WIDTH - LEFT - RIGHT)
        (low, high), y = self.y, points[1].clip(*self.y)
        if self.log:
            low, high, y = math.log(low), math.log(high), np.log(y)
        y = HEIGHT - BOTTOM - (y - low) / (high - low or 1) * (HEIGHT - TOP - BOTTOM)
        return [(round(float(a), 1), round(float(b), 1)) for a, b in zip(x, y, strict=True)]


def chart(title: str, unit: str, lines: Sequence[Line], *, log: bool = False) -> str:
    """A figure with a legend, or nothing if there is nothing to draw."""
    lines = [_cleaned(line, log) for line in lines]
    lines = [line for line in lines if line.points.shape[1] > 1 or (line.dots and line.points.size)]
    if not lines:
        return ""
    frame = Frame.around(lines, log)
    named = [line for line in lines if line.name]
    legend = "".join(f'<span><i class="{line.kind}"></i>{escape(line.name)}</span>' for line in named)
    drawn = "".join([_grid(frame), *(_draw(line, frame) for line in lines)])
    return (
        f'<figure><figcaption><b>{escape(title)}</b> <small>{escape(unit)}</small><span class="legend">{legend}'
        f'</span></figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{drawn}</svg></figure>"
    )


def thin(points: Points, most: int = MOST) -> list[Points]:
    """Neighboring points in at most `most` groups."""
    return [part for part in np.array_split(points, min(most, max(points.shape[1], 1)), axis=1) if part.size]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between two others: steps of 1, 2 or 5 times a power of ten.

    >>> from chainrule.cli.render.html.chart import ticks
    >>> ticks(0, 40), ticks(1.83, 2.61, 4)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [2.0, 2.2, 2.4, 2.6])
    """
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** _exponent(rough)
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _exponent(value: float) -> int:
    """Of the power of ten at or below a positive number, as it would be written: 0.05 -> -2"""
    return int(f"{value:.15e}".partition("e")[2])


def _log_ticks(low: float, high: float) -> list[float]:
    found = [m * 10.0**n for n in range(_exponent(low), _exponent(high) + 1) for m in (1, 2, 5)]
    inside = [value for value in found if low <= value <= high]
    tens = [value for value in inside if f"{value:e}".startswith("1.0")]
    return inside if len(inside) <= 6 or len(tens) < 2 else tens


def _cleaned(line: Line, log: bool) -> Line:
    keep = np.isfinite(line.points).all(axis=0) & (line.points[1] > 0 if log else True)
    return replace(line, points=line.points[:, keep])


def _grid(frame: Frame) -> str:
    parts = []
    for value in _log_ticks(*frame.y) if frame.log else ticks(*frame.y):
        ((_, y),) = frame.place(np.array([[frame.x[0]], [value]]))
        parts.append(f'<path class="grid" d="M{LEFT},{y}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y}" class="left">{number(value)}</text>')
    for value in ticks(*frame.x):
        ((x, _),) = frame.place(np.array([[value], [frame.y[0]]]))
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 24}" class="below">{number(value)}</text>')
    return "".join(parts)


def number(value: float) -> str:
    """A tick's label: 2000 -> 2k"""
    if value and (abs(value) < 0.01 or abs(value) >= 1e6):
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:.4g}"


def _draw(line: Line, frame: Frame) -> str:
    if line.band:
        groups = thin(line.points, BANDS)
        top = frame.place(np.array([(group[0].mean(), group[1].max()) for group in groups]).T)
        low = frame.place(np.array([(group[0].mean(), group[1].min()) for group in groups]).T)
        return f'<path class="band {line.kind}" d="{_path([*top, *low[::-1]])}Z"/>'
    if line.dots:
        places = frame.place(line.points)
        dots = [
            f'<circle cx="{x}" cy="{y}" r="4"><title>step {step:g}: {value:.4g}</title></circle>'
            for (x, y), step, value in zip(places, *line.points, strict=True)
        ]
        joined = f'<path class="line" d="{_path(places)}"/>'
        return f'<g class="dots {line.kind}">{joined}{"".join(dots)}</g>'
    means = np.array([group.mean(axis=1) for group in thin(line.points)]).T
    return f'<path class="line {line.kind}" d="{_path(frame.place(means))}"/>'


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in places)
