"""Token shards on disk: written completely or not at all, mapped into memory when read.

DIR/meta.json              sizes, hashes and sources
    tokenizer.json         the tokenizer
    train.npy              (tokens,) uint16, or uint32 for a vocabulary beyond 65,536
    train.documents.npy    (documents + 1,) int64: where each document begins, and the end of the last
    validation.npy  ...    the other parts of the split, if any
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chainrule.columns import CHOSEN, Columns
from chainrule.data.corpora import BUILT_IN, Corpus, load
from chainrule.data.encoded import Encoded
from chainrule.data.read.documents import Document, batched
from chainrule.data.read.tabular.columns import no_table
from chainrule.data.splits import Split
from chainrule.distributed import in_order
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.files import check_regular, flush, json_value, new_folder, regular_bytes
from chainrule.text import Tokenizer, from_dict
from chainrule.text.unicode.utf8 import to_utf8
from chainrule.types import Ids

FORMAT = 1
META = "meta.json"
TOKENIZER = "tokenizer.json"


def build(
    out: Path,
    documents: Iterable[Document],
    tokenizer: Tokenizer,
    *,
    split: Split | None = None,
    end: str | None = "\n",
    workers: int = 1,
) -> dict[str, Any]:
    """Write the documents as tokens into the new directory `out`; returns the content of its meta.json.

    The token `end` follows each document, so that a model can learn where documents end. Without `split` all documents
    are in the part "train". Several `workers` encode documents at the same time, to the same files.
    """
    split = split or Split(validation=0, test=0)
    fractions = {"train": 1.0, "validation": split.validation, "test": split.test}
    closing = np.array([] if end is None else [end_token(tokenizer, end)], np.int32)
    sources: Counter[str] = Counter()
    with new_folder(out) as folder:
        kept = [part for part, fraction in fractions.items() if fraction]
        parts = {part: _Writer(folder, part, tokenizer.vocab_size) for part in kept}
        files = _write_json(folder / TOKENIZER, tokenizer.to_dict())
        encode = _Encoder(folder, split, tokenizer)
        for batch in in_order(encode, batched(documents), workers):
            for source, part, characters, size, ids in batch:
                sources[source] += 1
                parts[part].add(np.concatenate([ids, closing]), characters, size)
        meta = {
            "format": FORMAT,
            "vocab_size": tokenizer.vocab_size,
            "end": int(closing[0]) if len(closing) else None,
            "split": asdict(split),
            "sources": dict(sources),
            "tokenizer": files,
            "parts": {name: part.finish(sum(sources.values())) for name, part in parts.items()},
        }
        _write_json(folder / META, meta)
    return meta


class _Encoder:
    """Encodes documents; in another process with the tokenizer of the directory that is being built."""

    def __init__(self, folder: Path, split: Split, tokenizer: Tokenizer) -> None:
        self.folder, self.split, self.tokenizer = folder, split, tokenizer

    def __call__(self, documents: list[Document]) -> list[tuple[str, str, int, int, Ids]]:
        """Of each document: its source, its part, its characters, bytes and ids."""
        part, encode = self.split.part, self.tokenizer.encode
        return [
            (d.source, part(d.text), len(d.text), len(to_utf8(d.text)), encode(d.text)) for d in documents
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.folder, self.split)


@lru_cache(1)
def _opened(folder: Path, split: Split) -> _Encoder:
    return _Encoder(folder, split, from_dict(_read_json(folder / TOKENIZER)))


def end_token(tokenizer: Tokenizer, text: str) -> int:
    """The id of `text`, which must be a single token, special or not."""
    special = tokenizer.special_ids
    if text in special:
        return special[text]
    ids = tokenizer.encode_inside(text)
    if len(ids) != 1:
        some = f", such as {', '.join(list(special)[:5])}" if special else ""
        raise ConfigError(
            f"shards: end {text!r} is {len(ids)} tokens of this tokenizer "
            f"(must be one: give --end '' for none, or another text{some})"
        )
    return int(ids[0])


class _Writer:
    """Writes one part."""

    def __init__(self, folder: Path, name: str, vocab_size: int) -> None:
        self.folder, self.name = folder, name
        self.dtype = np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")
        self.starts = array("q", [0])
        self.characters = self.bytes = 0
        self.file = (folder / f"{name}.npy").open("wb")
        self._header()

    def add(self, ids: npt.NDArray[Any], characters: int, size: int) -> None:
        self.file.write(ids.astype(self.dtype).tobytes())
        self.starts.append(self.starts[-1] + len(ids))
        self.characters += characters
        self.bytes += size

    def finish(self, documents: int) -> dict[str, Any]:
        """Complete the files; returns their entry in meta.json."""
        if not self.starts[-1]:
            raise DataError(
                f"shards: part {self.name} got none of {documents} documents "
                "(give more documents or smaller ones, for example by paragraph, or change its fraction)"
            )
        self.file.seek(0)
        self._header()  # now with the final number, for which NumPy leaves space
        flush(self.file)
        self.file.close()
        boundaries = self.folder / f"{self.name}.documents.npy"
        with boundaries.open("wb") as file:
            np.save(file, np.frombuffer(self.starts, "<i8"), allow_pickle=False)
            flush(file)
        return {
            "tokens": self.starts[-1],
            "documents": len(self.starts) - 1,
            "characters": self.characters,
            "bytes": self.bytes,
            "files": {path.name: _sums(path) for path in (self.folder / f"{self.name}.npy", boundaries)},
        }

    def _header(self) -> None:
        description = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.starts[-1],)}
        np.lib.format.write_array_header_1_0(self.file, description)


class Shards:
    """The tokens written by `build`. Sizes are checked, with `verify`, or once `sha256` is asked for, every hash too.

    `parts["train"]` is an `Encoded`: `.ids` is one long row for `Batches`; its documents feed `DocumentBatches` and
    `PackedBatches`. Files are read on access.
    """

    version = "shards"

    def __init__(self, folder: Path, *, verify: bool = False) -> None:
        self.folder = folder
        if not (folder / META).is_file():
            raise DataError(_no_shards(folder))
        self.meta = _read_json(folder / META)
        if self.meta.get("format") != FORMAT:
            raise FormatError(f"{folder / META}: format {self.meta.get('format')!r} (must be {FORMAT})")
        try:
            files = dict(self.meta["tokenizer"])
            for part in self.meta["parts"].values():
                files.update(part["files"])
            for name, sums in files.items():
                _check(folder / name, sums, verify or name == TOKENIZER)
            self.files = files
            self.parts = {name: self._part(name, part) for name, part in self.meta["parts"].items()}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, DataError | FormatError):
                raise
            raise FormatError(f"{folder / META}: cannot be read ({error!r})") from error

    @property
    def name(self) -> str:
        """The absolute path."""
        return str(self.folder.absolute())

    @cached_property
    def sha256(self) -> str:
        """Hash of the names and hashes of all files as they are, not as meta.json says: equal for equal tokens."""
        for name, sums in self.files.items():
            _check(self.folder / name, sums, verify=True)
        sums = {name: entry["sha256"] for name, entry in self.files.items()}
        return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the tokens."""
        return from_dict(_read_json(self.folder / TOKENIZER))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shards) and (self.name, self.sha256) == (other.name, other.sha256)

    def __hash__(self) -> int:
        return hash(self.sha256)

    def _part(self, name: str, meta: dict[str, Any]) -> Encoded:
        ids, starts = (_mapped(self.folder / file) for file in (f"{name}.npy", f"{name}.documents.npy"))
        flat = ids.ndim == starts.ndim == 1
        whole = flat and ids.dtype in (np.uint16, np.uint32) and starts.dtype == np.int64
        sizes = (len(ids), len(starts) - 1) if whole else None
        if sizes != (meta["tokens"], meta["documents"]) or (np.diff(starts) < 0).any():
            raise FormatError(f"{self.folder / name}.npy: differs from {META} (build it again)")
        return Encoded(ids, starts)

    def __repr__(self) -> str:
        return f"<Shards {self.folder}: {self.parts}>"


