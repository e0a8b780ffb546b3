"""Flags in place of the names of fields, and nowhere else."""

from __future__ import annotations

import pytest

from chainrule.cli.args.errors import flagged, near

OPTIONS = ["block_size", "lr", "out", "text"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("train: lr is -1 (must be positive)", "train: --lr is -1 (must be positive)"),
        ("27 tokens, block_size 128", "27 tokens, --block-size 128"),
        ("loss nan (try a smaller lr than 3)", "loss nan (try a smaller --lr than 3)"),
        ("runs/block_size: no such directory", "runs/block_size: no such directory"),
        ("block_size.txt: no such file", "block_size.txt: no such file"),
        ("'block_size' is a list", "'block_size' is a list"),
        ("the text is too short, lr apart", "the text is too short, lr apart"),
    ],
)
def test_flags_stand_where_an_error_names_fields(message: str, expected: str) -> None:
    assert flagged(message, OPTIONS) == expected


def test_what_was_meant() -> None:
    assert near("--Minuts", ["--minutes", "--out"]) == "did you mean --minutes?"
    assert near("--n-head", ["--n-embd", "--n-layer"]) == ""
