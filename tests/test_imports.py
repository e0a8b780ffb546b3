"""Who may import whom, how long `import chainrule` takes, and that it stays off the network."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from tests.test_native import python

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# Other frameworks are oracles and peers, in tests/peers and benchmarks only. Loading a pickle runs code.
FORBIDDEN = {"jax", "pickle", "scipy", "tensorflow", "tiktoken", "tokenizers", "torch", "transformers"}


def imports(tree: ast.AST) -> Iterator[str]:
    """Top-level names of everything a module imports, wherever it does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.split(".")[0]


def test_the_rooms_know_only_whom_they_may() -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS


@pytest.mark.requirement("R-516")
def test_no_framework_and_no_pickle_in_the_package() -> None:
    assert (
        set(imports(ast.parse("import torch.nn\nfrom scipy import stats\ndef f(): import jax"))) <= FORBIDDEN
    )
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name in imports(ast.parse(path.read_text(encoding="utf-8")))
        if name in FORBIDDEN
    }
    assert len(SOURCES) > 10 and not found


def test_import_is_quick() -> None:
    """Time beyond NumPy's own import; of the process, since other tests share the cores."""
    code = """
import time, numpy
start = time.process_time()
import chainrule
print(time.process_time() - start)
"""
    seconds = min(float(python(code).stdout) for _ in range(5))
    assert seconds < 0.2


def test_a_server_starts_without_what_trains() -> None:
    """Which would cost it time and memory."""
    result = python("""
import sys
import chainrule.serve.http.app, chainrule.serve.http.server, chainrule.serve.models
rooms = ("align", "data", "distributed", "doctor", "inspect", "optim", "scaling", "tasks", "web")
found = tuple(f"chainrule.{room}" for room in rooms)
print([name for name in sys.modules if name.startswith(found) or name == "fastapi"])
""")
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


def test_every_public_name_is_found_on_first_use() -> None:
    result = python("""
import chainrule
for name in chainrule.__all__:
    assert name in dir(chainrule) and getattr(chainrule, name) is getattr(chainrule, name), name
""")
    assert result.returncode == 0, result.stderr


def test_nothing_opens_a_socket() -> None:
    """Importing every module, with an audit hook that sees each use of a socket."""
    modules = [
        path.relative_to(ROOT / "src").with_suffix("").as_posix().replace("/", ".") for path in SOURCES
    ]
    names = [name.removesuffix(".__init__") for name in modules if not name.endswith("__main__")]
    result = python(f"""
import importlib, sys
seen = []
sys.addaudithook(lambda event, args: event.startswith("socket.") and seen.append(event))
for name in {names!r}:
    importlib.import_module(name)
quiet = list(seen)
import socket
socket.socket().close()
assert seen[len(quiet):] == ["socket.__new__"], "the hook sees nothing"
assert not quiet, quiet
""")
    assert result.returncode == 0, result.stderr
