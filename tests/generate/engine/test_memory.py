"""The formula of a decoder's memory is the bytes that it holds, and a model to decode holds no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import io, native
from chainrule.autograd.stored import StoredParam
from chainrule.errors import FormatError
from chainrule.generate import Decoder, score
from chainrule.generate.engine.memory import PAGE, footprint
from chainrule.generate.engine.plan import Plan
from chainrule.generate.engine.weights import FORMATS
from chainrule.io.loading import open_model
from chainrule.io.opened import is_stored
from chainrule.models import GPT, GPTConfig, LanguageModel, make
from chainrule.text import CharTokenizer

SIZES: dict[str, dict[str, Any]] = {
    "gpt": {"n_layer": 2, "n_head": 4, "n_embd": 48, "block_size": 70},
    "llama": {"n_layer": 2, "n_head": 6, "n_kv_head": 2, "n_embd": 72, "n_hidden": 77, "block_size": 70},
    "neox": {"n_layer": 2, "n_head": 3, "n_embd": 48, "rotary": 1.0, "block_size": 70},
    "rnn": {"n_layer": 2, "n_embd": 33, "n_hidden": 40, "block_size": 7},
    "gru": {"n_layer": 2, "n_embd": 33, "n_hidden": 40, "block_size": 7},
    "lstm": {"n_layer": 2, "n_embd": 33, "n_hidden": 40, "block_size": 7},
}
TEXT = "the cat sat on the mat"
TOKENIZER = CharTokenizer.train(TEXT)


def held(calls: Any) -> int:
    """Bytes of the arrays that a program is made of; those that several steps share count once."""
    found: dict[int, int] = {}
    for _, arguments in calls:
        found |= {id(x): x.nbytes for x in arguments if isinstance(x, np.ndarray)}
    return sum(found.values())


@pytest.mark.skipif(not native.available(), reason="the extension was not built")
@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("family", SIZES)
def test_the_formula_counts_what_a_decoder_holds(family: str, weights: str) -> None:
    model = make(family, **SIZES[family], vocab_size=65)
    found = footprint(type(model).abstract(model.config), weights)
    compiler = Plan(model, weights)._compiler
    assert compiler is not None
    slack = 4 * 32 * len(compiler.calls)  # biases are padded to whole panels
    assert found.weights <= held(compiler.calls) <= found.weights + slack
    assert (found.token > 0) == (family in ("gpt", "llama", "neox"))
    assert (found.sequence > 0) == (family in ("rnn", "gru", "lstm"))
    assert found.total(2, 10) == found.weights + 2 * found.sequence + 2 * PAGE * found.token
    pages = Decoder(model, weights).pages
    assert pages.positions == PAGE and pages.bytes == PAGE * found.token


def saved(folder: Path, family: str, form: str) -> Path:
    cr.seed(3)
    model = make(family, **SIZES[family], vocab_size=TOKENIZER.vocab_size)
    path = folder / ("model.gguf" if form == "gguf" else "model")
    if form == "gguf":
        io.gguf.write(model, TOKENIZER, path, weights="q8_0")
    else:
        io.save_pretrained(model, TOKENIZER, path)
    return path


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize(
    ("family", "form"), [*((family, "safetensors") for family in SIZES), ("gpt", "gguf"), ("llama", "gguf")]
)
def test_weights_in_a_file_decode_with_the_bits_of_a_model_in_memory(
    tmp_path: Path, family: str, form: str, weights: str
) -> None:
    path = saved(tmp_path, family, form)
    stored, (loaded, _) = open_model(path).to_decode(), io.load(path)
    assert isinstance(stored, LanguageModel) and isinstance(loaded, LanguageModel)
    assert is_stored(stored) and not is_stored(loaded)
    ids = TOKENIZER.encode(TEXT)
    assert (Decoder(stored, weights).prefill(ids) == Decoder(loaded, weights).prefill(ids)).all()
    assert all(isinstance(p, StoredParam) and p._own is None for _, p in stored.named_parameters())
    assert (score(stored, ids) == score(loaded, ids)).all()  # a forward pass reads them too


def test_a_stored_model_that_learns_has_values_of_its_own(tmp_path: Path) -> None:
    path = saved(tmp_path, "gpt", "safetensors")
    stored, (loaded, _) = open_model(path).to_decode(), io.load(path)
    with pytest.raises(ValueError, match="read-only"):
        next(iter(stored.arrays().values()))[...] = 0
    ids = TOKENIZER.encode(TEXT)[None]
    for model in (stored, loaded):
        optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
        model.loss(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step()
    for (name, one), (_, other) in zip(stored.named_parameters(), loaded.named_parameters(), strict=True):
        assert (one.array == other.array).all(), name


def test_other_models_are_loaded(tmp_path: Path) -> None:
    config = cr.models.BERTConfig(
        n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=TOKENIZER.vocab_size
    )
    io.save_pretrained(cr.models.BERT(config), TOKENIZER, tmp_path / "bert")
    assert not is_stored(open_model(tmp_path / "bert").to_decode())


def test_weights_that_are_not_finite_are_refused_when_they_are_read(tmp_path: Path) -> None:
    model = GPT(GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=TOKENIZER.vocab_size))
    model.h[0].mlp.c_fc.weight.data[3, 5] = np.nan
    io.save_pretrained(model, TOKENIZER, tmp_path / "model")
    with pytest.raises(FormatError, match=r"mlp\.c_fc\.weight: 1 of 1,024 values are NaN"):
        Decoder(open_model(tmp_path / "model").to_decode())  # type: ignore[arg-type]
