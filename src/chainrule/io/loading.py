"""Loading a model and its tokenizer from any supported format."""

from __future__ import annotations

import warnings
import zipfile
from functools import partial
from os import PathLike
from pathlib import Path

from chainrule.errors import ChainruleWarning, DataError, FormatError, Setting
from chainrule.files import as_given, check_new, check_regular
from chainrule.io import gguf, llama2c
from chainrule.io.binary import map_file
from chainrule.io.files import naming
from chainrule.io.gguf.conventions import read_conventions
from chainrule.io.gguf.file import read_settings
from chainrule.io.hf.pretrained import (
    PICKLES,
    check_vocabulary,
    check_weights_file,
    conventions_of,
    open_pretrained,
    parts,
    refuse_pickle,
    save_parts,
)
from chainrule.io.lazy import later
from chainrule.io.opened import Opened, finite
from chainrule.io.settings import Settings
from chainrule.io.tokenizers import load_tokenizer
from chainrule.models import Model
from chainrule.text import Conventions, Tokenizer

SHOWN = 5  # files that a message names
ALIKE = 0.9  # a model may have a few more rows than its tokenizer has tokens


def load(path: str | PathLike[str], tokenizer: str | PathLike[str] | None = None) -> tuple[Model, Tokenizer]:
    """The model, in evaluation mode, and the tokenizer of a Hugging Face directory, a .gguf or a llama2.c .bin file.

    A directory that holds a single such file works too. `tokenizer` is a file to take the tokenizer from instead.
    """
    found = open_model(path, tokenizer)
    assert found.tokenizer is not None
    return found.load(), found.tokenizer


def convert(
    path: str | PathLike[str], out: str | PathLike[str], tokenizer: str | PathLike[str] | None = None
) -> tuple[Model, Tokenizer]:
    """Write what `load` reads as a Hugging Face directory, array by array: the whole model is never in memory.

    Returns the model, whose parameters have shapes only, and the tokenizer. Weights that are not finite are refused,
    and nothing is left of what was written before the first of them.
    """
    check_new(Path(out))  # not after the work
    found = open_model(path, tokenizer)
    assert found.tokenizer is not None
    arrays = {name: later(partial(finite, f"{path}: {name}"), array) for name, array in found.arrays.items()}
    with naming(Path(tokenizer or path)):  # what does not fit is between it and the model
        content = parts(found.model, found.tokenizer, arrays)
    save_parts(content, found.model, Path(out))
    return found.model, found.tokenizer


def open_model(path: str | PathLike[str], tokenizer: str | PathLike[str] | None = None) -> Opened:
    """What `load` reads, with its weights where they are."""
    check_there(Path(path))
    if tokenizer is None:
        return _open(Path(path), None)
    given = load_tokenizer(Path(tokenizer))
    found = _open(Path(path), given)
    if own := _conventions_beside(Path(tokenizer), given):
        given.conventions = own
    rows = getattr(found.model.config, "vocab_size", given.vocab_size)
    if given.vocab_size < ALIKE * rows:
        said = f"{tokenizer}: {given.vocab_size:,} tokens for a model of {rows:,}"
        warnings.warn(f"{said} (is it the one the model was trained with?)", ChainruleWarning, stacklevel=3)
    return found


def _conventions_beside(path: Path, tokenizer: Tokenizer) -> Conventions | None:
    """What the place of a tokenizer says about its use; None if it says nothing."""
    if path.suffix == ".gguf":
        return read_conventions(Settings(read_settings(path)), tokenizer)
    folder = path if path.is_dir() else path.parent
    beside = path.is_dir() or path.name == "tokenizer.json"
    return (
        conventions_of(folder, tokenizer) if beside and (folder / "tokenizer_config.json").is_file() else None
    )


def _open(path: Path, given: Tokenizer | None) -> Opened:
    if files := model_files(path):
        if len(files) > 1:
            names = ", ".join(file.name for file in files[:SHOWN]) + (", ..." if len(files) > SHOWN else "")
            raise FormatError(f"{path}: holds {len(files)} models, {names} (must be one: give the file)")
        path = files[0]
    if path.suffix == ".safetensors" and path.is_file():
        check_weights_file(path)
        path = path.parent
    if path.is_dir():
        return _open_directory(path, given)
    start = bytes(map_file(path)[:4])
    if start == gguf.MAGIC:
        return gguf.open_file(path, given)
    if start[:2] == b"PK" and not _holds_pickle(path):
        raise FormatError(f"{path}: a zip archive (unpack it first, and give what is inside)")
    if _is_pickle(start):
        raise refuse_pickle(path)
    if path.suffix == ".bin":
        found = llama2c.open_model(path)
        size = found.model.config.vocab_size
        if given is None:
            given = llama2c.read_tokenizer(llama2c.find_tokenizer(path, size), size)
        with naming(path):
            check_vocabulary(found.model, given)
        return found._replace(tokenizer=given)
    if path.suffix in PICKLES:
        raise refuse_pickle(path)
    what = "is empty" if not start else "not a known model format"
    if start and path.suffix == ".gguf":
        raise FormatError(
            f"{path}: begins with {start!r} (a GGUF file begins with {gguf.MAGIC!r}: fetch it again)"
        )
    raise FormatError(f"{path}: {what} (must be a directory, .gguf, or llama2.c's .bin)")


def check_there(path: Path) -> None:
    """Refuse a path that does not exist, such as the name of a model on a hub."""
    if not path.exists():
        raise DataError(
            f"{as_given(path)}: no such directory or file (nothing is downloaded; give a directory or a file)"
        )
    check_regular(path)


def _open_directory(path: Path, given: Tokenizer | None) -> Opened:
    if not (path / "config.json").exists():
        raise DataError(f"{path}: holds no model (must have config.json, or one .gguf or .bin file)")
    found = open_pretrained(path, given)
    if found.tokenizer is None:
        rule = "must have tokenizer.json, or be given one by import "
        raise DataError(f"{path}: holds no tokenizer ({rule}", Setting("tokenizer"), ")")
    return found


def model_files(folder: Path) -> list[Path]:
    """The .gguf and llama2.c files of a directory; none if it has a config.json and so is itself the model."""
    if not folder.is_dir() or (folder / "config.json").exists():
        return []
    found = (path for path in folder.iterdir() if path.is_file() and path.suffix in (".gguf", ".bin"))
    return sorted(path for path in found if not llama2c.TOKENIZER.fullmatch(path.name))


def _holds_pickle(path: Path) -> bool:
    """True for a zip file as PyTorch writes it, or one that cannot be listed."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".pkl") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return True


def _is_pickle(start: bytes) -> bool:
    """True for a pickle, alone or in PyTorch's zip file; a llama2.c file of dim 640 begins with the same two bytes."""
    return start[:2] == b"PK" or (
        start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05" and start[2:3] != b"\0"
    )
