"""Corpora: built in, by name, by path; and what is said about files that cannot be used."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from chainrule.data import BUILT_IN, available, load
from chainrule.data.corpora import Corpus
from chainrule.errors import DataError


@pytest.fixture(scope="module")
def corpora() -> dict[str, Corpus]:
    return {name: load(name) for name in BUILT_IN}


def test_pydoc_is_the_default_and_is_prose_and_code(corpora: dict[str, Corpus]) -> None:
    corpus = load()
    assert corpus == corpora["pydoc"]
    assert len(corpus.text) > 300_000
    assert "__init__" in corpus.text and "The " in corpus.text


def test_pydoc_holds_no_paragraph_twice(corpora: dict[str, Corpus]) -> None:
    paragraphs = corpora["pydoc"].text.strip("\n").split("\n\n")
    assert len(paragraphs) == len(set(paragraphs))


def test_the_other_corpora_are_what_they_say(corpora: dict[str, Corpus]) -> None:
    assert "def namedtuple(" in corpora["stdlib"].text
    names = corpora["identifiers"].text.split("\n")
    assert {"namedtuple", "OrderedDict"} <= set(names)
    assert len(names) == len(set(names)) > 10_000
    assert 'def bisect_left(a, x, lo=0, hi=None, *, key=None):\n    """' in corpora["docstrings"].text


def test_a_corpus_knows_its_version_and_hash(corpora: dict[str, Corpus]) -> None:
    for corpus in corpora.values():
        assert corpus.version == f"CPython {platform.python_version()}"
        assert corpus.sha256 == hashlib.sha256(corpus.text.encode()).hexdigest()
        assert corpus.text not in repr(corpus)


def test_the_hashes_are_the_same_in_another_process(corpora: dict[str, Corpus]) -> None:
    code = "from chainrule.data import *; print(*(load(name).sha256 for name in BUILT_IN))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "12345"},  # the order of sets differs from ours
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [corpus.sha256 for corpus in corpora.values()]


def test_a_file_is_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_bytes("\ufeffA naïve\r\nbook\r".encode())
    corpus = load("book.txt")
    assert corpus.text == "A naïve\nbook\n"  # no byte-order mark, one kind of line end
    assert load(corpus.name) == corpus


def test_named_files_are_found_under_chainrule_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "shakespeare.txt").write_text("To be")
    (tmp_path / "names.txt").write_text("emma")
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    assert load("shakespeare").text == "To be"
    assert load("names.txt").text == "emma"
    assert {"names", "shakespeare", *BUILT_IN} == set(available())


def test_chainrule_data_must_be_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"CHAINRULE_DATA: .*none is not a directory"):
        load("shakespeare")


def test_an_unknown_name_gets_the_list_and_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    with pytest.raises(
        DataError, match=r"'pydocs'.*did you mean pydoc\?.*stdlib, identifiers.*CHAINRULE_DATA"
    ):
        load("pydocs")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no text in 0 bytes"),
        (b" \n\t\n", "no text in 4 bytes"),
        (b"one\ntwo\xff\n", "line 2 is not UTF-8, byte 0xff"),
        ("naïve".encode("latin-1"), "line 1 is not UTF-8, byte 0xef"),
        (b"one\ntwo\nth\0ree", "binary file, zero byte in line 3"),
    ],
)
def test_a_bad_file_is_named_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        load(path)
    assert str(error.value).startswith(str(path))


def test_missing_files_and_directories_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "none.txt")
    with pytest.raises(DataError, match="not a regular file"):
        load(tmp_path)
