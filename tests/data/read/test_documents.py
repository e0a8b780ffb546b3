"""Readers: every kind of file gives documents, and what is broken is named with file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import BUILT_IN, Columns, Document, load, read_documents
from chainrule.data.read.files import LONGEST_LINE
from chainrule.errors import ChainruleError, ConfigError, DataError

TEXTS = ["one", "two\nlines", 'say "three", four', "naïve 鱼 🐟"]


def as_csv(texts: list[str]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
    return file.getvalue().encode()


def as_jsonl(texts: list[str]) -> bytes:
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)).encode()


def as_parquet(texts: list[str]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(len(texts))), "text": pa.array(texts, pa.string())}), file)
    return file.getvalue()


WRITERS: dict[str, Callable[[list[str]], bytes]] = {
    "a.csv": as_csv,
    "a.jsonl": as_jsonl,
    "a.parquet": as_parquet,
    "a.csv.gz": lambda texts: gzip.compress(as_csv(texts)),
    "a.jsonl.gz": lambda texts: gzip.compress(as_jsonl(texts)),
    "a.parquet.gz": lambda texts: gzip.compress(as_parquet(texts)),
}


def texts(*args: Any, **options: Any) -> list[str]:
    return [document.text for document in read_documents(*args, **options)]


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_texts_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(WRITERS[name](TEXTS))
    assert texts(path) == TEXTS
    assert {document.source for document in read_documents(path)} == {str(path)}


def test_tables_without_quotes_and_without_header(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b'a "quote\t0\r\nplain\t1\r\n')
    assert texts(path, columns=Columns("1")) == ['a "quote', "plain"]
    path.write_bytes(b"text\tlabel\nfirst\t1\n\nsecond\t0\n")
    assert list(read_documents(path)) == [Document("first", str(path), 2), Document("second", str(path), 4)]


def test_a_record_over_several_lines_is_found_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(as_csv(TEXTS))
    assert [document.line for document in read_documents(path)] == [2, 3, 5, 6]


def test_plain_text_by_file_paragraph_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n \r\n\r\nthree\rfour")
    assert texts(path) == ["one\ntwo\n \n\nthree\nfour"]
    paragraphs = list(read_documents(path, by="paragraph"))
    assert [(d.text, d.line) for d in paragraphs] == [("one\ntwo", 1), ("three\nfour", 5)]
    assert texts(path, by="line") == ["one", "two", "three", "four"]


def test_folders_and_patterns_in_a_fixed_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in/b.txt", "in/a/c.txt", "in/.hidden/d.txt", "in/notes.py"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    Path("in/z.jsonl").write_text('{"text": "z"}')
    assert texts("in") == ["in/a/c.txt", "in/b.txt", "z"]
    assert texts("in/*.py") == ["in/notes.py"]  # of any kind, if asked for by name
    assert texts("in/**/*.txt") == ["in/a/c.txt", "in/b.txt"]
    assert texts(["in/b.txt", "in/z.jsonl"]) == ["in/b.txt", "z"]
    Path("empty").mkdir()
    with pytest.raises(DataError, match=r"empty: no \.txt, \.jsonl"):
        texts("empty")
    with pytest.raises(DataError, match=r"\*\.none: no file matches"):
        texts("in/*.none")


def test_documents_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "good"}\nbroken\n')
    reader = read_documents(path)
    assert next(reader).text == "good"
    with pytest.raises(DataError):
        next(reader)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_corpora_are_documents_too(name: str) -> None:
    documents = list(read_documents(name))
    assert BUILT_IN[name].between.join(d.text for d in documents) + "\n" == load(name).text
    assert documents[4] == Document(documents[4].text, name, 5)
    assert all(d.text for d in documents) and len(documents) > 50
    if name == "identifiers":
        assert "OrderedDict" in {d.text for d in documents}
    if name == "docstrings":
        assert all(d.text.startswith("def ") and d.text.endswith('"""') for d in documents)


def test_a_named_list_is_read_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "names.txt").write_text("emma\nava\n")
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    assert texts("names") == ["emma", "ava"]
    assert texts("names", by="file") == ["emma\nava\n"]


