"""What an adapter's two files hold, and back.

What PEFT has no method for, or transformers no model, is kept under our own names. A section "chainrule" of the config
says which method of ours it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.io.peft.lora import LORA_A, LORA_B, lora_config, own_pairs, pairs_of
from chainrule.io.peft.names import PREFIX, extras, has_names, module_of, task_type
from chainrule.io.peft.prompts import PROMPT, own_prefixes, prefix_config, prefixes_of, prompt_config
from chainrule.io.peft.tokens import OWN, ROWS, own_rows, rows_of, token_config
from chainrule.models import GPT, Llama, Model
from chainrule.models.tuning import LoRA, Method, Prefix, Prompt
from chainrule.nn import SoftPrompt


def to_files(
    model: Model, method: Method, own: Mapping[str, Array], base: str
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the config of an adapter; `own` are those of the model that are not its base's."""
    about: dict[str, Any] = {"base_model_name_or_path": base, "peft_type": None}
    rest = dict(own)
    alone = method.tokens and not isinstance(method, LoRA)  # PEFT has rows of tokens beside LoRA only
    if alone or not has_names(model):
        return rest, about
    about |= {"task_type": task_type(model), "inference_mode": True}
    if isinstance(method, LoRA):
        pairs = pairs_of(model)
        rest = {name: array for name, array in own.items() if "lora_" not in name and not name.endswith(OWN)}
        arrays = {
            f"{PREFIX}{name}.{kind}": m
            for name, pair in pairs.items()
            for kind, m in zip((LORA_A, LORA_B), pair, strict=True)
        }
        about |= lora_config(model, method, pairs, rest) | token_config(model)
        return arrays | rows_of(model) | extras(model, rest), about
    if isinstance(method, Prompt):
        (name,) = (name for name in own if name.endswith(".prompt"))
        arrays = {PROMPT: own[name]} | {n: array for n, array in own.items() if n != name}
        return arrays, about | prompt_config(model, method) | {"peft_type": method.peft_type}
    if isinstance(method, Prefix) and isinstance(model, GPT | Llama):
        found = {PROMPT: prefixes_of(model, method.length)}
        if isinstance(model, GPT):  # of a Llama our keys too: turned and back they lose bits
            rest = {name: array for name, array in own.items() if ".prefix." not in name}
        return found | rest, about | prefix_config(model, method)
    return rest, about


def from_files(model: Model, method: Method, arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays by our names, of a model to which the method was applied, from those of a file."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    prompt = found.pop(PROMPT, None)
    if prompt is not None and isinstance(method, Prompt):
        (path,) = (path for path, layer in model.named_layers() if isinstance(layer, SoftPrompt))
        found[f"{path}.prompt"] = prompt
    elif prompt is not None and not any(name.endswith(".prefix.keys") for name in found):
        found |= own_prefixes(model, prompt)
    theirs = {name.removeprefix(PREFIX): found.pop(name) for name in list(found) if name.startswith(PREFIX)}
    if theirs and isinstance(method, LoRA):
        found |= own_pairs(model, method, theirs) | own_rows(model, theirs)
        extra = {name: array for name, array in theirs.items() if not name.endswith((LORA_A, LORA_B, ROWS))}
        found |= module_of(model).read_weights(extra, model.config) if extra else {}
    return {name: np.asarray(array) for name, array in found.items()}
