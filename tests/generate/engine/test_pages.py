"""Pages of the KV cache: taken on demand, shared by what begins alike, and never more than the memory that is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chainrule import native
from chainrule.errors import CacheFull, ConfigError
from chainrule.generate import Decoder
from chainrule.generate.engine.plan import Plan
from chainrule.models import Llama, LlamaConfig, make
from tests.generate.engine.test_decoder import model_of, with_both

pytestmark = pytest.mark.skipif(not native.available(), reason="the extension was not built")

CONFIG = LlamaConfig(
    n_layer=2, n_head=4, n_kv_head=2, n_embd=32, n_hidden=40, block_size=400, vocab_size=50, head_dim=12
)
MODEL = Llama(CONFIG).eval()
PAGE = Decoder(MODEL).pages.positions
BYTES = (
    4 * 2 * 2 * (12 + 32) * PAGE
)  # layers, heads, keys and values of a head: (D, positions) and whole panels
IDS = np.random.default_rng(0).integers(50, size=400)


def alone(ids: Any, model: Any = MODEL) -> np.ndarray:
    """Logits after `ids` of a decoder that reads nothing else."""
    logits: np.ndarray = Decoder(model).prefill(ids)[0]
    return logits


def test_pages_are_taken_as_a_text_grows_and_given_back() -> None:
    decoder = Decoder(MODEL, batch=2, cache_memory=5 * BYTES)
    assert decoder.pages == (0, 5, PAGE, BYTES)
    decoder.prefill([IDS[:1], IDS[: PAGE + 1]])
    assert decoder.pages[:2] == (3, 2)
    decoder.prefill(IDS[1:PAGE], [0])
    assert decoder.pages.held == 3
    decoder.step([1], [0])
    assert decoder.pages.held == 4
    decoder.truncate(0, PAGE)
    assert decoder.pages.held == 3
    decoder.truncate(0, PAGE - 1)
    assert decoder.pages.held == 3
    decoder.reset(1)
    assert decoder.pages.held == 1
    decoder.reset()
    assert decoder.pages[:2] == (0, 5)
    assert Decoder(MODEL).pages.free is None


def test_texts_that_grow_side_by_side_have_pages_that_follow_each_other() -> None:
    """Page by page in turn: without care the pages of four texts would alternate, and none follow another."""
    texts, count = 4, 16
    engine = Plan(Llama(replace(CONFIG, block_size=count * PAGE))).open(texts)
    logits, row = np.empty((texts, 50), np.float32), np.arange(texts)
    for page in range(count):
        tokens = np.tile(IDS[:PAGE], texts).astype(np.int32)
        engine.run(logits, tokens, row, np.full(texts, PAGE), np.full(texts, page * PAGE))
    numbers = [engine.page_numbers(text) for text in range(texts)]  # type: ignore[attr-defined]
    assert len({page for text in numbers for page in text}) == texts * count
    for text in numbers:
        assert (np.diff(text) == 1).sum() >= count // 2, numbers
        assert (np.diff(text[-4:]) == 1).all(), "more pages, longer runs"
    with pytest.raises(ValueError, match="no such sequence"):
        engine.page_numbers(texts)  # type: ignore[attr-defined]


@pytest.mark.parametrize("length", [1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 31])
def test_copies_share_pages_until_one_writes_into_them(length: int) -> None:
    decoder, whole = Decoder(MODEL, batch=3), -(-length // PAGE)
    decoder.prefill(IDS[:length], [0])
    decoder.copy(0, 1)
    decoder.copy(1, 2)
    assert decoder.pages.held == whole and decoder.lengths.tolist() == [length] * 3
    logits = decoder.step([5], [1])
    assert decoder.pages.held == whole + 1  # of the last page, or a new one
    assert (logits[0] == alone([*IDS[:length], 5])).all()
    both = decoder.prefill([[7, 8], [9, 10]], [0, 2])
    assert (both[0] == alone([*IDS[:length], 7, 8])).all() and (
        both[1] == alone([*IDS[:length], 9, 10])
    ).all()
    assert (decoder.step([6], [1])[0] == alone([*IDS[:length], 5, 6])).all()
    for sequence in range(3):
        decoder.reset(sequence)
    assert decoder.pages.held == 0


def test_a_copy_goes_back_and_leaves_the_first_as_it_is() -> None:
    decoder = Decoder(MODEL, batch=2)
    decoder.prefill(IDS[:150], [0])
    decoder.copy(0, 1)
    decoder.truncate(1, 70)
    decoder.prefill(IDS[:90], [1])
    assert (decoder.step([3], [0])[0] == alone([*IDS[:150], 3])).all()
    assert (decoder.step([3], [1])[0] == alone([*IDS[:70], *IDS[:90], 3])).all()


def test_a_full_cache_is_said_before_anything_is_computed() -> None:
    decoder = Decoder(MODEL, batch=3, cache_memory=4 * BYTES)
    decoder.prefill([IDS[:PAGE], IDS[: 2 * PAGE]], [0, 1])
    message = r"cache is full, 2 pages are needed, 1 of 4 are free \(wait until a sequence ends, or give more"
    with pytest.raises(CacheFull, match=message):
        decoder.prefill([[1], [2]], [0, 2])
    assert decoder.lengths.tolist() == [PAGE, 2 * PAGE, 0] and decoder.pages.held == 3
    assert (decoder.step([4], [0])[0] == alone([*IDS[:PAGE], 4])).all()
    with pytest.raises(CacheFull):
        decoder.step([4], [1])
    decoder.reset(0)
    assert (decoder.step([4], [1])[0] == alone([*IDS[: 2 * PAGE], 4])).all()


def test_a_shared_page_needs_another_when_it_is_written_to() -> None:
    decoder = Decoder(MODEL, batch=2, cache_memory=BYTES)
    decoder.prefill(IDS[:9], [0])
    decoder.copy(0, 1)
    with pytest.raises(CacheFull, match="1 pages are needed, 0 of 1"):
        decoder.step([4], [1])
    decoder.reset(0)
    assert (decoder.step([4], [1])[0] == alone([*IDS[:9], 4])).all()


@pytest.mark.parametrize("writers", [2, 3])
def test_the_last_writer_of_a_shared_page_keeps_it(writers: int) -> None:
    """So that as many pages as writers are enough when all of them write at once."""
    decoder = Decoder(MODEL, batch=writers, cache_memory=writers * BYTES)
    decoder.prefill(IDS[:10], [0])
    for copy in range(1, writers):
        decoder.copy(0, copy)
    logits = decoder.step(range(writers))
    assert decoder.pages[:2] == (writers, 0)
    for i in range(writers):
        assert (logits[i] == alone([*IDS[:10], i])).all()


def test_memory_of_less_than_a_page_is_no_memory_rather_than_any() -> None:
    engine = Plan(MODEL).open(1, BYTES - 1)
    one, result = np.ones(1, np.int64), np.empty((1, 50), np.float32)
    with pytest.raises(native.kernels().OutOfPages, match="1 pages are needed, 0 of 0 are free"):
        engine.run(result, np.ones(1, np.int32), 0 * one, one, 0 * one)


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_events_gives_the_bits_of_each_text_alone(seed: int) -> None:
    rng, batch = np.random.default_rng(seed), 5
    decoder = Decoder(MODEL, batch=batch, cache_memory=9 * BYTES)
    texts: list[list[int]] = [[] for _ in range(batch)]
    full = 0
    for _ in range(120):
        one, other = (int(i) for i in rng.choice(batch, 2, replace=False))
        match rng.choice(["read", "read", "read", "copy", "truncate", "reset"]):
            case "read":
                new = [rng.integers(50, size=rng.integers(1, 90)).tolist() for _ in range(2)]
                if max(len(texts[one]) + len(new[0]), len(texts[other]) + len(new[1])) > 400:
                    continue
                try:
                    logits = decoder.prefill(new, [one, other])
                except CacheFull:
                    full += 1
                    continue
                for i, sequence in enumerate((one, other)):
                    texts[sequence] += new[i]
                    assert (logits[i] == alone(texts[sequence])).all()
            case "copy":
                decoder.copy(one, other)
                texts[other] = list(texts[one])
            case "truncate":
                length = int(rng.integers(len(texts[one]) + 1))
                decoder.truncate(one, length)
                del texts[one][length:]
            case "reset":
                decoder.reset(one)
                texts[one] = []
        assert decoder.lengths.tolist() == list(map(len, texts)) and decoder.pages.held <= 9
    assert full
    decoder.reset()
    assert decoder.pages.held == 0


def test_what_stands_before_a_text_is_shared_with_it() -> None:
    """Prefixes of unlike lengths in the layers, and a soft prompt: a page holds other positions in each layer."""
    model = model_of("llama")
    with_both(model)
    decoder = Decoder(model, batch=2)
    decoder.prefill(IDS[:18], [0])
    decoder.copy(0, 1)
    decoder.prefill([IDS[:9], IDS[9:30]], [0, 1])
    decoder.truncate(1, 12)
    assert (decoder.step([1], [0])[0] == alone([*IDS[:18], *IDS[:9], 1], model)).all()
    assert (decoder.step([1], [1])[0] == alone([*IDS[:12], 1], model)).all()


def test_a_recurrent_model_and_numpy_have_no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = Decoder(make("lstm", vocab_size=50), cache_memory=1)
    decoder.prefill([1, 2])
    assert decoder.pages == (0, None, PAGE, 0)
    monkeypatch.setattr(native, "available", lambda: False)
    assert Decoder(MODEL).pages == (0, None, 0, 0)
    with pytest.raises(
        ConfigError, match=r"cache_memory is 9,000 bytes \(must be left out: only the C\+\+ extension"
    ):
        Decoder(MODEL, cache_memory=9000)


@pytest.mark.parametrize("change", [lambda model: None, with_both])
def test_what_one_sequence_may_hold_fits_and_no_more(change: Any) -> None:
    """Also if something stands before it, which takes positions too."""
    model = make("llama", n_layer=2, n_head=4, n_kv_head=2, n_embd=32, block_size=400, vocab_size=50)
    change(model)
    decoder = Decoder(model, cache_memory=2 * Decoder(model).pages.bytes)
    ids = np.resize(IDS, decoder.most_tokens + 1)
    decoder.prefill(ids[:-1])
    with pytest.raises(CacheFull):
        decoder.step(ids[-1:])
    assert decoder.most_tokens < decoder.context == Decoder(model).most_tokens


@pytest.mark.parametrize("value", [0, -1, 1.5, BYTES - 1])
def test_impossible_memory_is_refused(value: Any) -> None:
    rule = "at least a page of" if value == BYTES - 1 else "must be an integer, at least 1"
    with pytest.raises(ConfigError, match=rule):
        Decoder(MODEL, cache_memory=value)
