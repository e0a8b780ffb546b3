"""What was meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable

LIKENESS = 0.6  # from which a known word is taken for the one that was meant


def closest(word: str, known: Iterable[str], n: int = 1, likeness: float = LIKENESS) -> list[str]:
    """The `n` known words most like this one; case and leading dashes do not count."""
    import difflib  # here, because it is needed only when something is wrong

    names = {name.lower().lstrip("-"): name for name in known}
    found = difflib.get_close_matches(word.lower().lstrip("-"), names, n=n, cutoff=likeness)
    return [names[name] for name in found]


def did_you_mean(word: str, known: Iterable[str], n: int = 1, likeness: float = LIKENESS) -> str:
    """A question, or nothing if no known word is like this one.

    >>> did_you_mean("--Minuts", ["--minutes", "--out"])
    'did you mean --minutes?'
    """
    found = closest(word, known, n, likeness)
    return f"did you mean {', '.join(found)}?" if found else ""


def hinted(rule: str, word: str, known: Iterable[str]) -> str:
    """A rule, followed by what was meant if a known word is like this one."""
    hint = did_you_mean(word, known)
    return f"{rule}; {hint}" if hint else rule
