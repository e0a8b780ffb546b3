"""What is wrong with a command line, in words of our own: the option, the value, the rule, the fix.

`explain` turns the boxes of the parser into one line; `flagged` puts flags where an error names fields.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Collection, Iterable

KINDS = {"INT": "an integer", "FLOAT": "a number", "PATH": "a path", "STR": "a text"}


def explain(box: str, options: Collection[str]) -> str:
    """The first section of a box in one line; `options` are the fields that have a flag."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)  # colours
    rows = [row.strip("│ ") for row in plain.splitlines()[1:]]  # the first is the title
    sections = [" ".join(s.split()) for s in re.split(r"^[─╰╯-]+$", "\n".join(rows), flags=re.MULTILINE)]
    said = re.sub(r" Got errors: .*", "", next(filter(None, sections), "")).rstrip(".")
    for pattern, words in RULES:
        if found := re.fullmatch(pattern, said):
            return words(*found.groups(), options)
    return said[:1].lower() + said[1:]


def flagged(message: str, options: Iterable[str]) -> str:
    """`message` with --block-size for block_size, and --lr for lr in `: lr is`, `, lr 0.1`, ...; paths stay."""
    for name in options:
        flag = flag_of(name)
        if "_" in name:
            message = re.sub(rf"(?<![\w./'\"-]){name}(?![\w/'\"-]|\.\w)", flag, message)
        else:
            message = re.sub(rf"(?:(?<=: )|(?<=, )|(?<=smaller )){name}(?= is | than | -?\d)", flag, message)
    return message


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def near(word: str, known: Iterable[str]) -> str:
    """A question about the word that was meant, if one is like it."""
    plain = {name.lower().lstrip("-"): name for name in known}
    found = difflib.get_close_matches(word.lower().lstrip("-"), plain, n=1, cutoff=0.7)
    return f"did you mean {plain[found[0]]}?" if found else ""


def _unknown(words: str, options: Collection[str]) -> str:
    given = words.split(", ")
    wrong = next((word for word in given if word.startswith("-")), None)
    if wrong is None:
        return f"{given[0]!r}: one argument too many (leave it out; an option is written --name)"
    hint = near(wrong.partition("=")[0], map(flag_of, options))
    return f"{wrong}: no such option" + (f" ({hint})" if hint else "")


def _no_value(flag: str, options: Collection[str]) -> str:
    return f"{flag}: no value (must be followed by one; if it begins with a dash, {flag}=VALUE)"


def _no_choice(value: str, flag: str, listed: str, options: Collection[str]) -> str:
    # The parser's order of choices varies from run to run; None is what an option is when it is left out.
    choices = sorted(set(re.findall(r"'([^']*)'", listed)) - {"None"})
    return f"{flag}: got {value!r} (must be {_one_of(choices)}{_after(near(value, choices))})"


def _no_type(flag: str, kinds: str, listed: str, options: Collection[str]) -> str:
    kind = re.sub(r"\{None\}\||[{}]", "", kinds)
    got = " ".join(map(str, ast.literal_eval(listed)))
    count = len(kind.split())
    return f"{flag}: got {got!r} (must be {f'{count} values' if count > 1 else KINDS.get(kind, kind)})"


def _one_of(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"


def _after(hint: str) -> str:
    return f"; {hint}" if hint else ""


# What the parser says, and what is said instead.
RULES: list[tuple[str, Callable[..., str]]] = [
    (r"Unrecognized options: (.*)", _unknown),
    (r"Missing value for argument '(\S+)'.*", _no_value),
    (r"[Ii]nvalid choice '(.*)' for argument '(\S+)'\. Expected one of \((.*)\)", _no_choice),
    (
        r"Missing from [^:]*: (\S+) (.*?)\.? \(required\)",
        lambda name, about, _: f"{name} is missing (must be given: {about[:1].lower()}{about[1:]})",
    ),
    (r"Error parsing (--\S+): no type matching (.*) could be instantiated from (\[.*\])", _no_type),
    (
        r"Error parsing (--\S+): invalid literal for int\(\) with base 10: (.*)",
        lambda flag, value, _: f"{flag}: got {value} (must be an integer)",
    ),
    (
        r"Error parsing (--\S+): could not convert string to float: (.*)",
        lambda flag, value, _: f"{flag}: got {value} (must be a number)",
    ),
    (r"Error parsing (?:[^-]\S*: )?(.*)", lambda rest, _: rest),  # what a config itself says
]
