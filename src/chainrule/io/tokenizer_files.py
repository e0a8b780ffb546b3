"""A tokenizer from whatever file it is kept in.

our JSON                 {"type": "wordpiece", ...}, as `save_tokenizer` and checkpoints write it
Hugging Face's JSON      {"model": {"type": "WordPiece", ...}, ...}
BERT's vocab.txt         one token a line
a directory              with one of these: tokenizer.json, vocab.txt
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, DataError, FormatError
from chainrule.io import unigram_json, wordpiece_json
from chainrule.io.files import read_bytes, write_atomically
from chainrule.text import Tokenizer, from_dict

HUGGING_FACE = {"WordPiece": wordpiece_json, "Unigram": unigram_json}
IN_A_DIRECTORY = ("tokenizer.json", "vocab.txt")


def load_tokenizer(path: str | Path) -> Tokenizer:
    """The tokenizer in a file or directory of any format this module's docstring lists."""
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in IN_A_DIRECTORY if (path / name).is_file()]
        if not found:
            raise DataError(f"{path}: holds no tokenizer (must have one of {', '.join(IN_A_DIRECTORY)})")
        path = found[0]
    content = read_bytes(path)
    try:
        if path.suffix == ".txt":
            return wordpiece_json.read_vocab_txt(content, config=path.with_name("tokenizer_config.json"))
        return _from_json(content)
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8, byte {error.start} (must be a tokenizer's file)") from error
    except RecursionError as error:
        raise FormatError(f"{path}: nested too deeply (must be a tokenizer's JSON)") from error
    except ChainruleError as error:
        raise FormatError(f"{path}: {error}") from error


def save_tokenizer(tokenizer: Tokenizer, path: str | Path, *, hugging_face: bool = False) -> None:
    """Write our JSON, or Hugging Face's `tokenizer.json`; the file is there completely or not at all."""
    description = to_hugging_face(tokenizer) if hugging_face else tokenizer.to_dict()
    text = json.dumps(description, ensure_ascii=False, indent=1)
    write_atomically(Path(path), text.encode("utf-8", "surrogatepass") + b"\n")


def to_hugging_face(tokenizer: Tokenizer) -> dict[str, Any]:
    """What `tokenizer.json` holds."""
    for module in HUGGING_FACE.values():
        if isinstance(tokenizer, module.KIND):
            return module.write(tokenizer)
    kinds = ", ".join(module.KIND.kind for module in HUGGING_FACE.values())
    raise FormatError(f"tokenizer.json: cannot hold a {tokenizer.kind} tokenizer (must be one of {kinds})")


def _from_json(content: bytes) -> Tokenizer:
    try:
        description = json.loads(content.decode("utf-8", "surrogatepass"))
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno} is not JSON ({error.msg})") from error
    if not isinstance(description, dict):
        raise FormatError(
            f"holds a {type(description).__name__} (must be an object that describes a tokenizer)"
        )
    model = description.get("model")
    if not isinstance(model, dict):
        return from_dict(description)
    kind = model.get("type")
    if kind not in HUGGING_FACE:
        raise FormatError(f"model type {kind!r} (must be one of {', '.join(HUGGING_FACE)})")
    return HUGGING_FACE[kind].read(description)
