"""Flags in place of the names of settings, and nowhere else."""

from __future__ import annotations

import pytest

from chainrule.cli.args.errors import UnknownOption
from chainrule.cli.main import main
from chainrule.errors import ConfigError, Setting

FLAGS = {"block_size": "--block-size", "lr": "--lr"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("train: ", Setting("lr"), " is -1 (must be positive)"), "train: --lr is -1 (must be positive)"),
        (("27 tokens, ", Setting("block_size"), " 128"), "27 tokens, --block-size 128"),
        (("loss nan (try a smaller ", Setting("lr"), " than 3)"), "loss nan (try a smaller --lr than 3)"),
        (("runs/block_size: no such directory",), "runs/block_size: no such directory"),
        (("block_size.txt: no such file",), "block_size.txt: no such file"),
        (("'block_size' is a list",), "'block_size' is a list"),
        (("the text is too short, lr apart",), "the text is too short, lr apart"),
        (("eval: ", Setting("vocab_size"), " is 3"), "eval: vocab_size is 3"),  # no flag of this command
    ],
)
def test_flags_stand_where_an_error_names_settings(parts: tuple[str, ...], expected: str) -> None:
    error = ConfigError(*parts)
    assert error.spelled(lambda name: FLAGS.get(name, name)) == expected
    assert str(error) == "".join(parts)


def test_what_was_meant() -> None:
    assert UnknownOption("--Minuts", ["--minutes", "--out"]).hint == "did you mean --minutes?"
    assert UnknownOption("--n-head", ["--n-embd", "--n-layer"]).hint == ""


def test_a_refused_setting_is_known_by_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError.of("GPT", {"n_embd": 128, "n_head": 3}, "heads must divide the width")
    assert (error.owner, error.settings) == ("GPT", {"n_embd": 128, "n_head": 3})
    with pytest.raises(SystemExit):
        main(["count", "gpt", "--n-head", "3"])
    said = "error: GPT: --n-embd is 128, --n-head 3 (heads must divide the width)"
    assert capsys.readouterr().err.startswith(said)
