"""Writes categories.py in src/chainrule/text/unicode from the files of the Unicode Character Database.

    python tools/unicode_ranges.py DIRECTORY 16.0.0      # holds UnicodeData.txt and PropList.txt of that version

Python's own `unicodedata` would not do: its version changes with the interpreter, and the split of a text into words,
hence its tokens, must not. 16.0.0 is the version that the regex engines of tiktoken 0.14 and tokenizers 0.23 use.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

TARGET = Path(__file__).parents[1] / "src/chainrule/text/unicode"
CATEGORIES = [
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "M",
    "Nd",
    "Nl",
    "No",
    "P",
    "Pc",
    "S",
]  # as regular expressions name them


def categories(path: Path) -> dict[str, list[int]]:
    """Code points of each category, major (L, N, ...) and minor (Lu, ...). Blocks are given by their first and last."""
    found: dict[str, list[int]] = {}
    begun = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        number, name, category = line.split(";")[:3]
        code = int(number, 16)
        if name.endswith("First>"):
            begun = code
            continue
        first = begun if name.endswith("Last>") else code
        for name in (category, category[0]):
            found.setdefault(name, []).extend(range(first, code + 1))
    return found


def white_space(path: Path) -> list[int]:
    text = path.read_text(encoding="utf-8")
    lines = re.findall(r"^([0-9A-F]+)(?:\.\.([0-9A-F]+))?\s*; White_Space", text, re.MULTILINE)
    return [code for first, last in lines for code in range(int(first, 16), int(last or first, 16) + 1)]


def ranges(codes: Iterable[int]) -> str:
    """Sorted code points as '41-5a 100/136 aa', wrapped: a dash stands between the ends of a range, a slash between
    those of a row in which capital and small letters alternate."""
    runs: list[list[int]] = []  # first, last and step
    for code in sorted(codes):
        first, last, step = runs[-1] if runs else (0, -9, 1)
        if code == last + step or (first == last and code - last in (1, 2)):
            runs[-1] = [first, code, code - last]
        elif step == 2 and code == last + 1:  # the last of a row begins a range
            runs[-1:] = [[first, last - 2, 2 if last - 2 > first else 1], [last, code, 1]]
        else:
            runs.append([code, code, 1])
    words = (
        f"{first:x}" if first == last else f"{first:x}{' -/'[step]}{last:x}" for first, last, step in runs
    )
    name = " " * 15  # of the category, before the first row
    rows = textwrap.wrap(" ".join(words), 118, initial_indent=name, break_on_hyphens=False)
    return "\n".join(rows).lstrip()


def main(directory: str, version: str) -> None:
    properties = Path(directory) / "PropList.txt"
    if f"PropList-{version}.txt" not in properties.read_text(encoding="utf-8"):
        sys.exit(f"{properties}: not of version {version}")
    found = categories(Path(directory) / "UnicodeData.txt")
    tables = {name: found[name] for name in CATEGORIES} | {"space": white_space(properties)}
    rows = [f'    "{name}": """{ranges(codes)}""",' for name, codes in tables.items()]
    about = f"categories of characters, and white space, in Unicode {version}"
    head = f'"""Made by tools/unicode_ranges.py: {about}."""'
    text = "\n".join([head, "", "CATEGORIES = {", *rows, "}", ""])
    (TARGET / "categories.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
