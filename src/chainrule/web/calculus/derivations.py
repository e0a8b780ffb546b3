"""The pages of docs/derivations as blocks of text and MathML, for a page that never parses HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError

# In an installed wheel native/CMakeLists.txt puts them beside the package, in a clone they are where they are written.
PACKAGED = Path(__file__).parents[1] / "derivations"
CHECKOUT = Path(__file__).parents[4] / "docs" / "derivations"
INLINE = re.compile(
    r"(?P<math>\$[^$]+\$)|(?P<code>`[^`]+`)|(?P<bold>\*\*.+?\*\*)|(?P<em>(?<!\w)\*[^*]+\*)|(?P<link>\[[^\]]+\]\([^)]+\))"
)
TAGGED = re.compile(r"^\*\*\[(?P<tag>[A-Z]+\.\d+)\]\*\*\s*")
Block = dict[str, Any]


def folder() -> Path:
    """Where the pages are: in the package, or in the clone it is installed from."""
    found = next((each for each in (PACKAGED, CHECKOUT) if (each / "index.md").is_file()), None)
    if found is None:
        raise ConfigError("derivations: not in this install (install the wheel, or from a clone with docs/)")
    return found


def names() -> list[str]:
    """All pages but the index."""
    return sorted(path.stem for path in folder().glob("*.md") if path.stem != "index")


@cache
def blocks_of(name: str) -> list[Block]:
    """The blocks of a page: headings, paragraphs, equations with their tags, lists, tables, code."""
    if name not in names():
        raise ConfigError(f"derivations: no page {name!r} (there are {', '.join(names())})")
    return blocks((folder() / f"{name}.md").read_text(encoding="utf-8"))


def blocks(text: str) -> list[Block]:
    """A text in Markdown as blocks; a block of code says in `info` what stands behind its fence."""
    return [block for chunk in _chunks(text) for block in _blocks(chunk)]


@cache
def equations() -> dict[str, Block]:
    """Every numbered equation by its tag."""
    return {
        block["tag"]: block
        for name in names()
        for block in blocks_of(name)
        if block["kind"] == "equation" and block["tag"]
    }


def _chunks(text: str) -> Iterator[list[str]]:
    """Lines up to an empty one; a fence or a display formula is never cut."""
    chunk: list[str] = []
    for line in text.splitlines():
        joined = "\n".join(chunk)
        open_ = joined.count("$$") % 2 or joined.count("```") % 2
        if line.strip() or open_:
            if line.startswith("#") and chunk and not open_:
                yield chunk
                chunk = []
            chunk.append(line)
        elif chunk:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _blocks(lines: list[str]) -> Iterator[Block]:
    text, first = "\n".join(lines), lines[0]
    if first.startswith("```"):
        yield {"kind": "code", "text": "\n".join(lines[1:-1]), "info": first.strip("`").strip()}
    elif found := re.match(r"(#+) (.*)", first):
        yield {"kind": "heading", "level": len(found.group(1)), "parts": inline(found.group(2))}
        if lines[1:]:
            yield from _blocks(lines[1:])
    elif first.startswith("|") and len(lines) > 2:
        rows = [[inline(cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
        yield {"kind": "table", "head": rows[0], "rows": rows[2:]}
    elif re.match(r"([-*]|\d+\.) ", first):
        items = re.split(r"\n(?=(?:[-*]|\d+\.) )", text)
        stripped = [re.sub(r"^(?:[-*]|\d+\.) ", "", item) for item in items]
        yield {"kind": "list", "ordered": first[0].isdigit(), "items": [inline(item) for item in stripped]}
    else:
        yield from _paragraph(text)


def _paragraph(text: str) -> Iterator[Block]:
    """A paragraph, cut at its display formulas; a tag before a formula is its number."""
    tag = ""
    for i, piece in enumerate(text.split("$$")):
        if i % 2:
            yield {"kind": "equation", "tag": tag, "math": mathml(piece.strip(), display=True)}
            tag = ""
            continue
        if found := TAGGED.match(piece.strip()):
            tag, piece = found.group("tag"), piece.strip()[found.end() :]
        if piece.strip():
            yield {"kind": "paragraph", "parts": inline(piece.strip())}


def inline(text: str) -> list[dict[str, str]]:
    """Text, formulas, code, emphasis and links inside the Studio in a row; of other links the words."""
    text = " ".join(text.split())
    found: list[dict[str, str]] = []
    at = 0
    for match in INLINE.finditer(text):
        if match.start() > at:
            found.append({"kind": "text", "text": text[at : match.start()]})
        kind, inner = str(match.lastgroup), match.group()
        if kind == "math":
            found.append({"kind": "math", "math": mathml(inner[1:-1])})
        elif kind == "link":
            words, _, href = inner[1:-1].partition("](")
            inside = href.startswith("/")
            found.append(
                {"kind": "link", "text": words, "href": href} if inside else {"kind": "text", "text": words}
            )
        else:
            found.append({"kind": kind, "text": inner.strip("`" if kind == "code" else "*")})
        at = match.end()
    if at < len(text):
        found.append({"kind": "text", "text": text[at:]})
    return found


@cache
def mathml(latex: str, *, display: bool = False) -> str:
    """A formula as MathML; what latex2mathml leaves as it was is mended."""
    from latex2mathml.converter import convert

    known = latex.replace("{aligned}", "{align*}")
    made = convert(known, display="block" if display else "inline")
    return made.replace(r"\_", "_").replace(r"\lfloor", "⌊").replace(r"\rfloor", "⌋")
