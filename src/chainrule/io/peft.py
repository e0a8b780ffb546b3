"""Adapters in the files of Hugging Face's `peft`: adapter_config.json and adapter_model.safetensors.

    lora      of each layer A (r, in) and B (out, r), by the names of transformers. Where it has one matrix and we have
              several (queries, keys and values of GPT-2, GPT-NeoX and Phi-3), all A, one below the other, and B with a
              block for each: a pair of a higher rank that computes the same
    prefix    one array (m, layers · 2 · heads · D) of keys and values. There a prefix takes the first m positions, here
              it takes none: so the keys of a Llama are turned on by m positions, and others have no such file
    prompt    one array (m, C)

What PEFT has no method for, or transformers no model, is kept under our own names. A section "chainrule" of the config
says which method of ours it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import no_grad
from chainrule.autograd.types import Array
from chainrule.errors import ChainruleError, FormatError
from chainrule.io.hf import gpt2, llama, marian, neox
from chainrule.io.hf.architectures import MODULES, has_twin
from chainrule.io.settings import Settings
from chainrule.models import EncoderDecoder, LanguageModel, Llama, Model, NeoX, Reward
from chainrule.models.tuning import LoRA, Method, Prefix, Prompt
from chainrule.models.tuning import method_of as described_method
from chainrule.models.tuning.parts import base_name
from chainrule.models.tuning.places import block_of
from chainrule.nn import KeyValuePrefix, Linear, LoRALinear, PackedLoRALinear, SoftPrompt

OURS = "chainrule"
NOT_FIELDS = ("base_sha256", "base_near")
PREFIX = "base_model.model."
PROMPT = "prompt_embeddings"
A, B = "lora_A.weight", "lora_B.weight"
# Settings that are read, or that say only how training went; any other may change what is computed.
SHARED = {
    "peft_type", "task_type", "inference_mode", "auto_mapping", "base_model_name_or_path", "revision", "peft_version",
    "modules_to_save",
}  # fmt: skip
_VIRTUAL = {
    "num_virtual_tokens", "token_dim", "num_transformer_submodules", "num_attention_heads", "num_layers",
}  # fmt: skip
KNOWN: dict[str, set[str]] = {
    "LORA": {
        "r", "lora_alpha", "lora_dropout", "use_rslora", "bias", "init_lora_weights", "rank_pattern", "alpha_pattern",
        "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out",
        "megatron_core", "qalora_group_size", "eva_config", "runtime_config",
    },
    "PREFIX_TUNING": _VIRTUAL | {"encoder_hidden_size", "prefix_projection"},
    "PROMPT_TUNING": _VIRTUAL | {
        "prompt_tuning_init", "prompt_tuning_init_text", "tokenizer_name_or_path", "tokenizer_kwargs",
    },
}  # fmt: skip


def method_of(about: Mapping[str, Any]) -> Method | None:
    """Our method that an adapter_config.json names; None if another program has written it."""
    ours = about.get(OURS)
    if not isinstance(ours, dict):
        return None
    try:
        return described_method({name: value for name, value in ours.items() if name not in NOT_FIELDS})
    except (TypeError, ValueError, OverflowError) as error:  # a word where a number must be
        if isinstance(error, ChainruleError):
            raise
        rule = f"must be the settings of a method, as they were saved: {error}"
        raise FormatError(f"{OURS} is {json.dumps(ours)[:200]} ({rule})") from error


def to_files(
    model: Model, method: Method, own: Mapping[str, Array], base: str
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the config of an adapter; `own` are those of the model that are not its base's."""
    about: dict[str, Any] = {"base_model_name_or_path": base, "peft_type": None}
    rest = dict(own)
    if not _has_names(model):
        return rest, about
    about |= {"task_type": _task(model), "inference_mode": True}
    if isinstance(method, LoRA):
        pairs = _pairs_of(model)
        rest = {name: array for name, array in own.items() if "lora_" not in name}
        arrays = {
            f"{PREFIX}{name}.{kind}": m
            for name, pair in pairs.items()
            for kind, m in zip((A, B), pair, strict=True)
        }
        return arrays | _extras(model, rest), about | _lora_config(model, method, pairs, rest)
    if isinstance(method, Prompt):
        (name,) = (name for name in own if name.endswith(".prompt"))
        arrays = {PROMPT: own[name]} | {n: array for n, array in own.items() if n != name}
        return arrays, about | _prompt_config(model, method) | {"peft_type": method.peft_type}
    if isinstance(method, Prefix) and isinstance(model, Llama):
        found = {PROMPT: _prefixes_of(model, method.length)}
        return found | rest, about | _prefix_config(
            model, method
        )  # our keys too: turned and back they lose bits
    return rest, about


