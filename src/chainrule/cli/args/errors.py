"""What can be wrong with a command line. Each error has the words it is about as fields, and says them in one line."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule.cli.args.familiar import option_hint
from chainrule.errors import ConfigError
from chainrule.suggest import did_you_mean

ALIKE = 0.7  # flags begin alike (--n-head, --n-embd), so that more is asked of them


class UsageError(ConfigError):
    """A command line that cannot be read."""


class UnknownOption(UsageError):
    """`known` are the flags of the command, and the names of what is given by its place; `hint` is what to do."""

    def __init__(self, word: str, known: Iterable[str], hint: str = "") -> None:
        self.word = word
        flag, known = word.partition("=")[0], list(known)
        flags = [name for name in known if name.startswith("-")]
        self.hint = hint or option_hint(flag, known) or did_you_mean(flag, flags, likeness=ALIKE)
        super().__init__(f"{word}: unknown option{self.hint and f' ({self.hint})'}")


class MissingValue(UsageError):
    def __init__(self, flag: str) -> None:
        self.flag = flag
        super().__init__(
            f"{flag}: no value (must be followed by one; if it begins with a dash, {flag}=VALUE)"
        )


class BadValue(UsageError):
    def __init__(self, flag: str, value: str, rule: str) -> None:
        self.flag, self.value, self.rule = flag, value, rule
        super().__init__(f"{flag}: got {value!r} ({rule})")


class MissingArgument(UsageError):
    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, about
        super().__init__(f"{name} is missing (must be given: {about[:1].lower()}{about[1:].rstrip('.')})")


class ExtraArgument(UsageError):
    def __init__(self, word: str) -> None:
        self.word = word
        rule = "leave it out; an option is written --name"
        if word.lower() in ("true", "false", "yes", "no", "on", "off"):
            rule = "a switch has no value: --name turns it on, --no-name off"
        super().__init__(f"{word!r}: one argument too many ({rule})")
