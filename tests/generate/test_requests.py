"""Many texts in one loop: each as if it were alone, for every family; ends, limits and empty prompts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ConfigError, DataError
from chainrule.generate import Request, Sampling, complete, generate, run, write
from chainrule.generate.engine.weights import FORMATS
from chainrule.generate.sample import completions
from chainrule.generate.session import session
from chainrule.models import NGram, Terminals
from chainrule.text import BPETokenizer, CharTokenizer
from tests.models.tiny import SIZES, float64, tiny

V = 11
PROMPTS = [
    [3, 1],
    [4, 1, 5, 9, 2, 6],
    [7],
    [10, 0, 3, 8, 8, 8, 1, 2, 5],
]  # the last is longer than a context of 7
KINDS = [*SIZES, "bigram", "trigram"]


def model_of(name: str) -> Any:
    if name in ("bigram", "trigram"):
        text = np.random.default_rng(0).integers(V, size=400)
        return NGram.fit([text], order=2 if name == "bigram" else 3, vocab_size=V, ends=Terminals(V, None))
    model = tiny(name, vocab_size=V)
    rng = np.random.default_rng(1)
    model.load({key: value + 0.3 * rng.normal(size=value.shape) for key, value in model.state().items()})
    return model


def samplings() -> list[Sampling]:
    return [
        Sampling(max_new_tokens=12, temperature=1.0, seed=5),
        Sampling(max_new_tokens=3, temperature=0.0),
        Sampling(max_new_tokens=20, temperature=1.2, top_p=0.9, seed=6, stop_tokens=(4,)),
        Sampling(max_new_tokens=7, temperature=1.0, top_k=4, presence_penalty=1.0, seed=5),
    ]


@pytest.mark.parametrize("name", KINDS)
def test_together_each_gets_the_tokens_it_gets_alone(name: str) -> None:
    model = model_of(name)
    requests = [Request(ids, options, V) for ids, options in zip(PROMPTS, samplings(), strict=True)]
    for _ in run(session(model, batch=4), requests):
        pass
    for request in requests:
        alone = Request(request.prompt, request.sampling, V)
        list(run(session(model), [alone]))
        assert request.tokens == alone.tokens and request.finish == alone.finish


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_together_in_every_format(name: str, weights: str) -> None:
    model = model_of(name)
    texts, alone = session(model, weights, batch=4), [session(model, weights) for _ in PROMPTS]
    pieces = PROMPTS
    for _ in range(9):  # beyond the context of 7
        logits = texts.read(pieces)
        np.testing.assert_allclose(
            logits, [a.read([x])[0] for a, x in zip(alone, pieces, strict=True)], atol=1e-5
        )
        pieces = [[int(row.argmax())] for row in logits]


@pytest.mark.parametrize("name", KINDS)
def test_rows_can_leave_change_places_and_be_copied(name: str) -> None:
    model = model_of(name)
    texts = session(model, batch=5)
    texts.read(PROMPTS)
    history: list[list[list[int]]] = [[ids] for ids in PROMPTS]  # what each text has read, piece by piece
    for rows, new in (
        ([2, 0, 2, 1, 0], [1, 2, 3, 4, 5]),
        ([4, 3], [6, 7]),
        ([1, 1, 1, 0, 0], [1, 2, 3, 4, 4]),
    ):
        texts.keep(rows)
        history = [[*history[row], [token]] for row, token in zip(rows, new, strict=True)]
        logits = texts.read([[token] for token in new])
        for pieces, row in zip(history, logits, strict=True):
            alone = session(model)
            np.testing.assert_allclose(row, [alone.read([piece])[0] for piece in pieces][-1], atol=1e-5)
    texts.keep([])
    np.testing.assert_allclose(texts.read([[1], [2, 3]])[1], session(model).read([[2, 3]])[0], atol=1e-5)


@settings(max_examples=25)
@given(st.sampled_from(["gpt", "llama", "gru", "mlp", "trigram"]), st.integers(0, 2**32))
def test_any_sequence_of_reading_and_keeping(name: str, seed: int) -> None:
    """Whatever happens to the rows, each text is read as if it had been alone, also beyond the context of 7."""
    model, rng = model_of(name), np.random.default_rng(seed)
    texts = session(model, batch=4)
    history: list[list[list[int]]] = [[] for _ in range(rng.integers(1, 5))]
    for _ in range(6):
        history = [[*pieces, rng.integers(V, size=rng.integers(1, 6)).tolist()] for pieces in history]
        logits = texts.read([pieces[-1] for pieces in history])
        for row, pieces in zip(logits, history, strict=True):
            alone = session(model)
            np.testing.assert_allclose(row, [alone.read([piece])[0] for piece in pieces][-1], atol=1e-5)
        rows = rng.integers(len(history), size=rng.integers(1, 5)).tolist()
        texts.keep(rows)
        history = [history[row] for row in rows]


def test_more_texts_than_there_is_room_for_are_refused() -> None:
    texts = session(model_of("gpt"), batch=2)
    with pytest.raises(ConfigError, match="3 texts, batch is 2"):
        texts.read([[1], [2], [3]])
    texts.read([[1]])
    with pytest.raises(ConfigError, match="3 texts, batch is 2"):
        texts.keep([0, 0, 0])


@pytest.mark.requirement("R-481")
@pytest.mark.parametrize("name", ["gpt", "llama", "rnn", "gru", "lstm", "mlp", "ngram"])
def test_step_by_step_equals_the_full_pass_in_float64(name: str) -> None:
    model = float64(tiny(name, vocab_size=V)).eval()
    ids = np.random.default_rng(3).integers(V, size=7)
    with cr.no_grad():
        full = model(ids[None]).numpy()[0]
    texts = session(model)
    steps = [texts.read([[int(token)]])[0] for token in ids]
    np.testing.assert_allclose(steps, full, rtol=0, atol=1e-10)


@pytest.mark.requirement("R-477")
@pytest.mark.parametrize("name", KINDS)
def test_one_interface_serves_every_family(name: str) -> None:
    model = model_of(name)
    one = generate(model, [3, 1], 10, seed=2)
    assert one.tolist() == generate(model, [3, 1], 10, seed=2).tolist()
    assert len(one) == 10 and set(one.tolist()) <= set(range(V))


@pytest.mark.requirement("R-475")
@pytest.mark.parametrize("name", KINDS)
def test_it_stops_at_the_end_token_or_the_limit_and_never_beyond(name: str) -> None:
    model = model_of(name)
    free = generate(model, [3, 1], 40, temperature=1.0, seed=1).tolist()
    for limit in (0, 1, 40):
        assert generate(model, [3, 1], limit, temperature=1.0, seed=1).tolist() == free[:limit]
    for end in range(V):
        want = free[: free.index(end)] if end in free else free
        got = Request([3, 1], Sampling(max_new_tokens=40, temperature=1.0, seed=1, stop_tokens=(end,)), V)
        list(run(session(model), [got]))
        assert got.tokens == want and got.finish == ("stop" if end in free else "length")


def test_a_batch_of_text_with_stop_strings_and_log_probabilities() -> None:
    tokenizer = CharTokenizer("abcdefghij\n")
    model = model_of("gpt")
    options = [Sampling(max_new_tokens=n, temperature=1.0, seed=n) for n in (0, 5, 30, 17)]
    prompts = ["abc", "", "j", "abcdefghij" * 3]
    free = complete(model, tokenizer, prompts, options, scored=True, together=2)
    for prompt, request, sampling in zip(prompts, free, options, strict=True):
        n = sampling.max_new_tokens
        text = "".join(write(model, tokenizer, prompt, n, temperature=1.0, seed=n))
        assert request.text == text == tokenizer.decode(request.tokens)
        assert request.logprobs is not None and len(request.logprobs) == len(request.tokens) == n
        assert all(logprob < 0 for logprob in request.logprobs)
    stop = free[2].text[4:6]
    cut = complete(
        model, tokenizer, ["j"], Sampling(max_new_tokens=30, temperature=1.0, seed=30, stop=(stop,))
    )[0]
    assert cut.text == free[2].text.split(stop)[0] and cut.finish == "stop"
    pieces = list(write(model, tokenizer, "j", 30, temperature=1.0, seed=30, stop=(stop,)))
    assert "".join(pieces) == cut.text


def test_a_text_that_ends_inside_a_character_is_whole() -> None:
    tokenizer = BPETokenizer.train("", 256)
    model = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=16, vocab_size=256))
    face = tokenizer.encode("🙂")
    forced = {int(face[0]): 1000.0}
    pieces = list(write(model, tokenizer, "a", 3, temperature=0, logit_bias=forced))
    assert pieces == ["", "�", "��"]  # each such byte begins a character that the next one breaks


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], r"shape \(0,\)"),
        ([[1]], r"shape \(1, 1\)"),
        ([11], "token 11"),
        ([-1], "token -1"),
        ([0.5], "float64"),
    ],
)
@pytest.mark.parametrize("name", KINDS)
def test_prompts_that_are_none_are_refused(name: str, ids: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        generate(model_of(name), ids, 3)


def test_stops_by_text_need_a_tokenizer() -> None:
    with pytest.raises(ConfigError, match="stop needs text"):
        generate(model_of("gpt"), [1], 3, stop=("a",))


def test_as_many_samplings_as_prompts() -> None:
    with pytest.raises(ConfigError, match="2 prompts, 1 samplings"):
        complete(model_of("gpt"), CharTokenizer("abcdefghij\n"), ["a", "b"], [Sampling()])


def test_many_texts_are_written_a_few_at_a_time() -> None:
    """However many are asked for, only those of one loop are held."""
    taken: list[int] = []

    def asked() -> Iterator[tuple[np.ndarray, Sampling]]:
        for seed in range(10**9):
            taken.append(seed)
            yield np.array([1]), Sampling(max_new_tokens=2, seed=seed)

    found = completions(model_of("gpt"), CharTokenizer("abcdefghij\n"), asked(), together=3)
    first = [next(found) for _ in range(4)]
    assert [request.sampling.seed for request in first] == [0, 1, 2, 3] and len(taken) == 6
    alone = complete(
        model_of("gpt"), CharTokenizer("abcdefghij\n"), ["b"], Sampling(max_new_tokens=2, seed=3)
    )
    assert first[3].tokens == alone[0].tokens
    taken.clear()
    next(completions(model_of("gpt"), CharTokenizer("abcdefghij\n"), asked(), together=1))
    assert taken == [0]
    with pytest.raises(ConfigError, match=r"together is 0 \(must be at least 1\)"):
        next(completions(model_of("gpt"), CharTokenizer("abcdefghij\n"), asked(), together=0))


def test_log_probabilities_are_kept_only_if_asked_for() -> None:
    plain, scored = Request([1], Sampling(), V), Request([1], Sampling(), V, scored=True)
    for request in (plain, scored):
        request.advance(np.zeros(V))
    assert plain.logprobs is None
    assert scored.logprobs == pytest.approx([-np.log(V)])
