"""The page of a view, which names the modules it needs; and the page as one HTML file, which opens without a server.

A browser learns what a module imports when it has it; told at once, it fetches all of them side by side. In the one
file styles are inside and answers are filled in; modules import each other by names that an import map leads to data:
URLs, and a policy inside the file keeps it from loading anything else.
"""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

PAGE = Path(__file__).parent / "page"
PLACE = "RECORDED-ANSWERS"  # where the page that is saved puts its answers
POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"
IMPORT = re.compile(r'"(\.{1,2}/[\w./-]+\.js)"')
NEEDED = re.compile(
    r'^import\b[^;]*?"(\.{1,2}/[\w./-]+\.js)"', re.MULTILINE
)  # not what is imported when it is used
VIEW = re.compile(r'path: "([^"]+)", name: "[^"]+", file: "([^"]+)"')
LINKS = re.compile(r"\s*<(?:link|script)\b[^>]*>(?:</script>)?")


def views() -> dict[str, Path]:
    """The module of each view by its address, as the shell of the page lists them."""
    found = VIEW.findall((PAGE / "app.js").read_text(encoding="utf-8"))
    return {path: PAGE / file for path, file in found}


def page(view: Path | None) -> str:
    """The page for a view; the modules of the shell and of the view are fetched before they are asked for."""
    links = "".join(
        f'  <link rel="modulepreload" href="/static/{path.relative_to(PAGE).as_posix()}">\n'
        for path in _needed([PAGE / "app.js", *([view] if view else [])])
    )
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    return text.replace("</head>", f"{links}</head>", 1)


def _needed(modules: list[Path]) -> dict[Path, None]:
    """These modules and all that they import, each once."""
    found: dict[Path, None] = {}
    while modules:
        path = Path(os.path.normpath(modules.pop()))
        if path not in found:
            found[path] = None
            modules += [path.parent / name for name in NEEDED.findall(path.read_text(encoding="utf-8"))]
    return found


def one_file() -> str:
    """The page with `PLACE` where its answers belong, as JSON."""
    styles = "\n".join(path.read_text(encoding="utf-8") for path in sorted((PAGE / "style").glob("*.css")))
    head = "\n".join(
        [
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f"<style>\n{styles}</style>",
            f'<script type="application/json" id="recorded">{PLACE}</script>',
            '<script>globalThis.recorded = JSON.parse(document.getElementById("recorded").textContent);</script>',
            f"<script>\n{(PAGE / 'theme.js').read_text(encoding='utf-8')}</script>",
            f'<script type="importmap">{json.dumps({"imports": modules()})}</script>',
            '<script type="module">import "studio/app.js";</script>',
        ]
    )
    text = LINKS.sub("", (PAGE / "index.html").read_text(encoding="utf-8"))
    return text.replace("</head>", f"{head}\n</head>", 1)


def modules() -> dict[str, str]:
    """Every module of the page by the name that others import it by."""
    found = {}
    for path in sorted(PAGE.rglob("*.js")):
        if path.name == "theme.js":
            continue

        def named(match: re.Match[str], path: Path = path) -> str:
            return json.dumps(_name((path.parent / match.group(1)).resolve()))

        text = IMPORT.sub(named, path.read_text(encoding="utf-8"))
        found[_name(path)] = f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
    return found


def _name(path: Path) -> str:
    return f"studio/{path.relative_to(PAGE.resolve() if path.is_absolute() else PAGE).as_posix()}"
