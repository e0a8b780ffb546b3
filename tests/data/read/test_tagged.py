"""Sentences with a tag for each word: files, and batches in which every word has one place."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import Tagged, read_tagged
from chainrule.errors import DataError

WANTED = [Tagged(("Ada", "wrote"), ("B-PER", "O")), Tagged(("Yes", "."), ("O", "O"))]


@pytest.mark.parametrize(
    "content",
    [
        "Ada\tB-PER\nwrote\tO\n\nYes\tO\n.\tO\n",
        "\n\nAda B-PER\nwrote O\n\n \n\nYes O\n. O",  # spaces, more empty lines, no end of the last
        "-DOCSTART- -X- -X- O\n\nAda NNP B-NP B-PER\nwrote VBD B-VP O\n\nYes UH B-X O\n. . O O\n",  # CoNLL-2003
        "Ada\tB-PER\r\nwrote\tO\r\n\r\nYes\tO\r\n.\tO\r\n",
    ],
)
def test_files(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.conll").write_text(content, newline="")
    assert read_tagged(tmp_path / "a.conll") == WANTED


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Ada\tO\nwrote\n", "line 2 is 'wrote' (must be a word, a tab and its tag)"),
        ("Ada\tO\nwrote\t\n", "line 2 is 'wrote'"),
        ("Ada\tO\n\tO\n", "line 2 is 'O'"),
        ("", "no text in 0 bytes"),
    ],
)
def test_a_word_without_a_tag_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.conll").write_text(content)
    with pytest.raises(DataError) as caught:
        read_tagged(tmp_path / "a.conll")
    assert message in str(caught.value)
