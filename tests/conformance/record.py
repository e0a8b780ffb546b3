"""The record of a test run: what each marked test settles, how it ended, and from which sources.

`sources` is a digest of the files, `extension` that of the C++ files the extension in use was built from: a run with
an extension older than its sources tests something that is not there any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "native", "tests", "docs", "pyproject.toml")


@dataclass(frozen=True)
class Record:
    sources: str  # digest of the files the run was made from
    extension: str | None  # digest of native/ when the extension was built; None without an extension
    tests: list[dict[str, object]]  # {"test": node id, "requirements": [ids], "outcome": "passed" or why not}
    vectors: list[str]  # ids of the vectors that were read

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Record:
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def digest(root: Path = ROOT) -> str:
    """A hash over the names and contents of everything a test result can depend on."""
    return _digest(root, (path for top in SOURCES for path in _files(root / top)))


def native_digest(root: Path = ROOT) -> str:
    """The hash that native/digest.cmake writes into the extension when it is built."""
    return _digest(root / "native", _files(root / "native"))


def _digest(root: Path, paths: Iterable[Path]) -> str:
    lines = (f"{path.relative_to(root).as_posix()} {_sha256(path.read_bytes())}\n" for path in paths)
    return _sha256("".join(sorted(lines)).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _files(top: Path) -> list[Path]:
    found = top.rglob("*") if top.is_dir() else [top]
    made = {"__pycache__", "_build", "_generated", ".ruff_cache", ".mypy_cache"}
    return [p for p in found if p.is_file() and p.suffix != ".so" and not made & set(p.parts)]
