"""A call whose arguments do not fit: a ConfigError that names the argument, what was meant, and what is taken.

>>> @answering
... def scale(x, *, factor=2.0):
...     return factor * x
>>> scale(3, factr=1.0)
Traceback (most recent call last):
chainrule.errors.ConfigError: scale: unknown argument 'factr'; did you mean factor? (it takes scale(x, *, factor=2.0))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Self, TypeVar

from chainrule.errors import ConfigError
from chainrule.suggest import did_you_mean
from chainrule.torch_names import ARGUMENTS

MANY = 12  # arguments whose defaults would fill more than a line

C = TypeVar("C", bound=Callable[..., Any])


def shown(name: str, taken: inspect.Signature) -> str:
    """`softmax(x, /, *, axis=-1)`; of many settings the names alone."""
    if len(taken.parameters) > MANY:
        return f"{name}({', '.join(taken.parameters)})"
    bare = [p.replace(annotation=p.empty, default=_Default.of(p)) for p in taken.parameters.values()]
    return name + str(taken.replace(parameters=bare, return_annotation=taken.empty))


class _Default:
    """A function as a default, whose own `repr` is an address in memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    @classmethod
    def of(cls, parameter: inspect.Parameter) -> Any:
        default = parameter.default
        return cls(default.__name__) if callable(default) and default is not parameter.empty else default


def misfit(
    name: str, taken: inspect.Signature, args: Sequence[Any], constants: Mapping[str, Any]
) -> ConfigError | None:
    """What is wrong with the arguments of a call of `name`; None if they fit its signature."""
    try:
        taken.bind(*args, **constants)
    except TypeError as wrong:
        return ConfigError(
            f"{name}: {_unbound(str(wrong), taken, constants)} (it takes {shown(name, taken)})"
        )
    return None


def answering(function: C) -> C:
    """The function; called with arguments that do not fit, it raises a ConfigError. Other calls cost no check."""
    return _answering(function, function.__name__, 0)


def answering_methods(kind: type) -> None:
    """The same for the public methods of a class."""
    for name, value in list(vars(kind).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(kind, name, _answering(value, name, 1))


def _answering(function: C, name: str, skipped: int) -> C:
    """`skipped` arguments, such as `self`, are given by Python and not shown."""

    @wraps(function)
    def call(*args: Any, **constants: Any) -> Any:
        try:
            return function(*args, **constants)
        except TypeError as error:
            whole = inspect.signature(function)
            taken = whole.replace(parameters=[*whole.parameters.values()][skipped:])
            if wrong := misfit(name, taken, args[skipped:], constants):
                raise wrong from error
            raise

    return call  # type: ignore[return-value]


def renamed(name: str, constants: Mapping[str, Any], *, both: bool = False) -> dict[str, Any]:
    """`dim` as `axis`; refused if there are `both`, as when the axis is given by its place."""
    if both or "axis" in constants:
        raise ConfigError(f"{name}: got both axis and dim (they are one argument: give one of them)")
    return {"axis" if key == "dim" else key: value for key, value in constants.items()}


def one_axis_methods(kind: type) -> None:
    """Let `dim` mean `axis` in the methods of a class that take both names."""
    for name, value in list(vars(kind).items()):
        if inspect.isfunction(value) and "dim" in (taken := [*inspect.signature(value).parameters]):
            setattr(kind, name, _one_axis(value, name, taken.index("axis")))


def _one_axis(function: C, name: str, place: int) -> C:
    @wraps(function)
    def call(*args: Any, **constants: Any) -> Any:
        if "dim" in constants:
            constants = renamed(name, constants, both=len(args) > place)
        return function(*args, **constants)

    return call  # type: ignore[return-value]


class Answering:
    """Base of classes whose `__init__`, called with arguments that do not fit, raises a ConfigError."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if made := vars(cls).get("__init__"):
            setattr(cls, "__init__", _answering(made, cls.__name__, 1))  # noqa: B010


class Fields:
    """Base of dataclasses of settings, whose `__init__` is written later than `Answering` could see it."""

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        given = args or settings  # a copy is made without
        kind: Any = cls  # mypy takes no class for hashable
        if given and (wrong := misfit(cls.__name__, _taken(kind), args, settings)):
            raise wrong
        return super().__new__(cls)


@cache
def _taken(kind: type) -> inspect.Signature:
    whole = inspect.signature(kind.__init__)  # type: ignore[misc]
    return whole.replace(parameters=[*whole.parameters.values()][1:])


def _unbound(message: str, taken: inspect.Signature, constants: Mapping[str, Any]) -> str:
    """What is wrong with a call whose arguments do not fit the signature."""
    for name in constants:
        known = taken.parameters.get(name)
        if known is None:
            return f"unknown argument {name!r}; {_meant(name, taken)}".rstrip("; ")
        if known.kind is known.POSITIONAL_ONLY:
            return f"{name} is given by name (tensors are given by position)"
    return message


def _meant(name: str, taken: inspect.Signature) -> str:
    """What an unknown argument is called here, or how it is said."""
    word = ARGUMENTS.get(name, "")
    if word in taken.parameters:
        return f"did you mean {word}?"
    said = "" if word.isidentifier() else word  # an argument of other functions, or a sentence
    return f"here: {said}" if said else did_you_mean(name, taken.parameters)
