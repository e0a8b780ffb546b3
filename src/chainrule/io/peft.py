"""Adapters in the files of Hugging Face's `peft`: adapter_config.json and adapter_model.safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.autograd.types import Array
from chainrule.errors import FormatError
from chainrule.models import Model
from chainrule.models.tuning import Method
from chainrule.models.tuning import method_of as described_method

OURS = "chainrule"
NOT_FIELDS = ("base_sha256", "base_near")


def method_of(about: Mapping[str, Any], model: Model | None = None) -> Method:
    """The method that an adapter_config.json describes."""
    ours = about.get(OURS)
    if isinstance(ours, dict):
        return described_method({name: value for name, value in ours.items() if name not in NOT_FIELDS})
    raise FormatError(f"peft_type is {about.get('peft_type')!r} (must be LORA or PREFIX_TUNING)")


def to_files(
    model: Model, method: Method, arrays: Mapping[str, Array], base: str
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the config of an adapter, by PEFT's names where PEFT has the method."""
    return dict(arrays), {"base_model_name_or_path": base, "peft_type": method.peft_type or None}


def from_files(model: Model, method: Method, arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays by our names, from those of a file."""
    return dict(arrays)
