"""The formats of a KV cache: how far logits move, the same bits however texts are read, shared and cut, its memory."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.errors import CacheFull, ConfigError
from chainrule.generate import Decoder, Translation, Translator, session
from chainrule.generate.engine.memory import PAGE, footprint
from chainrule.generate.engine.weights import CACHES
from chainrule.models import LanguageModel, Seq2Seq, Seq2SeqConfig, make
from tests.generate.engine.helpers import noisy

pytestmark = pytest.mark.skipif(not native.available(), reason="the extension was not built")

SIZES = {
    "gpt": {"n_layer": 2, "n_head": 4, "n_embd": 48, "block_size": 300},
    "llama": {"n_layer": 2, "n_head": 6, "n_kv_head": 2, "n_embd": 72, "n_hidden": 77, "block_size": 300},
    "neox": {
        "n_layer": 2,
        "n_head": 1,
        "n_embd": 80,
        "rotary": 1.0,
        "block_size": 300,
    },  # more than two panels
}
IDS = np.random.default_rng(2).integers(65, size=150)
SMALL = ("bf16", "int8")


def model_of(family: str) -> LanguageModel:
    return noisy(family, **SIZES[family])


@pytest.mark.parametrize("family", SIZES)
def test_fewer_bits_lose_more_and_not_much(family: str) -> None:
    model = model_of(family)
    exact = Decoder(model).prefill(IDS, every=True)
    loss = {f: np.abs(Decoder(model, cache=f).prefill(IDS, every=True) - exact) for f in CACHES}
    mean = {name: float(error.mean() / exact.std()) for name, error in loss.items()}
    assert mean["fp32"] == 0 < mean["bf16"] < 2**-8 and mean["bf16"] < mean["int8"] < 2**-6
    assert loss["bf16"].max() < 0.05 * exact.std() and loss["int8"].max() < 0.1 * exact.std()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("cache", SMALL)
@pytest.mark.parametrize("family", SIZES)
def test_the_same_bits_however_texts_arrive(family: str, cache: str) -> None:
    """At once or by token, alone or beside others; after a copy, which shares pages, and after going back."""
    decoder = Decoder(model_of(family), batch=4, cache=cache)
    want = np.concatenate([decoder.step([token], [0]) for token in IDS])
    parts = np.split(IDS, [1, 64, 70, 129])
    found = [decoder.prefill([part, IDS[: len(part)]], [1, 2], every=[True, False])[:-1] for part in parts]
    assert (np.concatenate(found) == want).all()
    decoder.copy(1, 3)
    assert decoder.pages.held == 3 + 3 + 3  # of the copy none, until it writes
    decoder.truncate(3, 100)
    assert (decoder.prefill([IDS[100:], IDS[:1]], [3, 1], every=[True, False])[:-1] == want[100:]).all()
    decoder.truncate(1, 150)
    decoder.reset(2)
    assert (decoder.prefill(IDS, [2], every=True) == want).all()


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("family", SIZES)
def test_the_formula_counts_its_memory(family: str, cache: str) -> None:
    model = model_of(family)
    assert Decoder(model, cache=cache).pages.bytes == PAGE * footprint(model, cache=cache).token


@pytest.mark.parametrize("cache", CACHES)
def test_texts_that_grow_side_by_side_and_leave_and_come(cache: str) -> None:
    """With too little memory for all: who waits is read again later, and nobody's bits change."""
    model = model_of("llama")
    page = PAGE * footprint(model, cache=cache).token
    alone = Decoder(model, cache=cache).prefill(IDS, every=True)
    decoder = Decoder(model, batch=8, cache_memory=18 * page, cache=cache)
    for start in range(0, 128, 16):
        rows = decoder.prefill([IDS[start : start + 16]] * 8, every=True).reshape(8, 16, -1)
        assert (rows == alone[start : start + 16]).all()
    with pytest.raises(CacheFull):
        decoder.prefill([IDS[128:130]] * 8)
    for leaving in (3, 5, 0):
        decoder.reset(leaving)
    assert (decoder.prefill([IDS[128:]] * 5, [1, 2, 4, 6, 7]) == alone[-1]).all()
    assert (decoder.prefill(IDS[:100], [5], every=True) == alone[:100]).all()


@pytest.mark.parametrize("cache", SMALL)
@pytest.mark.parametrize("isa", native.isas())
def test_every_isa_remembers_alike(isa: str, cache: str) -> None:
    model, best = model_of("llama"), native.isa()
    want = Decoder(model, cache=cache).prefill(IDS)
    try:
        assert native.kernels().set_isa(isa)
        found = Decoder(model, cache=cache).prefill(IDS)
    finally:
        native.kernels().set_isa(best)
    np.testing.assert_allclose(found, want, rtol=0, atol=0.05 * want.std())


@pytest.mark.parametrize("cache", CACHES)
def test_what_is_not_finite_is_not_lost(cache: str) -> None:
    model = model_of("gpt")
    model.wte.weight.data[3, 0] = np.nan  # type: ignore[attr-defined]
    decoder = Decoder(model, cache=cache)
    assert np.isfinite(decoder.prefill([1, 2])[:, :3]).all()
    assert np.isnan(decoder.step([3])).all() and np.isnan(decoder.step([2])).all()


def test_a_translation_has_one_too() -> None:
    cr.seed(0)
    model = Seq2Seq(Seq2SeqConfig(n_layer=2, n_head=3, n_embd=48, block_size=40, vocab_size=65)).eval()
    source, target = np.split(np.random.default_rng(3).integers(65, size=(6, 40)), 2)
    exact = Translation(model, source).read(target, every=True)
    for cache in SMALL:
        found = Translation(Translator(model, cache=cache), source).read(target, every=True)
        assert 0 < np.abs(found - exact).max() < 0.1 * exact.std()


def test_formats_that_are_not_there_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"cache: 'int4' \(must be one of fp32, bf16, int8\)"):
        Decoder(model_of("gpt"), cache="int4")
    with pytest.raises(ConfigError, match=r"cache is bf16 \(must be fp32: a recurrent model has no cache"):
        Decoder(make("lstm", vocab_size=65), cache="bf16")
    with cr.backend("reference"), pytest.raises(ConfigError, match=r"int8 \(must be fp32: NumPy runs this"):
        Decoder(model_of("gpt"), cache="int8")
    with pytest.raises(ConfigError, match=r"cache is int8, the model is .*must be fp32"):
        session(cr.models.NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4), cache="int8")
    with pytest.raises(ConfigError) as refused:
        Decoder(make("lstm", vocab_size=65), cache="bf16")
    assert refused.value.spelled(lambda name: f"--{name}").startswith("sample: --cache is bf16")
