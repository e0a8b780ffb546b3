"""What a run was made with: `environment.json` beside its log.

    {"family", "parameters", "data": {...},
     "per_nat": {"bits_per_byte": 1.44, ...},                          a loss in nats times this is in that unit
     "per_step": {"tokens": 4096},                                     what a step reads
     "stretches": [{"began", "from", "ended", "to", "how", ...}]}      from start to stop, with its machine and code; of
                                                                       one that was interrupted the "validation" loss

The same run on the same code, instruction set and data gives the same bits; where it does not, this says why.
"""

from __future__ import annotations

import hashlib
import json
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import chainrule
from chainrule import native
from chainrule.errors import ChainruleError, ChainruleWarning
from chainrule.files import is_number, json_value, regular_bytes, write
from chainrule.runs.folder import RunFolder

FACTS = {"family": str, "parameters": int, "data": dict, "stretches": list}
BITS = ("native", "cpu_level", "numpy")  # what a result may depend on in its last bits, but for the code


def machine() -> dict[str, Any]:
    """The code, the libraries and the machine, as they are now."""
    return {
        "chainrule": chainrule.__version__,
        "code": code_hash(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "native": native.available(),
        "cpu_level": native.isa(),
        "threads": native.get_threads(),
    }


@cache
def code_hash() -> str:
    """SHA-256 of every Python file of the package: a version number says little while one works on the code."""
    root = Path(chainrule.__file__).parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def read(folder: Path) -> dict[str, Any]:
    """What is written down about a run; nothing if it is not there or cannot be understood."""
    try:
        found = json_value(regular_bytes(RunFolder(folder).environment))
    except (OSError, ChainruleError):
        return {}
    return {name: value for name, value in found.items() if _fits(name, value)}


def _fits(name: str, value: Any) -> bool:
    """A fact that is written down under this name has this type; a damaged one counts as missing."""
    if name in ("per_nat", "per_step"):
        return isinstance(value, dict) and all(is_number(factor) for factor in value.values())
    return isinstance(value, FACTS.get(name, object)) and not isinstance(value, bool)


def stretches(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """From start to stop, in order."""
    listed = found.get("stretches")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


@contextmanager
def recorded(
    folder: Path,
    facts: Mapping[str, Any],
    progress: Callable[[], tuple[int, bool, float | None]],
    check_there: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Note the machine when training starts or resumes, and how it ended.

    `progress` says (step, is it the last, the validation loss if it stops there). A stretch that says
    nothing of its end was killed. Nothing is written unless `check_there` agrees.
    """
    before = stretches(read(folder))
    now: dict[str, Any] = {"began": _time(), "from": progress()[0]} | machine()
    if before:
        _warn_of_change(folder, before[-1], now)

    def note() -> None:
        check_there()
        found = {**facts, "stretches": [*before, now]}
        write(RunFolder(folder).environment, (json.dumps(found, indent=1) + "\n").encode())

    note()
    problem = ""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, GeneratorExit):  # a generator may be left before its end
            problem = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise
    finally:
        step, finished, validation = progress()
        how = problem or ("finished" if finished else "stopped")
        now |= {"ended": _time(), "to": step, "how": how}
        now |= {} if validation is None else {"validation": validation}
        with suppress(
            ChainruleError
        ):  # a full disk, a folder that is gone: the error that matters is on its way
            note()


def _warn_of_change(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    changed = [name for name in BITS if before.get(name, now[name]) != now[name]]
    if changed:
        said = ", ".join(f"{name} {before[name]} -> {now[name]}" for name in changed)
        problem = f"{folder}: resumes with {said}; results may differ in their last bits"
        warnings.warn(problem, ChainruleWarning, stacklevel=4)


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
