"""The page as one file: everything it needs is inside, and nothing else can be loaded."""

from __future__ import annotations

import base64
import re

from fastapi.testclient import TestClient

from chainrule.web.bundle import PAGE, PLACE, modules, one_file


def test_every_module_is_inside_and_imports_only_these() -> None:
    found = modules()
    assert len(found) == len([*PAGE.rglob("*.js")]) - 1  # theme.js is no module
    for url in found.values():
        text = base64.b64decode(url.partition("base64,")[2]).decode()
        names = re.findall(r'(?:^import .*from |^\} from |import\()"([^"]+)"', text, re.MULTILINE)
        assert set(names) <= found.keys() and '"./' not in text and '"../' not in text


def test_a_page_names_what_its_view_imports(client: TestClient) -> None:
    def told(path: str) -> set[str]:
        return set(re.findall(r'modulepreload" href="/static/([^"]+)"', client.get(path).text))

    assert {"app.js", "lib/dom.js", "views/runs.js", "views/run.js"} <= told("/runs/some/run")
    assert "views/home.js" in told("/") and "views/home.js" not in told("/runs")
    assert "lib/export.js" not in told("/runs")  # it is imported when a view is saved
    assert told("/nothing") == {"app.js", "lib/api.js", "lib/dom.js", "lib/parts.js"}


def test_the_file_loads_nothing(client: TestClient) -> None:
    page = client.get("/api/page").text
    assert page == one_file() and page.count(PLACE) == 1
    assert "default-src 'none'" in page and not re.search(
        r"(?:src|href)=\"(?!#|/\")", page.split("<body>")[0]
    )
