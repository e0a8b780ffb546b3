"""Kinds of values: how the words of a command line, or a value of a TOML file, become what a field holds."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from chainrule.cli.args.errors import BadValue
from chainrule.suggest import hinted
from chainrule.validate import Duration

UNITS = {"s": 1, "m": 60, "h": 3600}


class Several:
    """Marks a field whose one flag is followed by any number of values."""


@dataclass(frozen=True)
class Kind:
    """What may follow a flag."""

    shown: str  # in the help: INT
    rule: str  # what one word must be
    read: Callable[[str], Any]  # one word to a value; raises ValueError
    toml: tuple[type, ...] = (str,)  # what TOML must hold
    choices: Sequence[str] = ()  # all words there are, if there are few
    words: int | None = 1  # how many values a flag has; None for any number, 0 for a switch
    optional: bool = False  # the word None stands for no value
    repeated: bool = False  # the values of several flags are put together
    gather: Callable[[Sequence[Any]], Any] = tuple  # several values to one

    def value(self, flag: str, texts: Sequence[str]) -> Any:
        """The value of a flag that is followed by these words."""
        if self.optional and list(texts) == ["None"]:
            return None
        said = " ".join(texts)
        if self.words not in (None, 1, len(texts)):
            raise BadValue(flag, said, f"must be {self.words} values")
        try:
            found = [self.read(text) for text in texts]
            return found[-1] if self.words == 1 and not self.repeated else self.gather(found)
        except ValueError as error:
            wrong = next((text for text in texts if text not in self.choices), said)
            raise BadValue(flag, said, hinted(f"must be {self.rule}", wrong, self.choices)) from error

    def takes(self, value: Any) -> bool:
        """Is this what TOML must hold? "6" is not 6, and to Python true is an integer."""
        return isinstance(value, self.toml) and isinstance(value, bool) == (bool in self.toml)

    @property
    def toml_rule(self) -> str:
        return "must be a text in quotes" if self.toml[0] is str else f"must be {self.rule}, without quotes"


def seconds(text: str) -> float:
    """90, 90s, 10m or 1.5h"""
    number, unit = (text[:-1], UNITS[text[-1]]) if text[-1:] in UNITS else (text, 1)
    return float(number) * unit


PLAIN = {
    int: Kind("INT", "an integer", int, (int,)),
    float: Kind("NUMBER", "a number", float, (int, float)),
    str: Kind("TEXT", "a text", str),
    Path: Kind("PATH", "a path", Path),
    bool: Kind("", "true or false", bool, (bool,), words=0),
}
SECONDS = replace(
    PLAIN[float],
    rule="a number of seconds, or a time such as 10m or 1.5h",
    read=seconds,
    toml=(int, float, str),
)


def kind_of(hint: Any, marks: Sequence[Any] = ()) -> Kind | None:
    """The kind of a field with this type; None for one that has no flag, such as a dataclass or None."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return kind_of(inside[0], [*marks, *hint.__metadata__])
    if origin in (Union, types.UnionType):
        kind = kind_of(next(each for each in inside if each is not type(None)), marks)
        return kind and replace(kind, optional=type(None) in inside)
    if origin is Literal:
        return _choice(inside)
    if origin is tuple:
        return _many(inside, several=Several in marks)
    if origin is Mapping:
        return _pairs(*inside)
    return SECONDS if Duration in marks else PLAIN.get(hint)


def _choice(choices: Sequence[str]) -> Kind:
    known = tuple(sorted(choices))
    rule = known[0] if len(known) == 1 else f"one of {', '.join(known)}"
    return Kind("|".join(choices), rule, lambda text: known[known.index(text)], choices=known)


def _many(inside: Sequence[Any], *, several: bool) -> Kind | None:
    kind = kind_of(inside[0])
    if kind is None:
        return None
    if inside[-1] is not Ellipsis:
        return replace(kind, shown=" ".join([kind.shown] * len(inside)), words=len(inside))
    return replace(kind, words=None if several else 1, repeated=True)


def _pairs(key: Any, value: Any) -> Kind:
    """3 2 5 -inf: a key, its value, the next key."""
    first, second = kind_of(key), kind_of(value)
    assert first and second

    def gather(texts: Sequence[str]) -> dict[Any, Any]:
        if len(texts) % 2:
            raise ValueError
        return {first.read(k): second.read(v) for k, v in zip(texts[::2], texts[1::2], strict=True)}

    shown, rule = f"{first.shown} {second.shown}", f"pairs: {first.rule}, then {second.rule}"
    return Kind(shown, rule, str, words=None, repeated=True, gather=gather)
