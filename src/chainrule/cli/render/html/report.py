"""A run as one page: results, curves, samples, findings, configuration, machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from chainrule.cli.render.html.chart import Line, chart
from chainrule.cli.render.html.style import STYLE
from chainrule.machine import clock
from chainrule.runs.folder import RunFolder
from chainrule.runs.records.environment import stretches
from chainrule.runs.records.history import History
from chainrule.runs.records.plot import smooth

SAMPLES = 4  # that are shown at once: the first, the last, and some between


def page(history: History) -> str:
    """The whole file; every text in it was made by others and is escaped."""
    parts = [_head(history), _tiles(history), *_findings(history), *_curves(history), *_samples(history)]
    parts += [*_openings(history), *_configuration(history), *_machine(history)]
    title = escape(f"{history.folder.name}: {history.family}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(part for part in parts if part)
        + "\n<footer>Written by chainrule runs report. Losses are in nats per token.</footer></main></body></html>\n"
    )


def _head(history: History) -> str:
    data = history.environment.get("data")
    about = [history.family]
    if history.parameters:
        about.append(f"{history.parameters:,} parameters")
    if isinstance(data, dict):
        about.append(f"trained on {data.get('name')}")
    problem = f'<p class="card problem">{escape(history.problem)}</p>' if history.problem else ""
    return (
        f'<h1>{escape(history.folder.name)}<span class="pill {history.state}">{history.state}</span></h1>'
        f'<p class="faint">{escape(", ".join(about))}</p>{problem}'
    )


def _tiles(history: History) -> str:
    best, losses = history.best, history.series("loss")
    tiles: list[tuple[str, str]] = []
    if best:
        tiles.append((f"{best[1]:.4f}", f"best validation loss, step {best[0]:,}"))
    if history.bits_per_byte is not None:
        tiles.append((f"{history.bits_per_byte:.4f}", "bits per byte"))
    if losses:
        tiles.append((f"{np.mean([loss for _, loss in losses[-50:]]):.4f}", "training loss at the end"))
    tiles += [(f"{history.steps:,}", "steps"), (clock(history.seconds), "time")]
    shown = [f"<div><b>{escape(value)}</b><small>{escape(name)}</small></div>" for value, name in tiles]
    return f'<div class="tiles">{"".join(shown)}</div>'


def _curves(history: History) -> Iterator[str]:
    training = _banded(_points(history.series("loss")), "one", "training")
    validation = Line("validation", _points(history.series("validation")), "two", dots=True)
    large = chart("Loss", "nats per token, by step", [*training, validation])
    norms = _banded(_points(history.series("norm")), "three")
    updates = [Line("", _updates(history), "two", dots=True)]
    small = [
        chart("Gradient norm", "before clipping", norms, log=True),
        chart("Learning rate", "", [Line("", _points(history.series("lr")), "one")]),
        chart("Pace", "steps per second", [Line("", _pace(history), "three")]),
        chart("Update / weights", "median of the matrices", updates, log=True),
    ]
    if large:
        yield f'<h2>Curves</h2>{large}<div class="pair">{"".join(small)}</div>'


def _openings(history: History) -> Iterator[str]:
    """How often each test set was opened to evaluate the run."""
    counts = Counter((each["data"], each["sha256"]) for each in RunFolder(history.folder).opened())
    if counts:
        yield "<h2>Test data, and how often they were opened</h2>"
        yield _table({f"{data} ({sha256[:8]})": count for (data, sha256), count in counts.items()})


def _points(pairs: Sequence[tuple[float, float]]) -> Any:
    return np.array(pairs, np.float64).reshape(-1, 2).T


def _pace(history: History) -> Any:
    """Steps per second in stretches of a fiftieth of the run."""
    times = [(r["step"], r["seconds"]) for r in history.records if "loss" in r and "seconds" in r]
    ends = _points(times[:: max(1, len(times) // 50)])
    passed = np.diff(ends[1])
    with np.errstate(all="ignore"):  # the clock has milliseconds: a step may take none
        return np.array([ends[0][1:], np.where(passed > 0, np.diff(ends[0]) / passed, np.nan)])


def _banded(points: Any, kind: str, name: str = "") -> list[Line]:
    """A smooth curve, and behind it the reach of the values."""
    return [Line("", points, kind, band=True), Line(name, np.array([points[0], smooth(points[1])]), kind)]


def _updates(history: History) -> Any:
    """Update / weights: the median of the matrices, at the steps where training looked inside."""
    found = []
    for record in history.records:
        seen = record.get("watch")
        parameters = seen.get("parameters") if isinstance(seen, dict) else None
        ratios = [p.get("update_ratio") for p in parameters.values()] if isinstance(parameters, dict) else []
        if known := [ratio for ratio in ratios if isinstance(ratio, float)]:
            found.append((record["step"], float(np.median(known))))
    return _points(found)


def _findings(history: History) -> Iterator[str]:
    cards = []
    for step, finding in _found(history):
        advice = f"<p><b>Try:</b> {escape(str(finding['advice']))}</p>" if finding.get("advice") else ""
        level = finding.get("level") if finding.get("level") in ("note", "problem") else ""
        about, measured, meaning = (escape(str(finding.get(k, ""))) for k in ("about", "measured", "meaning"))
        cards.append(
            f'<div class="card {level}"><b>{about}</b> <small>{step}</small><p>{measured}</p>'
            f'<p class="faint">{meaning}</p>{advice}</div>'
        )
    if cards:
        yield "<h2>Findings</h2>"
        yield from cards


def _found(history: History) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The findings of a training, each once, with the steps at which it was found."""
    groups: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for record in history.records:
        for finding in _in_record(record):
            code = str(finding.get("code") or finding.get("about", ""))  # older logs have no codes
            groups.setdefault(code, []).append((record["step"], finding))
    for _, group in sorted(groups.items(), key=lambda item: (item[1][0][0], item[0])):
        (first, _), (last, finding) = group[0], group[-1]
        times = f", {len(group)} times until step {last:,}" if len(group) > 1 else ""
        yield f"step {first:,}{times}", finding


