"""Sphinx configuration: `make docs` builds the site into docs/_build."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import chainrule as cr
from chainrule.calls import shown

project = "Chainrule"
author = "The Chainrule authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx-mathjax-offline"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_dmath_double_inline = True
myst_heading_anchors = 3
html_theme = "furo"
html_title = "Chainrule"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
exclude_patterns = ["_build", "_generated"]


def describe(op: Any) -> str:
    """One op, or function made of ops, as a paragraph of the API page: its call, its docstring, its derivation."""
    call = shown(op.name, inspect.signature(op))
    module = op.forward.__module__ if isinstance(op, cr.Op) else op.__module__
    page = re.search(r"derivations/(\w+)\.md", importlib.import_module(module).__doc__ or "")
    link = f" [derivation](../derivations/{page.group(1)}.md)" if page else ""
    text = inspect.cleandoc(op.__doc__ or "")
    return f"### {op.name}\n\n`{call}`{link}\n\n```text\n{text}\n```\n"


def write_ops(app) -> None:
    folder = Path(app.srcdir) / "_generated"
    folder.mkdir(exist_ok=True)
    functions = [*cr.ops.all_ops().values(), *cr.ops.compositions().values()]
    (folder / "ops.md").write_text("\n".join(map(describe, functions)))


def setup(app) -> None:
    app.connect("builder-inited", write_ops)