def from_files(model: Model, method: Method, arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Arrays by our names, of a model to which the method was applied, from those of a file."""
    found = {name: np.asarray(array) for name, array in arrays.items()}
    prompt = found.pop(PROMPT, None)
    if prompt is not None and isinstance(method, Prompt):
        (path,) = (path for path, layer in model.named_layers() if isinstance(layer, SoftPrompt))
        found[f"{path}.prompt"] = prompt
    elif prompt is not None and not any(name.endswith(".prefix.keys") for name in found):
        found |= _own_prefixes(model, prompt)
    theirs = {name.removeprefix(PREFIX): found.pop(name) for name in list(found) if name.startswith(PREFIX)}
    if theirs and isinstance(method, LoRA):
        found |= _own_pairs(model, method, theirs)
        extra = {name: array for name, array in theirs.items() if not name.endswith((A, B))}
        found |= _module(model).read_weights(extra, model.config) if extra else {}
    return {name: np.asarray(array) for name, array in found.items()}


def foreign_method(model: Model, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> Method:
    """The method of a file that PEFT has written, for a plain model; what we do not have is refused."""
    settings, kind = Settings(dict(about)), about.get("peft_type")
    if not _has_names(model):
        rule = "must be for a model of transformers that is no reward model"
        raise FormatError(f"peft_type is {kind!r} for a {type(model).__name__} ({rule})")
    if not isinstance(kind, str) or kind not in KNOWN:
        raise FormatError(f"peft_type is {kind!r} (must be LORA, PREFIX_TUNING or PROMPT_TUNING)")
    settings.only(SHARED | KNOWN[kind])
    if kind == "PROMPT_TUNING":
        return Prompt(length=settings.integer("num_virtual_tokens"))
    if kind == "PREFIX_TUNING":
        settings.must("prefix_projection", False)
        if not isinstance(model, Llama):
            rule = "must be a Llama: elsewhere the prefix takes positions there, and here it takes none"
            raise FormatError(f"peft_type is PREFIX_TUNING for a {type(model).__name__} ({rule})")
        return Prefix(length=settings.integer("num_virtual_tokens"))
    settings.must("bias", "none")
    settings.must("init_lora_weights", True, False, "gaussian", "orthogonal", "eva")  # others change the base
    for name in ("rank_pattern", "alpha_pattern"):
        if about.get(name):
            raise FormatError(f"{name} is set (is not supported, must be empty: one rank for all layers)")
    rank = settings.integer("r", default=8)
    alpha = settings.number("lora_alpha", default=8)
    if settings.flag("use_rslora", False):
        alpha *= math.sqrt(rank)  # it divides by √r
    there = {
        name.removeprefix(PREFIX).removesuffix(f".{kind}")
        for kind in (A, B)
        for name in arrays
        if name.endswith(kind)
    }
    groups = _groups(model)
    if unknown := sorted(there - groups.keys()) or not there:
        what = unknown[0] if isinstance(unknown, list) else "of no name"
        raise FormatError(f"adapter of the layer {what} (must be a linear layer in a block of the model)")
    targets = [path for theirs, paths in groups.items() if theirs in there for path in paths]
    dropout = settings.number("lora_dropout", default=0.0)
    return LoRA(rank=rank, alpha=alpha, dropout=dropout, targets=tuple(targets), fused=True)


def _has_names(model: Model) -> bool:
    """Its layers have the names of transformers in an adapter's file; those of a reward model keep ours."""
    return has_twin(model) and not isinstance(model, Reward)


def _module(model: Model) -> Any:
    return next(module for module in MODULES if type(model) in module.MODELS.values())


def _task(model: Model) -> str | None:
    if isinstance(model, LanguageModel):
        return "CAUSAL_LM"
    if isinstance(model, EncoderDecoder):
        return "SEQ_2_SEQ_LM"
    return {"BERTClassifier": "SEQ_CLS", "BERTTagger": "TOKEN_CLS"}.get(type(model).__name__)


# -- LoRA ------------------------------------------------------------------------------------------------------


def _linears(model: Model) -> dict[str, Linear]:
    """The linear layers in blocks by their paths in a plain model."""
    found = (
        (path.removesuffix(".base"), layer) for path, layer in model.named_layers() if type(layer) is Linear
    )
    return {path: layer for path, layer in found if block_of(path) is not None}


def _groups(model: Model) -> dict[str, list[str]]:
    """The layers of transformers by name, and the paths of ours that each consists of."""
    found: dict[str, list[str]] = {}
    linears = _linears(model)
    for path in linears:
        parts = next((parts for parts in _fused(model) if path.endswith(tuple(parts))), ())
        stem = path.removesuffix(next((part for part in parts if path.endswith(part)), ""))
        paths = [f"{stem}{part}" for part in parts] or [path]
        if paths[0] == path:
            rows = {each: np.zeros((linears[each].weight.shape[0], 1), np.float32) for each in paths}
            found[_theirs(model, rows)[0]] = paths
    return found


def _fused(model: Model) -> list[tuple[str, ...]]:
    """The ends of the names of our layers that are one layer there."""
    if isinstance(model, NeoX):
        return [neox.PARTS]
    phi3 = isinstance(model, Llama) and model.config.variant == "phi3"
    return list(llama.FUSED.values()) if phi3 else []


def _theirs(model: Model, rows: Mapping[str, Array]) -> tuple[str, Array]:
    """Matrices of our layers, which have the rows of their weights, as the one of transformers."""
    module, state = _module(model), {f"{path}.weight": array for path, array in rows.items()}
    found = state if module is marian else module.write_weights(state, model.config)
    ((name, array),) = ((name, array) for name, array in found.items() if name.endswith(".weight"))
    return name.removesuffix(".weight"), _upright(module, name, array)


def _ours(model: Model, name: str, array: Array) -> dict[str, Array]:
    """The inverse of `_theirs`."""
    module, key = _module(model), f"{name}.weight"
    state = {key: _upright(module, key, array)}
    found = state if module is marian else module.read_weights(state, model.config)
    return {each.removesuffix(".weight"): np.asarray(rows) for each, rows in found.items()}


def _upright(module: Any, name: str, array: Array) -> Array:
    """(out, in), also where transformers has (in, out)."""
    return np.asarray(array).T if module is gpt2 and name.endswith(gpt2.TRANSPOSED) else np.asarray(array)


def _pairs_of(model: Model) -> dict[str, tuple[Array, Array]]:
    """A and B of each layer of transformers that is changed."""
    layers = {path: layer for path, layer in model.named_layers() if isinstance(layer, LoRALinear)}
    linears, found = _linears(model), dict[str, tuple[Array, Array]]()
    for paths in _groups(model).values():
        own = {path: _factors(layers[path]) for path in paths if path in layers}
        if not own:
            continue
        ranks = [len(A) for A, _ in own.values()]
        rows, start = {}, 0
        for path in paths:
            out = linears[path].weight.shape[0]
            rows[path] = np.zeros((out, sum(ranks)), np.float32)
            if path in own:
                rank = len(own[path][0])
                rows[path][:, start : start + rank] = own[path][1]
                start += rank
        name, B = _theirs(model, rows)
        found[name] = np.concatenate([A for A, _ in own.values()]), np.ascontiguousarray(B)
    return found


def _factors(layer: LoRALinear) -> tuple[Array, Array]:
    with no_grad():
        A, B = layer.factors()
    return A.numpy(), B.numpy()


def _own_pairs(model: Model, method: LoRA, theirs: Mapping[str, Array]) -> dict[str, Array]:
    """The pairs of our layers. A layer of transformers may hold those of several, or one for all of them."""
    layers = {path: layer for path, layer in model.named_layers() if isinstance(layer, LoRALinear)}
    linears, found = _linears(model), dict[str, Array]()
    for name, paths in _groups(model).items():
        pair: list[Any] = [theirs.get(f"{name}.{kind}") for kind in (A, B)]
        if all(each is None for each in pair):
            continue
        own = [path for path in paths if path in layers]
        sizes = np.array([linears[path].weight.shape for path in paths])
        ranks = {sum(len(_factors(layers[path])[0]) for path in own)}
        ranks |= set() if len(own) == 1 else {method.rank}  # one pair for several
        _check_pair(name, pair, ranks, sizes)
        whole, rows = pair[0], _ours(model, name, pair[1])
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
    for kind, array, shape in zip((A, B), pair, ((rank, n_in), (n_out, rank)), strict=True):
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


def _extras(model: Model, rest: Mapping[str, Array]) -> dict[str, Array]:
    """Whole weights beside the pairs: those of a head, or of an embedding with new rows."""
    plain = {base_name(name): array for name, array in rest.items()}
    written = _module(model).write_weights(plain, model.config) if plain else {}
    return {f"{PREFIX}{name}": np.asarray(array) for name, array in written.items()}


def _lora_config(
    model: Model, method: LoRA, pairs: Mapping[str, tuple[Array, Array]], rest: Mapping[str, Array]
) -> dict[str, Any]:
    scale = 1.0 if method.alpha is None else method.alpha / method.rank
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
        "fan_in_fan_out": _module(model) is gpt2,
        "bias": "none",
        "modules_to_save": saved or None,
    }


