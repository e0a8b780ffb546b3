"""The errors that Chainrule raises. Each message names the thing, the value and the rule."""

from __future__ import annotations


class ChainruleError(Exception):
    """Base of all errors that this package raises on purpose."""


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


class CheckpointError(ChainruleError, RuntimeError):
    """A checkpoint that is damaged, incomplete or of another model."""


class FormatError(ChainruleError, ValueError):
    """A file that is not in the format it claims."""


class ChainruleWarning(UserWarning):
    """Something was wrong and was worked around."""
