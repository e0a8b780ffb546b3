"""A model whose weights are still in its file: they are float32, whatever the file has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import FormatError
from chainrule.io import convert, load, safetensors, save_pretrained
from chainrule.io.loading import open_model
from chainrule.io.opened import finite, lazy_arrays
from chainrule.models import make
from chainrule.text import CharTokenizer

SIZES: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 7, "vocab_size": 11}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("gpt", {}),
    "gpt without biases": ("gpt", {"bias": False}),
    "llama": ("llama", {}),
    "phi3": ("llama", {"variant": "phi3"}),
    "neox": ("neox", {"n_embd": 16, "rotary": 0.5}),
    "bert": ("bert", {"norm": "post", "next_sentence": True}),
    "roberta": ("bert", {"norm": "post", "variant": "roberta", "n_segments": 1}),
    "marian": ("seq2seq", {"norm": "post"}),
    "pegasus": ("seq2seq", {"norm": "pre"}),
    "bart": ("seq2seq", {"norm": "post", "positions": "learned", "embedding_norm": True}),
    "t5": ("t5", {"target_start": "pad"}),
    "our own form": ("seq2seq", {"positions": "learned"}),
}


def stored(folder: Path, name: str, dtype: Any) -> Path:
    """A directory with a model whose weights are of this type."""
    family, more = MODELS[name]
    cr.seed(0)
    save_pretrained(make(family, **SIZES | more), CharTokenizer("abcdefghijk"), folder)
    path = folder / "model.safetensors"
    arrays = {name: np.asarray(array) for name, array in safetensors.read(path).items()}
    path.write_bytes(safetensors.encode({name: array.astype(dtype) for name, array in arrays.items()}))
    return folder


@pytest.mark.parametrize("dtype", ["f2", "f8"])
@pytest.mark.parametrize("name", MODELS)
def test_it_is_written_as_float32(name: str, dtype: str, tmp_path: Path) -> None:
    folder = stored(tmp_path / "x", name, dtype)
    convert(folder, tmp_path / "y")
    kinds = {array.dtype for array in safetensors.read(tmp_path / "y" / "model.safetensors").values()}
    assert kinds == {np.dtype("f4")}
    assert json.loads((tmp_path / "y" / "config.json").read_text()).get("dtype", "float32") == "float32"
    there, here = load(folder)[0].arrays(), load(tmp_path / "y")[0].arrays()
    assert there.keys() == here.keys() and all((there[each] == here[each]).all() for each in there)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "?"])
@pytest.mark.parametrize("name", ["gpt", "llama", "our own form"])
def test_integers_are_refused_by_name(name: str, dtype: str, tmp_path: Path) -> None:
    folder = stored(tmp_path / "x", name, dtype)
    for work in (load, lambda path: convert(path, tmp_path / "y")):
        with pytest.raises(
            FormatError, match=rf"(weight|bias) is of {np.dtype(dtype)} \(must be floats"
        ) as error:
            work(folder)
        assert "\n" not in str(error.value)
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize(("name", "fused"), [("neox", "query_key_value.weight"), ("phi3", "qkv_proj.weight")])
def test_integers_in_a_fused_matrix_are_refused_too(name: str, fused: str, tmp_path: Path) -> None:
    folder = stored(tmp_path / "x", name, "f4")
    path = folder / "model.safetensors"
    arrays = safetensors.read(path)
    whole = {name: array.astype("i1") if name.endswith(fused) else array for name, array in arrays.items()}
    assert {array.dtype.char for array in whole.values()} == {"b", "f"}
    path.write_bytes(safetensors.encode(whole))
    with pytest.raises(FormatError, match=r"weight is of int8 \(must be floats"):
        load(folder)


@pytest.mark.parametrize("name", ["gpt", "phi3", "t5", "our own form"])
def test_weights_that_are_not_finite_are_not_written(name: str, tmp_path: Path) -> None:
    folder = stored(tmp_path / "x", name, "f4")
    path = folder / "model.safetensors"
    arrays = {each: np.array(array) for each, array in safetensors.read(path).items()}
    wrong = next(each for each, array in arrays.items() if array.ndim == 2)
    arrays[wrong][0, :3] = (np.nan, np.inf, -np.inf)
    path.write_bytes(safetensors.encode(arrays))
    with pytest.raises(
        FormatError, match=r"x: \S+: [123] of \d+ values are NaN or infinite \(must be"
    ) as error:
        convert(folder, tmp_path / "y")
    assert "\n" not in str(error.value) and [each.name for each in tmp_path.iterdir()] == ["x"]


def test_only_what_is_not_finite_is_refused() -> None:
    """Also where a sum is not finite though all values are."""
    huge = np.full((2, 3), 3e38, np.float32)
    assert (
        finite("w", huge) is huge
        and finite("w", huge[:, ::2]) is not None
        and finite("w", huge[:0]).size == 0
    )
    for wrong in (np.nan, np.inf, -np.inf):
        broken = np.zeros((2, 3), np.float32)
        broken[1, 1] = wrong
        with pytest.raises(FormatError, match="w: 1 of 6 values are NaN or infinite"):
            finite("w", broken)


def test_a_model_that_is_read_later_lets_its_arrays_go(tmp_path: Path) -> None:
    """Each reading gives the same values, none of which can be written to, and none is kept."""
    folder = stored(tmp_path / "x", "llama", "f4")
    model, expected = open_model(folder).to_decode(), load(folder)[0].arrays()
    found = lazy_arrays(model)
    assert found.keys() == expected.keys()
    for _ in range(2):
        for name, array in found.items():
            np.testing.assert_array_equal(np.asarray(array), expected[name])
    with pytest.raises(ValueError, match="read-only"):
        next(param for _, param in model.named_parameters()).array[...] = 0
