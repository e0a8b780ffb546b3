"""Models in GGUF, the file of llama.cpp, with their tokenizers. A module of this folder for each kind of model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainrule.errors import ConfigError, FormatError, kind_of
from chainrule.io.files import naming
from chainrule.io.gguf import file, gpt2, llama, neox
from chainrule.io.gguf.blocks import BLOCK, F32, Q4_0, Q4_1, Q8_0
from chainrule.io.gguf.conventions import read_conventions, write_conventions
from chainrule.io.gguf.tokenizers import read_tokenizer, write_tokenizer
from chainrule.io.hf.architectures import ARCHITECTURES as DIRECTORIES
from chainrule.io.hf.architectures import check_fields, check_size
from chainrule.io.left_out import refusal
from chainrule.io.opened import Opened
from chainrule.io.settings import Settings
from chainrule.models import Model
from chainrule.text import Tokenizer

FORMATS = {"f32": F32, "q8_0": Q8_0, "q4_0": Q4_0, "q4_1": Q4_1}
FILE_TYPES = {"f32": 0, "q8_0": 7, "q4_0": 2, "q4_1": 3}  # as llama.cpp numbers files
# Modules with KINDS, MODEL, read_config, write_config, read_weights and write_weights.
MODULES: tuple[Any, ...] = (llama, gpt2, neox)
ARCHITECTURES = {kind: module for module in MODULES for kind in module.KINDS}


def read(path: Path, tokenizer: Tokenizer | None = None) -> tuple[Model, Tokenizer]:
    """The model of a file, for evaluation, and its tokenizer, or the one that is given for it."""
    found = open_file(path, tokenizer)
    assert found.tokenizer is not None
    return found.load(), found.tokenizer


def open_file(path: Path, tokenizer: Tokenizer | None = None) -> Opened:
    """The same, with its weights where they are."""
    with naming(path):
        metadata, tensors = file.read(path)
        settings = Settings(metadata)
        kind = metadata.get("general.architecture")
        if not isinstance(kind, str) or kind not in ARCHITECTURES:
            raise refusal("general.architecture", kind, ARCHITECTURES, in_directories=DIRECTORIES)
        module = ARCHITECTURES[kind]
        config = module.read_config(kind, settings, tensors)
        check_fields(config, tensors)
        if tokenizer is None:
            tokenizer = read_tokenizer(settings)
            tokenizer.conventions = read_conventions(settings, tokenizer)
        if tokenizer.vocab_size > config.vocab_size:
            sizes = f"tokenizer of {tokenizer.vocab_size} tokens, model of {config.vocab_size}"
            raise FormatError(f"{sizes} (must not be more: is it of another model?)")
        check_size(config.n_params, tensors, config.n_layer)
        return Opened.of(module.MODEL, config, module.read_weights(kind, tensors, config), tokenizer)


def write(model: Model, tokenizer: Tokenizer, path: Path, *, weights: str = "f32") -> list[str]:
    """Write a file; with `weights` q8_0, q4_0 or q4_1, matrices whose rows are multiples of 32 are in such blocks.

    -> the names of the matrices that are not, and stay in F32
    """
    module = next((module for module in MODULES if type(model) is module.MODEL), None)
    if module is None:
        names = " or ".join(f"a {module.MODEL.__name__}" for module in MODULES)
        raise ConfigError(f"gguf: cannot hold {kind_of(model)} (must be {names})")
    kind, settings = module.write_config(model.config)
    metadata = {"general.architecture": kind, "general.file_type": FILE_TYPES[weights]}
    arrays = {}
    for name, array in module.write_weights(model.arrays(), model.config).items():
        fits = array.ndim == 2 and array.shape[1] % BLOCK == 0
        arrays[name] = FORMATS[weights] if fits else F32, array
    metadata |= settings | write_tokenizer(tokenizer) | write_conventions(tokenizer)
    file.write(path, metadata, arrays)
    return [
        name for name, (format, array) in arrays.items() if array.ndim == 2 and format is not FORMATS[weights]
    ]
