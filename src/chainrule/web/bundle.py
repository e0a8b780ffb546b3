"""The page as one HTML file, which opens without a server: styles and modules are inside, answers are filled in.

Modules import each other by names that an import map leads to data: URLs; a policy inside the file keeps it from
loading anything else.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

PAGE = Path(__file__).parent / "page"
PLACE = "RECORDED-ANSWERS"  # where the page that is saved puts its answers
POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"
IMPORT = re.compile(r'"(\.{1,2}/[\w./-]+\.js)"')
LINKS = re.compile(r"\s*<(?:link|script)\b[^>]*>(?:</script>)?")


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
    page = LINKS.sub("", (PAGE / "index.html").read_text(encoding="utf-8"))
    return page.replace("</head>", f"{head}\n</head>", 1)


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