LINE_17 = '{"text": "fine"}\n' * 16
BAD = {
    "empty.jsonl": (b"", "no text in 0 bytes"),
    "mark.txt": (b"\xef\xbb\xbf", "no text in 3 bytes"),
    "mark.jsonl": (b"\xef\xbb\xbf\n", "no text in 4 bytes"),
    "blank.csv": (b"\n \n", "no text in 3 bytes"),
    "binary.txt": (b"\x7fELF\n\0", "binary file, zero byte in line 2"),
    "binary.jsonl": (LINE_17.encode() + b"\0", "binary file, zero byte in line 17"),
    "latin.jsonl": (LINE_17.encode() + b'{"text": "d\xe9j\xe0"}', "line 17 is not UTF-8, byte 0xe9"),
    "broken.jsonl": ((LINE_17 + '{"text": "fi').encode(), "line 17 is not JSON: Unterminated string"),
    "list.jsonl": ((LINE_17 + "[1]").encode(), r"line 17 holds a list \(must be an object"),
    "field.jsonl": ((LINE_17 + '{"txt": 1}').encode(), r"line 17 has no 'text' \(must be a string\)"),
    "type.jsonl": ((LINE_17 + '{"text": 1}').encode(), r"line 17: 'text' is an int \(must be a string\)"),
    "deep.jsonl": ((LINE_17 + "[" * 100_000).encode(), "line 17 is not JSON"),
    "digits.jsonl": ((LINE_17 + "1" * 10_000).encode(), "line 17 is not JSON"),
    "header.csv": (
        b"a,b\n1,2\n",
        r"no column 'text' \(must be a number from 1 to 2; if the first row, 'a', 'b', names",
    ),
    "columns.csv": (
        b"id,text\n" + b"1,x\n" * 15 + b"2\n",
        "row 17, in line 17, has 1 cells, the first row 2",
    ),
    "quote.csv": (b"id,text\n" + b"1,x\n" * 15 + b'2,"x\n', "record in line 17 is broken: unexpected end"),
    "long.jsonl": (LINE_17.encode() + b"x" * (50 << 20), "line 17 is longer than 16,777,216 bytes"),
    "zip.txt.gz": (b"not compressed", "cannot be read .Not a gzipped file"),
    "cut.txt.gz": (gzip.compress(b"text" * 999)[:-9], "cannot be read .Compressed file ended"),
    "noise.parquet": (b"PAR1 or not", "is not a valid .parquet file"),
    "column.parquet": (as_parquet([])[:], "no column 'texts' .there are 'id', 'text'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_with_file_and_line(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        texts(
            path,
            by="line" if name.startswith("long") else None,
            columns=Columns("texts" if "column." in name else "text"),
        )
    assert str(error.value).startswith(f"{path}: ")
    assert len(str(error.value)) < 300 + len(str(path))


def test_a_very_long_line_is_read_where_a_document_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * (LONGEST_LINE + 1))
    assert len(texts(path)[0]) == LONGEST_LINE + 1
    with pytest.raises(DataError, match="line 1 is longer"):
        texts(path, by="line")


def test_records_without_text_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": pa.array(["a", None])}), path)
    with pytest.raises(DataError, match="record 2 has no 'text'"):
        texts(path)


def test_without_pyarrow_a_parquet_file_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"needs pyarrow \(pip install 'chainrule\[data\]'\)"):
        texts(tmp_path / "a.parquet")


def test_what_unpacks_to_too_much_is_refused_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "word " * 200_000  # a megabyte
    files = {"a.txt.gz": gzip.compress(long.encode()), "a.parquet": as_parquet([long] * 30)}
    files["a.jsonl.gz"] = gzip.compress(as_jsonl([long] * 3))
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        monkeypatch.setenv("CHAINRULE_UNPACK_LIMIT", "900k")
        with pytest.raises(
            DataError, match=rf"{name}: unpacks to more than 900,000 bytes, .* --unpack-limit 10G"
        ):
            texts(tmp_path / name)
        monkeypatch.setenv("CHAINRULE_UNPACK_LIMIT", "1G")
        assert set(texts(tmp_path / name)) == {long}
    monkeypatch.delenv("CHAINRULE_UNPACK_LIMIT")
    assert len(texts(tmp_path / "a.parquet")) == 30
    monkeypatch.setenv("CHAINRULE_UNPACK_LIMIT", "much")
    with pytest.raises(ConfigError, match="CHAINRULE_UNPACK_LIMIT: is 'much'"):
        texts(tmp_path / "a.txt.gz")


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ConfigError, match="by 'word'"):
        texts("pydoc", by="word")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


STRINGS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=20), min_size=1
)


@settings(max_examples=30)
@given(written=STRINGS)
@pytest.mark.parametrize("name", WRITERS)
def test_what_is_written_is_read(folder: Path, name: str, written: list[str]) -> None:
    (folder / name).write_bytes(WRITERS[name](written))
    assert texts(folder / name) == written


PIECES = rb"""{ } {"text": "a" {"text":"a"} , " text id,text \u [ 1e999 NaN PAR1""".split()
BYTES = [
    b"\n",
    b"\r\n",
    b"\t",
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xed\xa0\x80",
    b"\x1f\x8b\x08",
]
LINES = st.sampled_from([*PIECES, *BYTES])
ANYTHING = st.one_of(st.binary(max_size=200), st.lists(LINES, max_size=30).map(b"".join))


@settings(max_examples=60)
@given(
    content=ANYTHING,
    by=st.sampled_from(["file", "paragraph", "line"]),
    field=st.sampled_from(["text", "1", "9"]),
)
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.txt.gz"])
def test_any_bytes_are_documents_or_one_clear_line(
    folder: Path, name: str, content: bytes, by: str, field: str
) -> None:
    for whole in (content, gzip.compress(content)) if name.endswith(".gz") else (content,):
        (folder / name).write_bytes(whole)
        try:
            found = list(read_documents(folder / name, by=by, columns=Columns(field)))
        except ChainruleError as error:
            assert str(error).startswith(str(folder / name)) and "\n" not in str(error)
        else:
            assert all(isinstance(d.text, str) and d.line >= 1 for d in found)


@settings(max_examples=40)
@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_parquet_file_is_documents_or_one_clear_line(
    folder: Path, at: int, byte: int, cut: bool
) -> None:
    content = bytearray(as_parquet(TEXTS * 3))
    at %= len(content)
    if cut:
        del content[at:]
    else:
        content[at] = byte
    path = folder / "damaged.parquet"
    path.write_bytes(content)
    try:
        texts(path)
    except ChainruleError as error:
        assert str(error).startswith(str(path))
