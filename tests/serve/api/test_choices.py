"""Choices: log-probabilities are those of the text that a client sees, token by token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.generate.requests import Request, TokenScore
from chainrule.generate.sample import prompted
from chainrule.generate.sampling import Sampling
from chainrule.serve.api.choices import Choice, joined, legacy_logprobs
from chainrule.serve.batching import Update
from chainrule.serve.models import Served
from chainrule.text import BPETokenizer
from tests.serve.conftest import writing_model

TEXT = "once upon a time lit a lit match a lit " * 4


@pytest.fixture(scope="module")
def served() -> Served:
    tokenizer = BPETokenizer.train(TEXT, 280)
    return Served("bpe", writing_model(tokenizer.vocab_size, 64), tokenizer)


def written(
    served: Served,
    prompt: Any,
    tokens: list[int],
    *,
    together: bool = False,
    stop: tuple[str, ...] = (),
    **shown: Any,
) -> Any:
    """What a client sees of these tokens, told one by one or all at once."""
    sampling = Sampling(max_new_tokens=len(tokens), temperature=0, stop=stop)
    request = Request(prompt, sampling, served.vocab_size, served.tokenizer, scored=True)
    choice = Choice(served, 0, request, scored=True, **shown)
    updates = []
    for token in tokens:
        logits = np.zeros(served.vocab_size, np.float32)
        logits[token] = 9
        request.advance(logits)
        assert request.scores and request.tokens[-1] == token
        updates.append(Update(request.piece, (token,), (request.scores[-1],), finish=request.finish))
        if request.finish:
            break
    if together:
        texts, scores = "".join(u.piece for u in updates), tuple(s for u in updates for s in u.scores)
        updates = [Update(texts, tuple(request.tokens), scores, finish=request.finish)]
    whole = joined([choice.take(update) for update in updates])
    found = legacy_logprobs(served, whole.scored)
    return whole.text, found["tokens"], found["text_offset"]


@pytest.mark.parametrize("together", [False, True])
def test_tokens_after_a_healed_prompt_begin_in_it(served: Served, together: bool) -> None:
    prompt = prompted(served.tokenizer, "once upon ", False)
    assert prompt.typed == " "
    tokens = served.tokenizer.encode_inside(" lit match").tolist()
    names = [served.token_text(token) for token in tokens]
    shown = {"before": 10, "typed": 1, "together": together}
    offsets = [9 + len("".join(names[:i])) for i in range(len(names))]
    assert written(served, prompt, tokens, **shown) == ("lit match", names, offsets)
    text, kept, places = written(served, prompt, tokens, stop=("tch",), **shown)
    assert text == "lit ma" and "".join(kept).startswith(" lit ma") and places == offsets[: len(places)]
    assert written(served, prompt, tokens, stop=("l",), **shown) == ("", [], [])


@pytest.mark.parametrize("together", [False, True])
def test_what_stands_before_an_answer_is_not_counted(served: Served, together: bool) -> None:
    tokens = [served.tokenizer.encode_inside(letter)[0] for letter in " abc"]
    prompt = served.tokenizer.encode("once")
    found = written(served, prompt, tokens, stop=("c",), lead=" ", together=together)
    assert found == ("ab", [" ", "a", "b"], [-1, 0, 1])
    assert written(served, prompt, tokens, stop=(" a",), lead=" ", together=together) == ("", [], [])


def test_tokens_of_a_stop_string_are_dropped_though_some_came_with_text(served: Served) -> None:
    tokens = [served.tokenizer.encode_inside(letter)[0] for letter in "xbc"]
    request = Request(
        served.tokenizer.encode("a"),
        Sampling(max_new_tokens=9, stop=("bc",)),
        served.vocab_size,
        served.tokenizer,
    )
    choice = Choice(served, 0, request, scored=True)
    first = choice.take(Update("x", tuple(tokens[:2]), tuple(TokenScore(t, -1.0) for t in tokens[:2])))
    last = choice.take(Update("", (tokens[2],), (TokenScore(tokens[2], -1.0),), finish="stop"))
    assert [each.token for each in (*first.scored, *last.scored)] == tokens[:1]
