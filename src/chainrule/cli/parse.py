"""Command lines to dataclasses, by tyro, with its boxed explanations folded into one line."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import tyro

from chainrule.cli.wording import explain, flag_of
from chainrule.errors import ConfigError

T = TypeVar("T")

UNITS = {"s": 1, "m": 60, "h": 3600}


def parse(command: type[T], program: str, args: list[str]) -> T:
    """An instance of the dataclass `command` from flags; what does not fit is a ConfigError."""
    if {"-h", "--help"} & set(args):
        return tyro.cli(command, prog=program, args=args)  # prints the help and exits
    args = [_seconds(word, before) for before, word in zip(["", *args], args, strict=False)]
    known = options(command)
    args = _pair_by_pair(known, args)
    _refuse_values_of_switches(known, args)
    explanation = io.StringIO()
    try:
        with contextlib.redirect_stderr(explanation), _wide_terminal():
            return tyro.cli(command, prog=program, args=args)
    except SystemExit:
        said = explain(explanation.getvalue(), known)
        raise ConfigError(f"{said}; see {program} --help") from None


def _seconds(word: str, before: str) -> str:
    """The value of --budget in seconds: 90, 90s, 10m or 1.5h."""
    flag, equals, value = word.rpartition("=")
    if (flag if equals else before) != "--budget":
        return word
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", value)
    return f"{flag}{equals}{float(found[1]) * UNITS[found[2]]}" if found else word


def _pair_by_pair(known: dict[str, Any], args: list[str]) -> list[str]:
    """--logit-bias 3 2 5 -inf as --logit-bias 3 2 --logit-bias 5 -inf: of the parser a flag gets one pair."""
    mappings = {flag_of(name) for name, kind in known.items() if get_origin(kind) is Mapping}
    found: list[str] = []
    for word in args:
        *_, flag, key, value = ["", "", "", *found]
        if flag in mappings and _is_number(key) and _is_number(value) and _is_number(word):
            found.append(flag)
        found.append(word)
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def flags(words: Sequence[str]) -> frozenset[str]:
    """The fields whose flags are among the words of a command line: {"n_layer", "bias"} of --n-layer=2 --no-bias."""
    given = [word.partition("=")[0][2:].replace("-", "_") for word in words if word.startswith("--")]
    return frozenset(given) | {name.removeprefix("no_") for name in given}


def options(command: type[Any]) -> dict[str, Any]:
    """The fields of a command that have a flag, those of its parts too, and their types."""
    found: dict[str, Any] = {}
    hints = get_type_hints(command, include_extras=True)
    for name in (f.name for f in fields(command)):
        marked = hints[name]
        kind, *marks = get_args(marked) if get_origin(marked) is Annotated else (marked,)
        if is_dataclass(kind) and isinstance(kind, type):
            found |= options(kind)
        elif tyro.conf.Positional not in marks:
            found[name] = kind
    return found


def _refuse_values_of_switches(known: dict[str, Any], args: list[str]) -> None:
    """--json=no would be read as --json and a file named no."""
    switches = {
        flag_of(prefix + name) for name, kind in known.items() if kind is bool for prefix in ("", "no_")
    }
    for word in args:
        flag, equals, value = word.partition("=")
        if equals and flag in switches:
            raise ConfigError(f"{flag}: got {value!r} (must stand alone: leave out ={value})")


@contextlib.contextmanager
def _wide_terminal() -> Iterator[None]:
    """Room for any message on one row: a wrapped path could not be put together again."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
