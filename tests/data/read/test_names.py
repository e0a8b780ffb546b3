"""Lists of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.data import read_names


@pytest.mark.requirement("R-171")
def test_names_are_stripped_lower_case_and_over_the_alphabet(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("Emma\n  olivia \n\nn0ah\nAVA\nzoë\n")
    found = read_names(path)
    assert found.names == ["emma", "olivia", "ava"]
    assert [(d.text, d.line) for d in found.rejected] == [("n0ah", 4), ("zoë", 6)]
    assert read_names(path, alphabet="abcdefghijklmnopqrstuvwxyzë").names == ["emma", "olivia", "ava", "zoë"]
