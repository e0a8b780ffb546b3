"""Names of a package that are imported on first use, so that one of them can be had without all the others."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def names(package: str, rooms: str = "", **modules: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `modules` lists the names found in each of its modules, `rooms` more modules."""
    homes = {name: module for module, found in modules.items() for name in found.split()}

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if name in homes and isinstance(value, ModuleType):
                return  # generate.score is the function, not its module
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *homes, *rooms.split()})

    sys.modules[package].__class__ = Package

    def find(name: str) -> Any:
        if name in rooms.split():
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # asked for once
        return value

    return find
