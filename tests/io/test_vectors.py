"""Word vectors as text: what is written comes back, and a broken file is named with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chainrule.errors import ChainruleError, ConfigError, DataError, FormatError
from chainrule.io.vectors import read_analogies, read_pairs, read_vectors, write_vectors


@settings(max_examples=25)
@given(arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_every_float_comes_back(tmp_path_factory: pytest.TempPathFactory, matrix: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    write_vectors(path, ["a", "l'été", "中"], matrix)
    words, table = read_vectors(path)
    assert words == ["a", "l'été", "中"]
    np.testing.assert_array_equal(table, matrix)
    assert path.read_text(encoding="utf-8").startswith("3 4\na ")


def test_files_of_other_tools(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("\ufeff2 2\nNew York 1 -2e-3 \nb 3 4\n\n")  # marks and spaces
    words, table = read_vectors(path)
    assert words == ["New York", "b"]
    np.testing.assert_array_equal(table, np.array([[1, -2e-3], [3, 4]], np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1 is '' (must be `WORDS DIMENSIONS`)"),
        ("a 1 2\n", "line 1 is 'a 1 2'"),
        ("1 0\na\n", "line 1 is '1 0'"),
        ("2 2\na 1 2\n", "1 vectors, the first line says 2"),
        ("100000000 2\na 1 2\n", "1 vectors, the first line says 100000000"),
        ("1 99999999999999999999\na 1\n", "line 1 is '1 99999999999999999999'"),
        ("1" * 5000 + " 2\na 1 2\n", "line 1 is '1111"),
        ("2 2\na 1 2\nb 1\n", "line 3 is 'b 1' (must be a word and 2 finite numbers)"),
        ("2 2\na 1 2\nb 1 x\n", "line 3 is 'b 1 x'"),
        ("1 2\na 1 nan\n", "line 2 is 'a 1 nan'"),
        ("1 2\n1 2\n", "line 2 is '1 2'"),
        ("2 1\na 1\na 2\n", "line 3 repeats the word 'a'"),
    ],
)
def test_broken_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content)
    with pytest.raises(FormatError) as error:
        read_vectors(path)
    assert message in str(error.value) and str(path) in str(error.value)


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("vectors") / "any.txt"
    path.write_bytes(content)
    for read in (read_vectors, read_pairs, read_analogies):
        try:
            read(path)
        except ChainruleError as error:
            assert str(path) in str(error)


def test_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ConfigError, match=r"cannot be written \(No space left on device"):
        write_vectors(tmp_path / "vectors.txt", ["a"], np.ones((1, 2)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["a b"], [""], ["a", "b"]])
def test_words_that_do_not_fit_the_format(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(DataError, match="must"):
        write_vectors(tmp_path / "vectors.txt", words, np.ones((1, 2)))
    assert list(tmp_path.iterdir()) == []


def test_pairs_and_analogies(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"# comment\r\ntiger\tcat\t7.35\r\nKing queen 8.58\r\n")
    assert read_pairs(path) == [("tiger", "cat", 7.35), ("King", "queen", 8.58)]
    with pytest.raises(FormatError, match=r"line 1 is '# comment' \(must be four words"):
        read_analogies(path)
    path.write_text(": family\nboy girl man woman\n: empty\n")
    assert read_analogies(path) == {"family": [("boy", "girl", "man", "woman")], "empty": []}
    with pytest.raises(FormatError, match=r"line 1 is ': family' \(must be two words and a score"):
        read_pairs(path)
    with pytest.raises(DataError, match=r"none.txt: cannot be read \(No such file"):
        read_pairs(tmp_path / "none.txt")
