"""Regular expressions with Unicode's categories (\\p{L}), as spans of a text.

Known expressions run in Python's `re`, which lacks \\p: each category becomes a set of characters of one fixed version
of Unicode, so the words of a text never change with the interpreter. Other expressions run as they are in the package
`regex`, with a limit on their time.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from chainrule.errors import DataError, FormatError
from chainrule.text.unicode.categories import CATEGORIES

Spans = Callable[[str], Iterator[tuple[int, int]]]

LONGEST = 20_000  # characters of an expression
PATIENCE, PACE = 10.0, 20_000  # seconds that a search may take, and characters for each second more
ANCHOR = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|([$^])", re.DOTALL)

_KNOWN: set[str] = set()
_ESCAPE = re.compile(r"\\[pP]\{(\w+)\}|\\(.)|[\[\]$]", re.DOTALL)
_CIRCLED = "24b6-24e9 1f130-1f149 1f150-1f169 1f170-1f189"  # letters by their use, symbols by their category
_JOINERS = "200c-200d"
_LETTERS = ("Lu", "Ll", "Lt", "Lm", "Lo")
_GROUPS = {  # of categories; \w as Unicode's annex on expressions defines it
    "L": _LETTERS,
    "N": ("Nd", "Nl", "No"),
    "word": (*_LETTERS, "M", "Nd", "Nl", "Pc"),
}


def know(*expressions: str) -> None:
    """Mark expressions as written by us: they run in `re`, without a limit on time."""
    _KNOWN.update(expressions)


def is_known(expression: str) -> bool:
    """True if the expression needs no further package."""
    return expression in _KNOWN


@lru_cache(maxsize=256)
def spans(expression: str, *, ruby: bool = False) -> Spans:
    """A function from a text to the spans that match; with `ruby`, ^ and $ stand at the ends of lines."""
    if is_known(expression):
        known = compiled(expression)
        return lambda text: (match.span() for match in known.finditer(text))
    return _foreign(expression, ruby)


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """A known expression in Python's `re`."""
    return re.compile(translate(expression))


@cache
def splitter(expression: str) -> re.Pattern[str]:
    """A known expression in a group, so that `split` returns what it matches too."""
    return re.compile(f"({translate(expression)})")


def has_anchor(expression: str) -> bool:
    """True if it contains ^ or $, which mean the ends of the text to some engines, the ends of lines to others."""
    return any(match[1] for match in ANCHOR.finditer(expression))


def translate(expression: str) -> str:
    """An expression for Python's `re`.

    >>> translate(r"[^\\s\\p{Nl}]").startswith(r"[^\\U00000009-\\U0000000d")
    True
    """
    inside = False

    def replaced(match: re.Match[str]) -> str:
        nonlocal inside
        category, letter = match.groups()
        if match[0] == "$":
            return "$" if inside else "(?m:$)"
        if match[0] in "[]":
            inside = match[0] == "["
            return match[0]
        if letter == "z":
            return r"\Z"
        name = category or {"s": "space", "S": "space", "w": "word", "W": "word"}.get(letter, "")
        if not name:
            return match[0]
        negated = match[0][1].isupper()
        if inside and negated:
            raise FormatError(f"expression {expression[:60]!r}: {match[0]} in a set (is not supported)")
        return members(name) if inside else f"[{'^' if negated else ''}{members(name)}]"

    return _ESCAPE.sub(replaced, expression)


@cache
def members(name: str) -> str:
    """The characters of a category, as the content of a set in `re`."""
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges_of(name))


@cache
def characters(name: str) -> frozenset[str]:
    """The characters of a category."""
    return frozenset(chr(code) for first, last in ranges_of(name) for code in range(first, last + 1))


@cache
def ranges_of(name: str) -> tuple[tuple[int, int], ...]:
    """The code points of a category, or of several together, as the first and the last of each range, in order."""
    listed = [CATEGORIES[each] for each in _GROUPS.get(name, (name,))]
    listed += [_CIRCLED, _JOINERS] if name == "word" else []
    found: list[tuple[int, int]] = []
    for first, last in sorted(span for text in listed for word in text.split() for span in _spans(word)):
        if found and first == found[-1][1] + 1:
            found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return tuple(found)


def _spans(word: str) -> Iterator[tuple[int, int]]:
    """41-5a is a range, 100/136 every second code point from the first to the last."""
    first, slash, last = word.partition("/")
    if slash:
        yield from ((code, code) for code in range(int(first, 16), int(last, 16) + 1, 2))
    else:
        first, _, last = word.partition("-")
        yield int(first, 16), int(last or first, 16)


def _has_nested_sets(expression: str) -> bool:
    """True for sets in sets and for intersections (&&), which `regex` reads in its version 1 only."""
    inside = False
    for token in re.findall(r"\\.|[\[\]]", expression, re.DOTALL):
        if token == "[" and inside:
            return True
        inside = token == "[" or (inside and token != "]")
    return "&&" in expression


def _foreign(expression: str, ruby: bool) -> Spans:
    """An expression that we do not know, in the package `regex`."""
    shown = repr(expression if len(expression) <= 60 else expression[:57] + "...")
    if len(expression) > LONGEST:
        raise FormatError(f"expression {shown}: {len(expression)} characters (must be at most {LONGEST})")
    try:
        import regex
    except ImportError:
        raise FormatError(
            f"expression {shown}: is not one of the known ones (needs the package regex: pip install 'chainrule[data]')"
        ) from None
    flags = (regex.MULTILINE if ruby else 0) | (regex.VERSION1 if _has_nested_sets(expression) else 0)
    try:
        pattern = regex.compile(expression.replace(r"\z", r"\Z"), flags)
    except (regex.error, RecursionError, OverflowError) as error:
        raise FormatError(f"expression {shown}: {error} (must be a regular expression)") from None
    warnings.warn(f"expression {shown} is not one of the known ones: it runs as it is, slower", stacklevel=2)

    def found(text: str) -> Iterator[tuple[int, int]]:
        limit = PATIENCE + len(text) / PACE
        try:
            return iter([match.span() for match in pattern.finditer(text, timeout=limit)])
        except TimeoutError:
            rule = "it backtracks too much: use a simpler one"
            raise DataError(
                f"expression {shown}: more than {limit:.0f} s for {len(text)} characters ({rule})"
            ) from None

    return found
