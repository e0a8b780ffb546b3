"""Loading a model and its tokenizer from any supported format."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from chainrule.errors import DataError, FormatError
from chainrule.io import gguf, llama2c
from chainrule.io.binary import map_file
from chainrule.io.hf.pretrained import PICKLES, load_pretrained, refuse_pickle
from chainrule.models import Model
from chainrule.text import Tokenizer

SHOWN = 5  # files that a message names


def load(path: str | PathLike[str]) -> tuple[Model, Tokenizer]:
    """The model, in evaluation mode, and the tokenizer of a Hugging Face directory, a .gguf or a llama2.c .bin file.

    A directory that holds a single such file works too.
    """
    path = Path(path)
    check_there(path)
    if files := model_files(path):
        if len(files) > 1:
            names = ", ".join(file.name for file in files[:SHOWN]) + (", ..." if len(files) > SHOWN else "")
            raise FormatError(f"{path}: holds {len(files)} models, {names} (must be one: give the file)")
        path = files[0]
    if path.is_dir():
        if not (path / "config.json").exists():
            raise DataError(f"{path}: holds no model (must have config.json, or one .gguf or .bin file)")
        model, tokenizer = load_pretrained(path)
        if tokenizer is None:
            raise DataError(f"{path}: holds no tokenizer (must have tokenizer.json)")
        return model, tokenizer
    start = bytes(map_file(path)[:4])
    if start == gguf.MAGIC:
        return gguf.read(path)
    if _is_pickle(start):
        raise refuse_pickle(path)
    if path.suffix == ".bin":
        llama = llama2c.read_model(path)
        size = llama.config.vocab_size
        return llama, llama2c.read_tokenizer(llama2c.find_tokenizer(path, size), size)
    if path.suffix in PICKLES:
        raise refuse_pickle(path)
    raise FormatError(f"{path}: not a known model format (must be a directory, .gguf, or llama2.c's .bin)")


def check_there(path: Path) -> None:
    """Refuse a path that does not exist, such as the name of a model on a hub."""
    if not path.exists():
        raise DataError(
            f"{path}: no such directory or file (nothing is downloaded; give a directory or a file)"
        )


def model_files(folder: Path) -> list[Path]:
    """The .gguf and llama2.c files of a directory; none if it has a config.json and so is itself the model."""
    if not folder.is_dir() or (folder / "config.json").exists():
        return []
    found = (path for path in folder.iterdir() if path.is_file() and path.suffix in (".gguf", ".bin"))
    return sorted(path for path in found if not llama2c.TOKENIZER.fullmatch(path.name))


def _is_pickle(start: bytes) -> bool:
    """True for a pickle, alone or in PyTorch's zip file; a llama2.c file of dim 640 begins with the same two bytes."""
    return start[:2] == b"PK" or (
        start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05" and start[2:3] != b"\0"
    )
