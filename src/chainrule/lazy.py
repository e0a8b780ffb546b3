"""The names of a package, imported on first use: one of them can be had without all the others."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from chainrule.torch_names import unknown_member


def names(package: str, rooms: str = "", **modules: str) -> None:
    """Give a package the names that are found in each of its `modules`, and `rooms`, more modules.

    A name that it lacks is an error that says what was meant. A package whose names are all imported calls this too.
    """
    homes = {name: module for module, found in modules.items() for name in found.split()}

    # Not a `__getattr__` of the module: a type checker would believe in every name.
    class Package(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name in rooms.split():
                return importlib.import_module(f"{package}.{name}")
            if name not in homes:
                raise unknown_member(package, name)
            value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            setattr(self, name, value)  # asked for once
            return value

        def __setattr__(self, name: str, value: Any) -> None:
            if name in homes and isinstance(value, ModuleType):
                return  # generate.score is the function, not its module
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *homes, *rooms.split()})

    sys.modules[package].__class__ = Package