def _in_record(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if isinstance(finding := record.get("finding"), dict):
        yield finding
    if "skipped" in record:
        yield {"level": "problem", "about": "skipped step", "measured": record["skipped"]}
    watch = record.get("watch")
    if not isinstance(watch, dict):
        return
    if "findings" in watch:
        yield from watch["findings"]
        return
    for problem in watch.get("problems", ()):  # of a version without codes: "about: measured"
        about, _, measured = str(problem).partition(": ")
        yield {"level": "problem", "about": about, "measured": measured}


def _samples(history: History) -> Iterator[str]:
    told = [record for record in history.records if record.get("sample")]
    found = [(record["step"], record["sample"]) for record in told if isinstance(record["sample"], str)]
    if not found:
        return
    chosen = {round(i) for i in np.linspace(0, len(found) - 1, min(SAMPLES, len(found)))}
    yield "<h2>What it wrote</h2>"
    for number in sorted(chosen):
        step, text = found[number]
        yield f'<div class="card"><small>step {step:,}</small><pre>{escape(text)}</pre></div>'
    rest = [found[number] for number in range(len(found)) if number not in chosen]
    if rest:
        inside = "".join(f"<small>step {step:,}</small><pre>{escape(text)}</pre>" for step, text in rest)
        yield f"<details><summary>{len(rest)} more</summary>{inside}</details>"


def _configuration(history: History) -> Iterator[str]:
    if history.settings:
        yield "<h2>Configuration</h2>"
        items = list(history.settings.items())
        half = (len(items) + 1) // 2
        yield f'<div class="columns">{_table(dict(items[:half]))}{_table(dict(items[half:]))}</div>'


def _machine(history: History) -> Iterator[str]:
    data = history.environment.get("data")
    if isinstance(data, dict):
        yield "<h2>Data</h2>" + _table(data)
    made = stretches(history.environment)
    if made:
        last = {name: value for name, value in made[-1].items() if name != "how"}
        yield "<h2>Machine</h2>\n" + _table(last | {"ended as": _how(made[-1])})
    if len(made) > 1:
        rows = {f"steps {s.get('from')} to {s.get('to', '?')}": f"{s.get('began')}, {_how(s)}" for s in made}
        yield f"<h2>Stretches</h2>{_table(rows)}"


def _how(stretch: Mapping[str, Any]) -> str:
    return str(stretch.get("how", "still running, or killed"))


def _table(values: Mapping[str, Any]) -> str:
    rows = ""
    for name, value in values.items():
        text = str(value).lower() if isinstance(value, bool) else "-" if value is None else str(value)
        rows += f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
    return f'<div class="table"><table>{rows}</table></div>'