def _mapped(path: Path) -> npt.NDArray[Any]:
    """An array of a file, mapped; NumPy reads a damaged header as Python and fails in ways of its own."""
    check_regular(path)
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:
        raise FormatError(f"{path}: is not an array file ({error})") from error


def _check(path: Path, sums: dict[str, Any], verify: bool) -> None:
    size = path.stat().st_size if path.is_file() else 0
    if size != sums["bytes"]:
        raise FormatError(f"{path}: has {size} bytes, {META} says {sums['bytes']!r} (build it again)")
    if verify and _sums(path) != sums:
        raise FormatError(f"{path}: is damaged, it does not have the hash in {META} (build it again)")


def _sums(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _write_json(path: Path, value: dict[str, Any]) -> dict[str, Any]:
    with path.open("wb") as file:
        file.write((json.dumps(value, indent=1) + "\n").encode())
        flush(file)
    return {path.name: _sums(path)}


def _no_shards(folder: Path) -> str:
    """What a directory is instead, and how to come from its texts to shards."""
    if not folder.is_dir():
        return f"{folder}: no such directory (must be written by chainrule data build)"
    if (folder / "config.json").is_file():
        return f"{folder}: a model, not data (must be a text file, or a directory that chainrule data build wrote)"
    if not any(folder.iterdir()):
        return f"{folder}: an empty directory (must be a text file, or a directory that chainrule data build wrote)"
    build = f"chainrule data build {folder} --validation 0.05 --out shards"
    return f"{folder}: a directory without token shards (must be a file, or made by: {build})"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json_value(regular_bytes(path))
    except (OSError, FormatError) as error:
        raise FormatError(f"{path}: {error}") from error


def load_text(name: str | os.PathLike[str], columns: Columns = CHOSEN) -> Corpus | Shards:
    """What `load` finds by this name, or the shards in this directory."""
    if name not in BUILT_IN and Path(name).is_dir():
        no_table(name, columns)
        return Shards(Path(name))
    return load(name, columns)
