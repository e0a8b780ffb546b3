"""From words to a dataclass: values, places, several values, pairs, and what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from chainrule.cli.args.errors import BadValue, ExtraArgument, MissingArgument, MissingValue, UnknownOption
from chainrule.cli.args.kinds import Several
from chainrule.cli.args.options import Also, Argument, Given, options_of
from chainrule.cli.args.reader import read
from chainrule.errors import ConfigError
from chainrule.validate import Check, Seconds


@dataclass(frozen=True)
class Inner:
    """Inner settings."""

    rate: float = 0.5
    """A number."""
    seconds: Seconds | None = None
    bias: Mapping[int, float] = field(default_factory=dict)
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        Check("inner", self).positive("rate")


@dataclass(frozen=True)
class Command:
    """A command."""

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run."""
    files: Annotated[tuple[str, ...], Argument("FILE")] = ()
    n_layer: int = 2
    kind: Literal["one", "two"] = "one"
    triple: tuple[str, str, str] | None = None
    marks: Annotated[tuple[str, ...], Several] = ()
    fast: bool = True
    workers: Annotated[int, Also("jobs")] = 1
    inner: Inner = field(default_factory=Inner)
    given: Given = field(default_factory=Given)


def command(words: str) -> Command:
    return read(Command, options_of(Command), words.split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("r --n-layer 3", {"n_layer": 3}),
        ("r --n_layer=3", {"n_layer": 3}),
        ("r --n-layer 3 --n-layer 4", {"n_layer": 4}),  # the later counts
        ("--no-fast r", {"fast": False}),
        ("r --workers 3", {"workers": 3}),
        ("r --jobs=3", {"workers": 3}),  # as it was called before
        ("r --jobs 3 --workers 4", {"workers": 4}),
        ("--no_fast r --fast", {"fast": True}),
        ("r a --kind two b -", {"kind": "two", "files": ("a", "b", "-")}),
        ("r -- --kind", {"files": ("--kind",)}),
        ("r --triple a b c --fast", {"triple": ("a", "b", "c"), "fast": True}),
        ("r --triple None", {"triple": None}),
        ("r --marks a b --marks c", {"marks": ("a", "b", "c")}),
        ("r --rate -0 --rate 1e-3", {"rate": 1e-3}),
        ("r --seconds 1.5m", {"seconds": 90.0}),
        ("r --seconds 2h", {"seconds": 7200.0}),
        ("r --bias 3 2 5 -inf", {"bias": {3: 2.0, 5: -float("inf")}}),
        ("--bias 3 2 --bias 4 1 r", {"bias": {3: 2.0, 4: 1.0}}),
        ("r --stop a --stop=-b", {"stop": ("a", "-b")}),
    ],
)
def test_values(words: str, expected: dict[str, Any]) -> None:
    made = command(words)
    assert made.run_folder == Path("r")
    found = vars(made) | vars(made.inner)
    assert {name: found[name] for name in expected} == expected
    assert made.given == {"run_folder", *expected}


@pytest.mark.parametrize(
    ("words", "error", "fields"),
    [
        ("r --n-lyer 3", UnknownOption, {"word": "--n-lyer", "hint": "did you mean --n-layer?"}),
        ("r --nofast", UnknownOption, {"word": "--nofast", "hint": "did you mean --no-fast?"}),
        ("r --n-layer", MissingValue, {"flag": "--n-layer"}),
        ("r --n-layer --fast", MissingValue, {"flag": "--n-layer"}),
        ("r --n-layer x", BadValue, {"flag": "--n-layer", "value": "x", "rule": "must be an integer"}),
        ("r --fast=no", BadValue, {"value": "no", "rule": "must stand alone: leave out =no"}),
        ("r --kind tow", BadValue, {"rule": "must be one of one, two; did you mean two?"}),
        ("r --triple a b", BadValue, {"value": "a b", "rule": "must be 3 values"}),
        ("r --triple a b c d", BadValue, {"value": "a b c d"}),
        ("r --bias 3 2 5", BadValue, {"value": "3 2 5"}),
        (
            "r --seconds soon",
            BadValue,
            {"rule": "must be a number of seconds, or a time such as 10m or 1.5h"},
        ),
        ("--fast", MissingArgument, {"name": "RUN", "about": "Directory of a run."}),
    ],
)
def test_what_does_not_fit_is_known_by_its_fields(
    words: str, error: type[ConfigError], fields: dict[str, str]
) -> None:
    with pytest.raises(error) as caught:
        command(words)
    assert {name: getattr(caught.value, name) for name in fields} == fields


def test_a_value_may_begin_with_a_dash_if_it_has_a_space() -> None:
    read_command = read(Command, options_of(Command), ["run", "- a file", "--stop", "- x", "--stop=- a b"])
    assert read_command.files == ("- a file",)
    assert read_command.inner.stop == ("- x", "- a b")


def test_one_argument_too_many() -> None:
    @dataclass(frozen=True)
    class One:
        name: Annotated[str, Argument("NAME")] = ""

    with pytest.raises(ExtraArgument, match="'b': one argument too many"):
        read(One, options_of(One), ["a", "b"])


def test_a_config_inside_is_checked_with_what_was_given() -> None:
    with pytest.raises(ConfigError) as caught:
        command("r --rate -1")
    assert (caught.value.owner, caught.value.settings) == ("inner", {"rate": -1.0})
