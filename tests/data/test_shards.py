"""Shards: what was written is read, what is damaged is refused, and nothing is left half-written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import Batches, Document, DocumentBatches, PackedBatches, Shards, Split, build
from chainrule.data.read import documents as reading
from chainrule.errors import ChainruleError, ConfigError, DataError, FormatError
from chainrule.text import CharTokenizer, UnigramTokenizer, WordPieceTokenizer

TEXTS = [f"document {i}, {'word ' * (i % 5)}" for i in range(200)]
TOKENIZER = CharTokenizer.train("\n".join(TEXTS))


def documents(texts: list[str] = TEXTS) -> Iterator[Document]:
    return (Document(text, "test", i) for i, text in enumerate(texts, start=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "shards", documents(), TOKENIZER, split=Split(0.2, 0.1))
    return tmp_path / "shards"


def test_what_was_written_is_read(folder: Path) -> None:
    shards = Shards(folder, verify=True)
    assert shards.tokenizer == TOKENIZER
    split, found = Split(0.2, 0.1), []
    for name, part in shards.parts.items():
        assert part.ids.dtype == np.uint16
        texts = [shards.tokenizer.decode(ids) for ids in part]
        assert all(text.endswith("\n") and split.part(text[:-1]) == name for text in texts)
        found += [text[:-1] for text in texts]
        meta = shards.meta["parts"][name]
        assert meta["tokens"] == len(part.ids) and meta["documents"] == len(part)
        assert meta["characters"] == meta["bytes"] == len(part.ids) - len(part)
    assert sorted(found) == sorted(TEXTS)
    assert shards.meta["sources"] == {"test": 200} and shards.meta["end"] == TOKENIZER.encode("\n")[0]


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_write_the_same_files(folder: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH", 500)  # characters: 12 batches
    out = folder.with_name("by-workers")
    build(out, documents(), TOKENIZER, split=Split(0.2, 0.1), workers=workers)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in out.iterdir())
    assert all((out / name).read_bytes() == (folder / name).read_bytes() for name in names)


def test_a_text_that_workers_cannot_encode_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BATCH", 500)
    refused = "unknown character 'Ж'"
    for workers in (1, 2):
        with pytest.raises(DataError, match=refused):
            build(tmp_path / "shards", documents([*TEXTS, "Ж"]), TOKENIZER, workers=workers)
        assert list(tmp_path.iterdir()) == []


@settings(max_examples=25)
@given(
    texts=st.lists(st.text("abc\n", max_size=9), min_size=1).filter(any), end=st.sampled_from([None, "\n"])
)
def test_any_documents_come_back_in_order(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], end: str | None
) -> None:
    tokenizer = CharTokenizer("\nabc")
    out = tmp_path_factory.mktemp("any") / "shards"
    build(out, documents(texts), tokenizer, end=end)
    (part,) = Shards(out, verify=True).parts.values()
    assert [tokenizer.decode(ids) for ids in part] == [text + (end or "") for text in texts]


def test_every_kind_of_batch_is_cut_from_mapped_memory(folder: Path) -> None:
    train = Shards(folder).parts["train"]
    for batches in (
        Batches(train.ids, batch_size=2, block_size=16),
        DocumentBatches(train, batch_size=2, block_size=16),
        PackedBatches(train, batch_size=2, block_size=16),
    ):
        inputs, targets = batches.batch(3)
        assert inputs.dtype.kind == targets.dtype.kind == "i" and inputs.shape == targets.shape


def test_a_large_vocabulary_takes_four_bytes(tmp_path: Path) -> None:
    tokenizer = CharTokenizer("".join(map(chr, range(0x10000, 0x10000 + 70_000))))
    text = chr(0x10000 + 69_999)
    build(tmp_path / "s", documents([text]), tokenizer, end=None)
    (part,) = Shards(tmp_path / "s").parts.values()
    assert part.ids.dtype == np.uint32 and part.ids.tolist() == [69_999]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def broken(error: BaseException) -> Iterator[Document]:
        yield from documents()
        raise error

    for error in (DataError("line 17"), KeyboardInterrupt(), OSError(28, "No space left on device")):
        with pytest.raises((DataError, KeyboardInterrupt, ConfigError)):
            build(tmp_path / "shards", broken(error), TOKENIZER)
        assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_written_over(folder: Path) -> None:
    before = (folder / "meta.json").read_bytes()
    with pytest.raises(ConfigError, match="exists already"):
        build(folder, documents(), TOKENIZER)
    assert (folder / "meta.json").read_bytes() == before
    (folder.parent / "empty").mkdir()
    build(folder.parent / "empty", documents(), TOKENIZER)  # an empty directory is no loss
    assert Shards(folder.parent / "empty").parts


def test_a_part_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"part \w+ got none of 1 documents .* by paragraph"):
        build(tmp_path / "shards", documents(TEXTS[:1]), TOKENIZER, split=Split(0.1, 0))
    with pytest.raises(DataError, match="part train got none of 0 documents"):
        build(tmp_path / "shards", documents([]), TOKENIZER)
    with pytest.raises(
        ConfigError, match=r"end 'do' is 2 tokens .*give --end '' for none, or another text\)"
    ):
        build(tmp_path / "shards", documents(), TOKENIZER, end="do")


@pytest.mark.parametrize("options", [{}, {"prefix": False}, {"special_tokens": ["<s>"]}])
def test_a_line_end_is_one_token_of_unigram(tmp_path: Path, options: dict[str, Any]) -> None:
    """The space that goes before a text does not go before its end."""
    tokenizer = UnigramTokenizer.train(TEXTS, 400, **options)
    build(tmp_path / "shards", documents(TEXTS[:3]), tokenizer)
    shards = Shards(tmp_path / "shards")
    assert [tokenizer.decode(ids) for ids in shards.parts["train"]] == [text + "\n" for text in TEXTS[:3]]


def test_the_end_of_a_tokenizer_without_line_ends(tmp_path: Path) -> None:
    tokenizer = WordPieceTokenizer.train(TEXTS, 100)
    with pytest.raises(ConfigError, match=r"end '\\n' is 0 tokens .*give --end '' .* such as .*\[SEP\]"):
        build(tmp_path / "shards", documents(), tokenizer)
    assert build(tmp_path / "shards", documents(), tokenizer, end="[SEP]")["end"] == 3


def test_missing_and_strange_directories_are_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match="none: no such directory"):
        Shards(tmp_path / "none")
    with pytest.raises(DataError, match="a directory without token shards"):
        Shards(tmp_path)
    (folder / "train.npy").unlink()
    with pytest.raises(FormatError, match=r"train\.npy: has 0 bytes"):
        Shards(folder)


def test_damage_is_found(folder: Path) -> None:
    path = folder / "train.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    Shards(folder)  # sizes are right
    with pytest.raises(FormatError, match=r"train\.npy: is damaged"):
        Shards(folder, verify=True)
    with pytest.raises(FormatError, match=r"train\.npy: is damaged"):
        assert Shards(folder).sha256  # of what is there, not of what meta.json says
    path.write_bytes(content[:-1])
    with pytest.raises(FormatError, match=r"train\.npy: has [\d,]+ bytes, meta\.json says"):
        Shards(folder)


def test_another_tokenizer_of_the_same_size_is_found(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace("a", "~", 1), encoding="utf-8")
    with pytest.raises(FormatError, match=r"tokenizer\.json: is damaged"):
        Shards(folder)


HUGE = b"{'shape': (10**30,), 'fortran_order': False, 'descr': '<u2'}"


@pytest.mark.parametrize("header", [b"(((((", b"{'descr': '<u2'", b"\x00" * 20, HUGE])
def test_headers_that_numpy_cannot_read(folder: Path, header: bytes) -> None:
    path = folder / "train.npy"
    content = path.read_bytes()
    path.write_bytes(content[:10] + header.ljust(118, b" ")[:118] + content[128:])
    with pytest.raises(FormatError, match=r"train\.npy: is not an array file"):
        Shards(folder)


@settings(max_examples=60)
@given(data=st.data())
def test_any_meta_json_is_shards_or_one_clear_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    out = tmp_path_factory.mktemp("meta") / "s"
    meta = build(out, documents(TEXTS[:3]), TOKENIZER)
    strange = st.sampled_from([None, 0, -1, 1.5, "x", [], {}, {"x": 1}, {"../x": {"bytes": 1}}])
    where = data.draw(st.sampled_from([(), ("format",), ("parts",), ("tokenizer",), ("parts", "train"), ("parts", "train", "files"), ("parts", "train", "tokens")]))  # fmt: skip # noqa: E501
    value = data.draw(strange)
    target = meta
    for key in where[:-1]:
        target = target[key]
    if where:
        target[where[-1]] = value
    (out / "meta.json").write_text(json.dumps(meta if where else value))
    try:
        Shards(out)
    except ChainruleError as error:
        assert "\n" not in str(error)
