"""What is installed, and the public names other people rely on."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import metadata, resources

import pytest

import chainrule as cr


def test_the_version_has_one_source() -> None:
    assert metadata.version("chainrule") == cr.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", cr.__version__)


def test_only_the_package_is_installed() -> None:
    files = metadata.files("chainrule")
    assert files
    tops = {file.parts[0] for file in files if ".." not in file.parts and file.parts[0] != "__pycache__"}
    strangers = {top for top in tops if not re.match(r"chainrule$|chainrule-.*\.dist-info$|_editable_", top)}
    assert not strangers
    assert [f.name for f in files if ".." in f.parts] == ["chainrule"]  # the command


def test_the_package_is_typed() -> None:
    assert resources.files("chainrule").joinpath("py.typed").is_file()


def test_the_base_install_is_small() -> None:
    requires = [r for r in metadata.requires("chainrule") or [] if "extra ==" not in r]
    assert {re.split(r"[<>=~ ]", r)[0] for r in requires} == {"numpy", "rich", "threadpoolctl"}


def test_the_command_is_there() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="chainrule")
    assert callable(command.load())


PUBLIC = [
    "Tensor",
    "no_grad",
    "backend",
    "gradcheck",
    "seed",
    "set_threads",
    "ops",
    "nn",
    "optim",
    "models.GPT",
    "models.GPTConfig",
    "models.Llama",
    "models.LlamaConfig",
    "generate.Decoder",
    "scalar.Value",
    "ChainruleError",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_exist_and_are_documented(name: str) -> None:
    thing = cr
    for part in name.split("."):
        assert part in dir(thing)
        thing = getattr(thing, part)
    doc = inspect.getdoc(thing)
    assert doc and len(doc.split()) >= 4


def test_gpt_config_has_the_promised_fields() -> None:
    fields = {field.name for field in dataclasses.fields(cr.models.GPTConfig)}
    assert {"n_layer", "n_head", "n_embd", "block_size", "vocab_size", "dropout", "bias"} <= fields


def test_every_error_is_a_chainrule_error() -> None:
    names = ["Shape", "Graph", "Gradient", "Data", "Config", "Checkpoint", "Format"]
    assert all(issubclass(getattr(cr, f"{name}Error"), cr.ChainruleError) for name in names)
