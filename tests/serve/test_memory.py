"""Memory of a model that is served: what it says, and what it keeps to."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule import native
from chainrule.errors import ConfigError
from chainrule.generate.engine.memory import footprint
from chainrule.generate.engine.weights import CACHES
from chainrule.serve.memory import Memory, shares
from chainrule.serve.models import Served
from chainrule.text import CharTokenizer
from tests.generate.test_requests import model_of
from tests.serve.conftest import LETTERS, Serving, char_model, writing_model

TOKEN = 4 * 2 * (16 + 32)  # bytes of a token in the cache of the model of these tests: 2 heads of 16
PAGE = 64 * TOKEN

pytestmark = pytest.mark.skipif(not native.available(), reason="the extension was not built")


def test_memory_is_said_in_megabytes() -> None:
    assert (
        str(Memory(3 << 19, 1 << 30)) == "1.5 MB of weights, 1,024.0 MB of caches at most, 1,025.5 MB in all"
    )


def test_caches_grow_to_what_the_slots_need_or_to_the_limit() -> None:
    memory, limited = (char_model(slots=3, cache_memory=m).memory for m in (None, 5 * PAGE))
    assert memory is not None and limited is not None
    assert memory.caches == 3 * 2048 * TOKEN and limited == (memory.weights, 5 * PAGE)


def test_a_draft_has_its_share_of_the_memory() -> None:
    tokenizer = CharTokenizer(LETTERS)
    model, draft = (writing_model(tokenizer.vocab_size, 512, seed) for seed in (1, 2))
    served = Served("x", model, tokenizer, slots=2, cache_memory=6 * PAGE, draft=draft)
    writer = served.writer
    assert writer is not None and writer.drafter is not None and served.memory is not None
    assert [c.decoder.pages.free for c in (writer.caches, writer.drafter.caches)] == [3, 3]  # type: ignore[attr-defined]
    assert served.memory.caches == 6 * PAGE and served.context == 3 * 64


@pytest.mark.parametrize("cache", CACHES)
def test_a_model_and_its_draft_hold_as_many_tokens(cache: str) -> None:
    model, draft = (
        cr.models.GPT(cr.models.GPTConfig(1, 2, width, block_size=64, vocab_size=9)) for width in (128, 16)
    )
    tokens = [
        share / footprint(each, cache=cache).token
        for share, each in zip(shares(1 << 20, model, draft, cache), (model, draft), strict=True)
    ]
    assert tokens[0] == pytest.approx(tokens[1], rel=0.01)


@pytest.mark.parametrize(
    ("model", "draft"), [("gpt", "lstm"), ("lstm", "gpt"), ("gpt", "bigram"), ("bigram", "gpt")]
)
def test_a_model_or_draft_that_cannot_go_back_is_refused(model: str, draft: str) -> None:
    with pytest.raises(ConfigError, match=r"must be (for )?a transformer"):
        Served("x", model_of(model), char_model().tokenizer, cache_memory=1 << 20, draft=model_of(draft))


def test_a_draft_that_does_not_write_is_refused() -> None:
    bert = cr.models.make("bert", n_layer=1, n_head=2, n_embd=16, vocab_size=10)
    with pytest.raises(
        ConfigError, match=r"^serve: a draft that is a BERTPretraining \(must be a language model"
    ):
        char_model(draft=bert)


def test_a_text_that_never_fits_the_memory_is_refused_at_once() -> None:
    serving = Serving([char_model(cache_memory=2 * PAGE)])
    try:
        error = serving.refused("/v1/completions", prompt="a" * 100, max_tokens=29)
        assert error["code"] == "context_length_exceeded" and "is 128 tokens" in error["message"]
        assert len(serving.complete(prompt="a" * 100, max_tokens=28)["choices"]) == 1
        assert serving.client.get("/v1/models/tiny").json()["max_model_len"] == 128
    finally:
        serving.close()


def test_memory_that_cannot_be_limited_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "available", lambda: False)
    with pytest.raises(ConfigError, match="must be left out: only the C"):
        char_model(cache_memory=2 * PAGE)
