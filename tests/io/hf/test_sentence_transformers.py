"""Directories of sentence-transformers: what is read, written and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.errors import FormatError
from chainrule.io import load_pretrained, save_pretrained
from chainrule.models import BERTEmbedder, make

SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_hidden": 12, "block_size": 9, "vocab_size": 11}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cr.seed(0)
    save_pretrained(
        make("bert-embedder", **SIZES, pooling="cls", normalize=False, max_length=7), None, tmp_path / "x"
    )
    return tmp_path / "x"


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_the_files_are_those_that_it_reads(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    assert [(m["idx"], m["path"], m["type"].split(".")[-1]) for m in modules] == [
        (0, "", "Transformer"),
        (1, "1_Pooling", "Pooling"),
    ]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert pooling["word_embedding_dimension"] == 8
    assert {name for name, on in pooling.items() if on is True} == {"pooling_mode_cls_token"}
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 7


def test_the_files_alone_say_how(folder: Path) -> None:
    change(folder / "config.json", chainrule=None)
    model, _ = load_pretrained(folder)
    assert isinstance(model, BERTEmbedder)
    assert (model.config.pooling, model.config.normalize, model.config.max_length) == ("cls", False, 7)


def test_more_tokens_than_there_are_positions(folder: Path) -> None:
    change(folder / "config.json", chainrule=None)
    change(folder / "sentence_bert_config.json", max_seq_length=512)
    assert load_pretrained(folder)[0].config.max_length == 9


@pytest.mark.parametrize("mode", ["mean", "max"])
def test_pooling_by_its_name(folder: Path, mode: str) -> None:
    change(folder / "config.json", chainrule=None)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": mode}))
    assert load_pretrained(folder)[0].config.pooling == mode


def module(kind: str, path: str) -> dict[str, Any]:
    return {"idx": 0, "name": "0", "path": path, "type": f"sentence_transformers.models.{kind}"}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", [module("Transformer", ""), module("Dense", "2_Dense")], "asks for 'Dense'"),
        ("modules.json", [module("Pooling", "1_Pooling")], "begins with Pooling"),
        (
            "modules.json",
            [module("Transformer", "0_T"), module("Pooling", "1_Pooling")],
            "must be a Transformer in",
        ),
        (
            "modules.json",
            [module("Transformer", ""), module("Pooling", "../x")],
            "names the directory '../x'",
        ),
        ("modules.json", {"a": 1}, "modules.json: holds a dict"),
        ("modules.json", [1], "holds an int"),
        ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, "asks for pooling_mode_lasttoken"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
            "pooling_mode_cls_token and pooling_mode_max_tokens",
        ),
        ("1_Pooling/config.json", {}, "asks for no pooling"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case is True"),
        (
            "config_sentence_transformers.json",
            {"default_prompt_name": "query"},
            "default_prompt_name is 'query'",
        ),
    ],
)
def test_what_is_not_supported_is_named(folder: Path, file: str, content: Any, message: str) -> None:
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(FormatError, match=message) as refused:
        load_pretrained(folder)
    assert str(folder) in str(refused.value)


def test_broken_files_are_one_line(folder: Path) -> None:
    (folder / "modules.json").write_text("[{]")
    with pytest.raises(FormatError, match=r"modules\.json: is not JSON"):
        load_pretrained(folder)
