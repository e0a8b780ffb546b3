"""Pairs of LoRA: of each layer A (r, in) and B (out, r), by the names of `transformers`.

Where it has one matrix and we have several (queries, keys and values of GPT-2, GPT-NeoX and Phi-3), all A, one below
the other, and B with a block for each: a pair of a higher rank that computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.errors import FormatError
from chainrule.io.hf import gpt2
from chainrule.io.peft.names import groups, linears, module_of, ours_of, theirs_of
from chainrule.models import Model
from chainrule.models.tuning import LoRA
from chainrule.models.tuning.parts import base_name
from chainrule.nn import LoRALinear, PackedLoRALinear
from chainrule.nn.adapters import scale_of

LORA_A, LORA_B = "lora_A.weight", "lora_B.weight"


def pairs_of(model: Model) -> dict[str, tuple[Array, Array]]:
    """A and B of each layer of transformers that is changed."""
    layers = {path: layer for path, layer in model.named_layers() if isinstance(layer, LoRALinear)}
    matrices, found = linears(model), dict[str, tuple[Array, Array]]()
    for paths in groups(model).values():
        own = {path: _factors(layers[path]) for path in paths if path in layers}
        if not own:
            continue
        ranks = [len(A) for A, _ in own.values()]
        rows, start = {}, 0
        for path in paths:
            out = matrices[path].weight.shape[0]
            rows[path] = np.zeros((out, sum(ranks)), np.float32)
            if path in own:
                rank = len(own[path][0])
                rows[path][:, start : start + rank] = own[path][1]
                start += rank
        name, B = theirs_of(model, rows)
        found[name] = np.concatenate([A for A, _ in own.values()]), np.ascontiguousarray(B)
    return found


def _factors(layer: LoRALinear) -> tuple[Array, Array]:
    with no_grad():
        A, B = layer.factors()
    return A.numpy(), B.numpy()


def own_pairs(model: Model, method: LoRA, theirs: Mapping[str, Array]) -> dict[str, Array]:
    """The pairs of our layers. A layer of transformers may hold those of several, or one for all of them."""
    layers = {path: layer for path, layer in model.named_layers() if isinstance(layer, LoRALinear)}
    matrices, found = linears(model), dict[str, Array]()
    for name, paths in groups(model).items():
        pair: list[Any] = [theirs.get(f"{name}.{kind}") for kind in (LORA_A, LORA_B)]
        if all(each is None for each in pair):
            continue
        own = [path for path in paths if path in layers]
        sizes = np.array([matrices[path].weight.shape for path in paths])
        ranks = {sum(len(_factors(layers[path])[0]) for path in own)}
        ranks |= set() if len(own) == 1 else {method.rank}  # one pair for several
        _check_pair(name, pair, ranks, sizes)
        whole, rows = pair[0], ours_of(model, name, pair[1])
        several = len(own) > 1 and len(whole) > method.rank
        for place, path in enumerate(own):
            mine = slice(place * method.rank, (place + 1) * method.rank) if several else slice(None)
            found |= _own_pair(path, layers[path], whole[mine], rows[path][:, mine])
    return found


def _check_pair(name: str, pair: list[Any], ranks: set[int], sizes: Array) -> None:
    """Both halves must be there and fit our matrices (out, in), which are one below the other there."""
    n_out, n_in = int(sizes[:, 0].sum()), int(sizes[0, 1])
    rank = pair[0].shape[0] if pair[0] is not None and pair[0].ndim else 0
    rank = rank if rank in ranks else max(ranks)
    for kind, array, shape in zip((LORA_A, LORA_B), pair, ((rank, n_in), (n_out, rank)), strict=True):
        if array is None or array.shape != shape:
            found = "is not there" if array is None else f"has shape {array.shape}"
            raise FormatError(f"{name}.{kind} {found} (must be of shape {shape})")


def _own_pair(path: str, layer: LoRALinear, A: Array, B: Array) -> dict[str, Array]:
    if not isinstance(layer, PackedLoRALinear):
        return {f"{path}.lora_A": A, f"{path}.lora_B": B}
    found: dict[str, Array] = {}
    for place, (name, (start, stop)) in enumerate(layer.rows.items()):
        mine = slice(place * layer.rank, (place + 1) * layer.rank)
        found |= {f"{path}.lora_A.{name}": A[mine], f"{path}.lora_B.{name}": B[start:stop, mine]}
    return found


def lora_config(
    model: Model, method: LoRA, pairs: Mapping[str, tuple[Array, Array]], rest: Mapping[str, Array]
) -> dict[str, Any]:
    scale = scale_of(method.rank, method.alpha)
    higher = {name: len(A) for name, (A, _) in pairs.items() if len(A) != method.rank}
    saved = sorted({base_name(name).rpartition(".")[0].rpartition(".")[2] for name in rest})
    return {
        "peft_type": method.peft_type,
        "r": method.rank,
        "lora_alpha": scale * method.rank,
        "lora_dropout": method.dropout,
        "rank_pattern": higher,
        "alpha_pattern": {name: scale * rank for name, rank in higher.items()},
        "target_modules": list(pairs),
        "fan_in_fan_out": module_of(model) is gpt2,
        "bias": "none",
        "modules_to_save": saved or None,
    }
