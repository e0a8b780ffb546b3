"""Sessions: however a family remembers, it writes what a plain forward pass over the same text would."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ConfigError
from chainrule.generate import Sampling, choose, generate
from chainrule.generate.session import DecoderSession, PrefixCache, WindowSession, session
from chainrule.models import FAMILIES, LanguageModel, make
from chainrule.random import generator

SIZE = {
    "n_layer": 2, "n_head": 2, "n_kv_head": 1, "n_embd": 16, "n_hidden": 20, "block_size": 12, "vocab_size": 10,
    "dropout": 0.5,
}  # fmt: skip


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    cr.seed(3)
    known = {f.name for f in fields(FAMILIES[request.param].config)}
    size: dict[str, Any] = {name: value for name, value in SIZE.items() if name in known}
    made = make(request.param, **size)
    made.load({name: 3 * value for name, value in made.state().items()})  # distinct probabilities
    return made


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_is_remembered_changes_no_token(model: LanguageModel, temperature: float) -> None:
    written = generate(model, [3, 1], 10, temperature=temperature, seed=7)
    text = [3, 1]
    assert model.training
    model.eval()
    for position, token in enumerate(written):
        logits = model(np.array([text])).numpy()[0, -1]
        rng = generator("sample", position, seed=7)
        assert token == choose(logits, rng, Sampling(temperature=temperature))
        text.append(int(token))


def test_the_same_seed_writes_the_same_and_the_context_never_exceeds_the_block(model: LanguageModel) -> None:
    one = generate(model, [1, 2], 40, temperature=1.0, seed=4)
    assert (generate(model, [1, 2], 40, temperature=1.0, seed=4) == one).all()
    assert (generate(model, [1, 2], 40, temperature=1.0, seed=5) != one).any()
    text = WindowSession(model)
    for token in one:
        text.read([[int(token)]])
        assert len(text.seen[0]) <= 12
    assert text.seen == [one[-12:].tolist()]


def test_each_family_has_its_session() -> None:
    found = {name: type(session(make(name, vocab_size=5))) for name in FAMILIES}
    assert {name: found[name] for name in ("gpt", "llama", "rnn", "gru", "lstm")} == {
        "gpt": DecoderSession, "llama": DecoderSession, "rnn": DecoderSession, "gru": DecoderSession,
        "lstm": DecoderSession,
    }  # fmt: skip
    assert found["mlp"] is found["ngram"] is WindowSession
    with pytest.raises(ConfigError, match="got Linear"):
        session(cr.nn.Linear(2, 2))
    with pytest.raises(ConfigError, match=r"weights is int8, the model is a MLPLM \(must be fp32"):
        session(make("mlp", vocab_size=5), "int8")


def test_a_session_keeps_the_weights_it_was_made_with() -> None:
    model = make("gru", n_hidden=8, vocab_size=5)
    text, twin = session(model), session(model)
    model.head.weight.data *= 7
    assert np.array_equal(text.read([[1, 2]]), twin.read([[1, 2]]))
    assert not np.array_equal(text.read([[3]]), session(model).read([[1, 2, 3]]))


def test_a_recurrent_model_remembers_beyond_its_block() -> None:
    cr.seed(0)
    model = make("lstm", n_hidden=16, block_size=4, vocab_size=5)
    text = np.random.default_rng(0).integers(5, size=30)
    in_pieces = session(model)
    for piece in np.split(text, 10):
        logits = in_pieces.read([piece.tolist()])
    np.testing.assert_allclose(logits, session(model).read([text.tolist()]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_a_full_context_is_read_again_from_its_newest_half(name: str) -> None:
    """Scores of a context of 12, piece by piece, are those of a plain pass over what it should still see."""
    cr.seed(3)
    model = make(name, n_layer=2, n_head=2, n_embd=16, block_size=12, vocab_size=10)
    model.load({key: 3 * value for key, value in model.state().items()})
    model.eval()
    tokens = np.random.default_rng(0).integers(10, size=60).tolist()
    text, end, seen = session(model), 0, 0
    for piece in (2, 5, 5, 1, 1, 5, 7, 3, 11, 1, 12):
        end += piece
        seen = seen + piece if seen + piece <= 12 else 6
        plain = model(np.array([tokens[end - seen : end]])).numpy()[0, -1]
        np.testing.assert_allclose(text.read([tokens[end - piece : end]])[0], plain, rtol=1e-4, atol=1e-4)
    # A prompt that is too long has a whole context left.
    plain = model(np.array([tokens[-12:]])).numpy()[0, -1]
    np.testing.assert_allclose(session(model).read([tokens])[0], plain, rtol=1e-4, atol=1e-4)


def test_a_context_of_one_token() -> None:
    cr.seed(3)
    model = make("gpt", n_layer=1, n_head=1, n_embd=8, block_size=1, vocab_size=5).eval()
    text = session(model)
    for token in (3, 1, 4):
        np.testing.assert_allclose(
            text.read([[token]])[0], model(np.array([[token]])).numpy()[0, 0], atol=1e-5
        )


def test_a_text_that_continues_another_is_read_from_there(model: LanguageModel) -> None:
    """The same logits as those of the whole text, for every family; what does not continue it is read anew."""

    class Counted:
        def __init__(self) -> None:
            self.inner, self.tokens = session(model), 0

        def read(self, tokens: Any) -> Any:
            self.tokens += len(tokens[0])
            return self.inner.read(tokens)

        def keep(self, rows: Any) -> None:
            self.inner.keep(rows)

    counted = Counted()
    cache = PrefixCache(counted)
    for text, tokens in (
        ([1, 2, 3], 3),
        ([1, 2, 3, 4, 5], 2),
        ([1, 2, 3, 4, 5], 5),  # nothing would be left to read
        ([1, 2, 4, 5, 6, 7], 6),
        ([7], 1),
    ):
        cache.keep([])
        before = counted.tokens
        np.testing.assert_allclose(cache.read([text]), session(model).read([text]), atol=1e-5)
        assert counted.tokens - before == tokens
        cache.read([[8]])
        assert counted.tokens - before == tokens + 1
        cache.seen.pop()  # as if the next text had not that token
        counted.inner.keep([])
        counted.inner.read([text])


def test_an_interrupted_read_leaves_nothing_to_continue() -> None:
    """Ctrl-C may come while tokens are read: the cache then holds a part of them."""

    class Interrupted:
        def __init__(self) -> None:
            self.held: list[int] = []
            self.fails = False

        def read(self, tokens: Any) -> Any:
            self.held += tokens[0][:1] if self.fails else tokens[0]
            if self.fails:
                raise KeyboardInterrupt
            return np.array(self.held)

        def keep(self, rows: Any) -> None:
            self.held = self.held if rows else []

    texts: Any = Interrupted()
    cache = PrefixCache(texts)
    cache.read([[1, 2, 3]])
    cache.keep([])
    texts.fails = True
    with pytest.raises(KeyboardInterrupt):
        cache.read([[1, 2, 3, 4, 5]])
    cache.keep([])
    texts.fails = False
    assert cache.read([[1, 2, 3, 4, 5, 6, 7]]).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_session_continues_as_many_texts_as_it_has() -> None:
    cr.seed(3)
    model = make("gpt", n_layer=1, n_head=2, n_embd=16, block_size=12, vocab_size=10)
    with pytest.raises(ConfigError, match="2 texts, batch is 1"):
        session(model).read([[1, 2], [3]])
    reading = session(model, batch=2)
    reading.read([[1, 2], [3]])
    with pytest.raises(ValueError, match="shorter"):
        reading.read([[4]])
