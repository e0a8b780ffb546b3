"""The methods by name: what a command line or a file says, and what it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.errors import ConfigError
from chainrule.models.tuning.chosen import BitFit, Full, Head
from chainrule.models.tuning.inserted import BottleneckAdapter, Prefix, Prompt
from chainrule.models.tuning.lora import LoRA
from chainrule.models.tuning.method import Method
from chainrule.suggest import hinted

METHODS: dict[str, type[Method]] = {
    kind.name: kind for kind in (Full, LoRA, BottleneckAdapter, Prefix, Prompt, BitFit, Head)
}


def method_class(name: str) -> type[Method]:
    """A method by its name."""
    if name not in METHODS:
        rule = hinted(f"must be one of {', '.join(METHODS)}", name, METHODS)
        raise ConfigError(f"method {name!r}: no such method ({rule})")
    return METHODS[name]


def method_of(description: Mapping[str, Any]) -> Method:
    """The method that `to_dict` described."""
    fields = dict(description)
    if "tokens" in fields:  # a list, in a file
        fields["tokens"] = tuple(int(token) for token in fields["tokens"])
    return method_class(str(fields.pop("method", None)))(**fields)
