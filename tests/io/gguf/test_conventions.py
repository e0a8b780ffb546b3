"""Special tokens, chat template and generation defaults in GGUF's settings, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.errors import FormatError
from chainrule.io import gguf, load
from chainrule.io.gguf import file
from chainrule.io.gguf.blocks import F32
from chainrule.text import Conventions
from tests.io.hf.test_conventions import FULL, model, tokenizer

NOTHING = ("bos_token_id", "eos_token_id", "padding_token_id", "unknown_token_id")


def rewritten(path: Path, drop: tuple[str, ...] = (), **settings: Any) -> Conventions:
    """The conventions in a file of ours with other settings."""
    gguf.write(model(), tokenizer(), path)
    metadata, tensors = file.read(path)
    arrays = {name: (F32, stored.array()) for name, stored in tensors.items()}
    path.unlink()
    without = {"chainrule.eos_token_ids", *(f"tokenizer.ggml.{name}" for name in drop)}
    kept = {name: value for name, value in metadata.items() if name not in without}
    names = {name: name if "." in name else f"tokenizer.ggml.{name}" for name in settings}
    file.write(path, kept | {names[name]: value for name, value in settings.items()}, arrays)
    return load(path)[1].conventions


@pytest.mark.parametrize("given", [FULL, Conventions(), Conventions(eos=(257, 258, 259, 260))])
def test_what_is_written_comes_back(given: Conventions, tmp_path: Path) -> None:
    gguf.write(model(), tokenizer(given), tmp_path / "x.gguf")
    if not given.eos:  # no list of ours: the tokens at which llama.cpp ends count
        given = Conventions(eos=(258, 257))
    assert load(tmp_path / "x.gguf")[1].conventions == given


def test_llama_cpp_finds_its_names(tmp_path: Path) -> None:
    gguf.write(model(), tokenizer(FULL), tmp_path / "x.gguf")
    metadata, _ = file.read(tmp_path / "x.gguf")
    ids = {
        name: metadata[f"tokenizer.ggml.{name}_token_id"]
        for name in ("bos", "eos", "eot", "padding", "unknown")
    }
    assert ids == {"bos": 256, "eos": 258, "eot": 257, "padding": 259, "unknown": 260}
    assert metadata["tokenizer.ggml.add_bos_token"] is True
    assert metadata["tokenizer.chat_template"] == FULL.chat_template
    assert metadata["general.sampling.temp"] == 0.6 and metadata["general.sampling.top_k"] == 20


def test_ends_are_also_found_by_name(tmp_path: Path) -> None:
    """llama.cpp ends a text at <|im_end|> though eos_token_id is another."""
    assert rewritten(tmp_path / "x.gguf", eos_token_id=257).eos == (257, 258)
    assert rewritten(tmp_path / "y.gguf", drop=NOTHING).eos == (258, 257)
    assert rewritten(tmp_path / "z.gguf", eos_token_id=257, eom_token_id=260).eos == (257, 260, 258)


def test_bos_stands_first_by_the_kind_of_tokenizer(tmp_path: Path) -> None:
    assert not rewritten(tmp_path / "x.gguf", drop=("add_bos_token",)).add_bos
    assert rewritten(tmp_path / "y.gguf", drop=("add_bos_token",), pre="llama-bpe").add_bos
    assert not rewritten(tmp_path / "z.gguf", add_bos_token=False, pre="llama-bpe").add_bos


def test_a_token_that_is_not_there(tmp_path: Path) -> None:
    found = rewritten(tmp_path / "x.gguf", padding_token_id=2**32 - 1, unknown_token_id=999)
    assert found.pad is None and found.unk is None


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"bos_token_id": "<s>"}, "bos_token_id is '<s>' (must be a natural number"),
        ({"tokenizer.chat_template": 3}, "tokenizer.chat_template is an int (must be a text)"),
        ({"general.sampling.temp": "hot"}, "general.sampling.temp is 'hot' (must be a number)"),
        ({"chainrule.eos_token_ids": "257"}, "chainrule.eos_token_ids is a str (must be a list of ids)"),
        ({"padding_token_id": np.zeros(2, np.int32)}, "padding_token_id is array([0, 0], dtype=int32)"),
    ],
)
def test_wrong_values_are_refused_in_one_line(settings: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        rewritten(tmp_path / "x.gguf", **settings)
    assert rule in str(error.value)
