"""What the diagnostics view shows: a deep network as it was drawn, or the newest checkpoint of a run, on one batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainrule.cli.commands.diagnose import of_run
from chainrule.errors import ConfigError
from chainrule.lessons.initialization import DRAWS, deep_network
from chainrule.web.jobs import Tell
from chainrule.web.runs.findings import said

ACTIVATIONS = ("tanh", "sigmoid", "relu", "gelu")
NORMS = ("none", "batch", "layer")
ABOUT = {
    "gain": "with the gain of the activation (Kaiming)",
    "no gain": "1/√n, as if there were no activation",
    "large": "N(0, 1): far too large",
    "small": "N(0, 0.01²): far too small",
}
DEPTHS, WIDTHS = (1, 20), (8, 512)


def choices() -> dict[str, Any]:
    """What can be chosen for the network."""
    draws = [{"name": name, "about": ABOUT[name]} for name in DRAWS]
    return {"activations": ACTIVATIONS, "norms": NORMS, "draws": draws, "depths": DEPTHS, "widths": WIDTHS}


def of_network(depth: int, width: int, activation: str, draw: str, norm: str, lr: float) -> dict[str, Any]:
    """A network before its first step."""
    for name, value, (low, high) in (("depth", depth, DEPTHS), ("width", width, WIDTHS)):
        if not low <= value <= high:
            raise ConfigError(f"diagnostics: {name} is {value} (must be from {low} to {high})")
    for name, chosen, known in (
        ("activation", activation, ACTIVATIONS),
        ("draw", draw, tuple(DRAWS)),
        ("norm", norm, NORMS),
    ):
        if chosen not in known:
            raise ConfigError(f"diagnostics: {name} {chosen[:40]!r} (must be one of {', '.join(known)})")
    if not 0 < lr <= 100:
        raise ConfigError(f"diagnostics: learning rate {lr:g} (must be above 0 and at most 100)")
    given: dict[str, Any] = {"activation": activation, "draw": draw, "lr": lr}
    if norm != "none":
        given["norm"] = norm
    report = deep_network(depth, width, **given)
    words = "".join(f", {name}={value!r}" for name, value in given.items())
    program = [
        "from chainrule.lessons.initialization import deep_network",
        "",
        f"report = deep_network({depth}, {width}{words})",
        "for layer in report.layers:",
        "    print(layer.name, layer.value.std, layer.grad.std, layer.flat, len(layer.dead))",
        "",
    ]
    return _shown(f"{depth} {activation} layers of {width}, before the first step", report, program)


def of_checkpoint(folder: Path, tell: Tell) -> dict[str, Any]:
    """The newest checkpoint of a run on the batch that is next."""
    tell("reading the newest checkpoint", None)
    title, step, report = of_run(folder)
    program = [
        "from pathlib import Path",
        "",
        "from chainrule.cli.commands.diagnose import of_run",
        "",
        f"title, step, report = of_run(Path({str(folder)!r}))",
        "for layer in report.layers:",
        "    print(layer.name, layer.value.std, layer.grad.std, layer.flat, len(layer.dead))",
        "",
    ]
    return _shown(f"{title}, after {step:,} steps", report, program)


def _shown(title: str, report: Any, program: list[str]) -> dict[str, Any]:
    findings = [said(finding) for finding in report.findings]
    return {"title": title} | report.to_dict() | {"findings": findings, "python": "\n".join(program)}
