"""Rows of new tokens that learn beside LoRA: PEFT's trainable_token_indices, an array (n, C) for each table.

There too they stand in the place of the table's rows. A base without such rows is to be made longer there first
(`resize_token_embeddings`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.autograd.types import Array
from chainrule.errors import FormatError
from chainrule.io.peft.names import PREFIX, theirs_of
from chainrule.models import Model
from chainrule.models.language_model import TransformerLM
from chainrule.nn import TokenRows

INDICES = "trainable_token_indices"
ROWS = "token_adapter.trainable_tokens_delta"
OWN = ".token_rows"
LAYERS = {"embed_out": "lm_head"}  # of a NeoX: the layer has another name than its weight in a file


def tables_of(model: Model) -> dict[str, TokenRows]:
    """By the paths of the tables of which rows learn."""
    return {path: layer for path, layer in model.named_layers() if isinstance(layer, TokenRows)}


def _name(model: Model, path: str, rows: Array) -> str:
    """The layer of transformers that one of ours is."""
    name = theirs_of(model, {path: rows})[0]
    return LAYERS.get(name, name)


def rows_of(model: Model) -> dict[str, Array]:
    """The rows of each table, by the names of PEFT."""
    found = ((path, layer.token_rows.array) for path, layer in tables_of(model).items())
    return {f"{PREFIX}{_name(model, path, rows)}.{ROWS}": rows for path, rows in found}


def token_config(model: Model) -> dict[str, Any]:
    """What adapter_config.json says of them."""
    tables = tables_of(model).items()
    named = {_name(model, path, layer.token_rows.array): layer.tokens.tolist() for path, layer in tables}
    return {INDICES: named} if named else {}


def own_rows(model: Model, theirs: Mapping[str, Array]) -> dict[str, Array]:
    """The rows of each table that a file has, by our names."""
    found: dict[str, Array] = {}
    for path, layer in tables_of(model).items():
        own = layer.token_rows.array
        name = f"{_name(model, path, own)}.{ROWS}"
        if name not in theirs:
            continue
        if theirs[name].shape != own.shape:
            raise FormatError(f"{name} has shape {theirs[name].shape} (must be {own.shape})")
        found[f"{path}{OWN}"] = theirs[name]
    return found


def tokens_of(model: Model, about: Mapping[str, Any]) -> tuple[int, ...]:
    """The tokens whose rows learn, of a config that PEFT has written for a plain model: the same in all tables."""
    said = about.get(INDICES)
    if not said:
        return ()
    lists = list(said.values()) if isinstance(said, dict) else [said]
    if not isinstance(model, TransformerLM) or any(each != lists[0] for each in lists):
        rule = "must be the same tokens in the embedding and the head of a language model"
        raise FormatError(f"{INDICES} is {str(said)[:100]} for a {type(model).__name__} ({rule})")
    if isinstance(said, dict):
        tables = {id(model.embedding), id(model.head)}
        paths = [path for path, layer in model.named_layers() if id(layer) in tables]
        known = {_name(model, path, np.zeros((1, 1), np.float32)).rpartition(".")[2] for path in paths}
        if unknown := sorted({name.rpartition(".")[2] for name in said} - known):
            rule = f"must be among {', '.join(sorted(known))}"
            raise FormatError(f"{INDICES} names the layer {unknown[0]} ({rule})")
    ids, rows = lists[0], model.config.vocab_size
    if not isinstance(ids, list) or not all(type(id) is int and 0 <= id < rows for id in ids):
        rule = f"must be tokens of the base, from 0 to {rows - 1}"
        raise FormatError(f"{INDICES} is {str(ids)[:100]} ({rule})")
    return tuple(ids)
