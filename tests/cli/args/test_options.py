"""What every command that reports has: words for people, or one JSON object."""

from __future__ import annotations

import json

import pytest

from chainrule.cli.args.options import Reporting


def test_words_are_made_only_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    made = []

    def words() -> str:
        made.append(1)
        return "one"

    Reporting(json=True).report({"n": 1}, words)
    assert json.loads(capsys.readouterr().out) == {"n": 1} and not made
    Reporting().report({"n": 1}, words)
    assert capsys.readouterr().out == "one\n" and made == [1]
