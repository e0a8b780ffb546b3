"""The record of a test run: what each marked test settles, whether it passed, and from which sources."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "native", "tests", "docs", "pyproject.toml")


@dataclass(frozen=True)
class Record:
    sources: str  # digest of the files the run was made from
    tests: list[dict[str, object]]  # {"test": node id, "requirements": [ids], "passed": bool}
    vectors: list[str]  # ids of the vectors that were read

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Record:
    return Record(**json.loads(path.read_text(encoding="utf-8")))


def digest(root: Path = ROOT) -> str:
    """A hash over the names and contents of everything a test result can depend on."""
    total = hashlib.sha256()
    for path in sorted(path for top in SOURCES for path in _files(root / top)):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _files(top: Path) -> list[Path]:
    found = top.rglob("*") if top.is_dir() else [top]
    made = {"__pycache__", "_build", "_generated", ".ruff_cache", ".mypy_cache"}
    return [p for p in found if p.is_file() and not made & set(p.parts)]
