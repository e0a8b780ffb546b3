"""The errors that Chainrule raises. Each message names the thing, the value and the rule.

A message may be given in parts. A part that is a `Setting` is the name of a field; a command line shows it as a flag.
A first part that is a `FileName` says that the message names its file already; one that is an `Owner` names what
refuses, and a command that it serves answers by its own name.

>>> error = ConfigError("train: ", Setting("max_steps"), " is 0 (must be at least 1)")
>>> str(error)
'train: max_steps is 0 (must be at least 1)'
>>> error.spelled(str.upper)
'train: MAX_STEPS is 0 (must be at least 1)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class Setting(str):
    """The name of a field, as a part of a message."""

    __slots__ = ()


class FileName(str):
    """The name of the file that a message is about, as its first part."""

    __slots__ = ()


class Owner(str):
    """What refuses, such as "sample: ", as the first part of a message."""

    __slots__ = ()


class ChainruleError(Exception):
    """Base of all errors that this package raises on purpose."""

    def __str__(self) -> str:
        return self.spelled(str)

    def spelled(self, spell: Callable[[Setting], str]) -> str:
        """The message, with each setting as `spell` writes it."""
        return "".join(spell(part) if isinstance(part, Setting) else str(part) for part in self.args)

    @property
    def owner(self) -> str:
        """What refuses, if the message says it by an `Owner`."""
        first = next(iter(self.args), None)
        return first.removesuffix(": ") if isinstance(first, Owner) else ""


class Failure(ChainruleError):
    """Work that was asked for rightly and failed, such as a training that diverged; a command ends with exit code 1."""


class ShapeError(ChainruleError, ValueError):
    """Arrays whose sizes do not fit the operation."""


class GraphError(ChainruleError, RuntimeError):
    """Misuse of the recorded computation: a second backward, a missing seed, a changed saved value."""


class GradientError(ChainruleError, ArithmeticError):
    """An analytic gradient that disagrees with the numerical one."""


class DataError(ChainruleError, ValueError):
    """Input data that cannot be used: empty, broken, too short."""


class ConfigError(ChainruleError, ValueError):
    """A setting outside its allowed range, or settings that contradict each other."""

    settings: Mapping[str, Any] = {}
    rule: str = ""
    fix: str = ""

    @classmethod
    def of(cls, owner: str, settings: Mapping[str, Any], rule: str, fix: str = "") -> ConfigError:
        """`owner` refuses the values of its settings: they violate the rule.

        >>> ConfigError.of("GPT", {"n_embd": 128, "n_head": 3}, "heads must divide the width")
        ConfigError('GPT: ', 'n_embd', ' is 128', ', ', 'n_head', ' 3', ' (heads must divide the width)')
        """
        parts: list[str] = [Owner(f"{owner}: ")]
        for name, value in settings.items():
            shown = _shown(value)
            first = len(parts) == 1
            parts += [*([] if first else [", "]), Setting(name), f" is {shown}" if first else f" {shown}"]
        error = cls(*parts, f" ({rule}: {fix})" if fix else f" ({rule})")
        error.settings, error.rule, error.fix = dict(settings), rule, fix
        return error


def _shown(value: Any) -> str:
    """A value in a message: words in quotes, 1e+10 for 10000000000.0."""
    if isinstance(value, float) and abs(value) >= 1e6:
        return f"{value:g}"
    return repr(value) if isinstance(value, str) else str(value)


def kind_of(value: Any) -> str:
    """The type of a value in a message, with its article.

    >>> kind_of(1), kind_of({}), kind_of(None)
    ('an int', 'a dict', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


class CacheFull(ChainruleError, MemoryError):
    """A KV cache has no page left for more tokens; nothing was computed, and all it holds is as it was."""


class UnknownName(ChainruleError, AttributeError):
    """An attribute that does not exist, with the one that does what was meant."""


class CheckpointError(ChainruleError, RuntimeError):
    """A checkpoint that is damaged, incomplete or of another model."""


class FormatError(ChainruleError, ValueError):
    """A file that is not in the format it claims."""


class ChainruleWarning(UserWarning):
    """Something was wrong and was worked around."""
