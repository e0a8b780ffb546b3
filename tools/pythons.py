"""Print the path of one Python for each other version from 3.11 on that this machine has: python tools/pythons.py

Looks at python3.N on the PATH, and where pyenv and uv keep theirs. Only what can make an environment counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST, NEWEST = 11, 20  # minor versions that are looked for
ASKED = "import sys, ensurepip, venv; print(sys.implementation.name, *sys.version_info[:2])"


def candidates(minor: int) -> Iterator[str]:
    """Programs that may be Python 3.`minor`."""
    name = f"python3.{minor}"
    home = Path.home()
    yield shutil.which(name) or ""
    for folder, pattern in (
        (Path(os.environ.get("PYENV_ROOT", home / ".pyenv")) / "versions", f"3.{minor}.*"),
        (
            Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python")),
            f"cpython-3.{minor}.*",
        ),
    ):
        yield from (str(path / "bin" / name) for path in sorted(folder.glob(pattern), reverse=True))


def is_python(program: str, minor: int) -> bool:
    """It starts, is what its name says, and can make environments; a shim of pyenv often does not start."""
    if not program or not Path(program).exists():
        return False
    try:
        done = subprocess.run([program, "-c", ASKED], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.split() == ["cpython", "3", str(minor)]


def others() -> list[str]:
    """One Python of each version but the present one, the oldest first."""
    minors = [minor for minor in range(OLDEST, NEWEST) if minor != sys.version_info.minor]
    found = (next((c for c in candidates(minor) if is_python(c, minor)), None) for minor in minors)
    return [program for program in found if program]


if __name__ == "__main__":
    print("\n".join(others()))