# -- prefixes and prompts ----------------------------------------------------------------------------------------


def _prompt_config(model: Model, method: Prompt | Prefix) -> dict[str, Any]:
    return {
        "num_virtual_tokens": method.length,
        "token_dim": model.config.n_embd,
        "num_transformer_submodules": 1,
        "num_attention_heads": model.config.n_head,
        "num_layers": model.config.n_layer,
    }


def _prefix_config(model: Llama, method: Prefix) -> dict[str, Any]:
    heads, size = model.config.n_kv_head, model.config.head_size
    own = {"peft_type": method.peft_type, "token_dim": heads * size, "num_attention_heads": heads}
    return (
        _prompt_config(model, method)
        | own
        | {"encoder_hidden_size": size * heads, "prefix_projection": False}
    )


def _prefixes_of(model: Model, length: int) -> Array:
    """Keys and values of all layers (m, L · 2 · H · D), keys turned on by m positions"""
    parts = [layer for _, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)]
    both = [(_turned(model, i, each.keys.array, length), each.values.array) for i, each in enumerate(parts)]
    return np.array(both).transpose(3, 0, 1, 2, 4).reshape(length, -1)  # from (L, 2, H, m, D)


def _own_prefixes(model: Model, prompt: Array) -> dict[str, Array]:
    """The inverse of `_prefixes_of`, by our names."""
    paths = [path for path, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)]
    heads, length, size = next(
        layer.keys.shape for _, layer in model.named_layers() if isinstance(layer, KeyValuePrefix)
    )
    shape = (length, len(paths) * 2 * heads * size)
    if prompt.shape != shape:
        raise FormatError(f"{PROMPT} has shape {prompt.shape} (must be {shape})")
    both = prompt.reshape(length, len(paths), 2, heads, size).transpose(1, 2, 3, 0, 4)
    found: dict[str, Array] = {}
    for i, (path, (keys, values)) in enumerate(zip(paths, both, strict=True)):
        found |= {f"{path}.keys": _turned(model, i, keys, -length), f"{path}.values": values}
    return found


def _turned(model: Model, layer: int, keys: Array, positions: int) -> Array:
    """keys (H, m, D) turned by so many positions, all alike; a layer without rotations keeps them"""
    frequencies = model.layers[layer].self_attn.frequencies  # type: ignore[attr-defined]
    if frequencies is None:
        return keys
    places = np.full(keys.shape[1], positions)
    return np.asarray(ops.rotary(keys[None], positions=places, frequency=frequencies))[0]
