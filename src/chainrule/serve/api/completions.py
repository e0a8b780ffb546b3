"""/v1/completions: texts that continue prompts, with log-probabilities of both if they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from chainrule.generate.healing import Prompt
from chainrule.generate.requests import Request
from chainrule.generate.sample import encoded, prompted
from chainrule.serve.api.choices import Choice, Delta, legacy_logprobs
from chainrule.serve.api.errors import refused
from chainrule.serve.api.generation import Generation, check_jobs
from chainrule.serve.api.requests import CompletionRequest
from chainrule.serve.api.sampling import check_text, encoding, sampling_of, token_ids, tokens_left
from chainrule.serve.limits import LIMITS
from chainrule.serve.models import Served

MAX_TOKENS = 16  # unless a request says otherwise


class Prompted(NamedTuple):
    """A prompt, as the model reads it and as text."""

    prompt: Prompt
    text: str

    @property
    def length(self) -> int:
        return len(self.prompt.ids)

    @property
    def lengths(self) -> dict[str, int]:
        """Characters of its text, and how many of them the model writes once more."""
        return {"before": len(self.text), "typed": len(self.prompt.typed)}


class CompletionShape:
    """How completions are written."""

    prefix, object, chunk = "cmpl", "text_completion", "text_completion"

    def __init__(self, served: Served) -> None:
        self.served = served

    def choice(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        logprobs = legacy_logprobs(self.served, delta.scored) if choice.scored else None
        return {
            "index": choice.index,
            "text": delta.text,
            "logprobs": logprobs,
            "finish_reason": delta.finish,
        }

    event = choice

    def opening(self, choice: Choice) -> None:
        return None


def completion(body: CompletionRequest, served: Served) -> Generation:
    """A request, checked and encoded."""
    n = body.n or 1
    best = body.best_of or n
    echo, top = bool(body.echo), body.logprobs
    if best < n:
        raise refused(f"best_of: {best} for n {n} (must be at least as many)", "best_of")
    if best > n and body.stream:
        raise refused("best_of: with stream (must be n: the best is known at the end)", "best_of")
    given = _listed(body.prompt)
    check_jobs(served, len(given) * best, "prompt")
    for text in given:
        if isinstance(text, str):
            check_text(text, served, "prompt")
    sampling = sampling_of(body, served)
    choices: list[Choice] = []
    prompt_tokens = 0
    prompts = [_prompted(each, served, echo) for each in given]
    if echo and top is not None:
        check_scored(sum(prompt.length for prompt in prompts) * best, top)
    for prompt in prompts:
        prompt_tokens += prompt.length
        tokens = tokens_left(served, prompt.length, body.max_tokens, MAX_TOKENS, "prompt")
        for i in range(best):
            how = replace(sampling, max_new_tokens=tokens, seed=(sampling.seed + i) % 2**64)
            scored = top is not None or best > n
            request = Request(
                prompt.prompt, how, served.vocab_size, served.tokenizer, scored=scored, top=top or 0
            )
            shown: dict[str, Any] = {"echo": prompt.text} if echo else prompt.lengths
            choices.append(Choice(served, len(choices), request, scored=top is not None, **shown))
    return Generation(
        served,
        CompletionShape(served),
        choices,
        prompt_tokens,
        top_of_prompt=top if echo else None,
        best=best,
        kept=n,
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
    )


def check_scored(tokens: int, top: int) -> None:
    """Refuse a prompt whose log-probabilities would be an answer of too many megabytes."""
    if tokens * (1 + top) > LIMITS.scored:
        rule = f"must be at most {LIMITS.scored:,}: ask for fewer logprobs, or for fewer prompts at a time"
        raise refused(
            f"logprobs: {tokens:,} tokens to score, each with {1 + top} numbers ({rule})", "logprobs"
        )


def _listed(prompt: str | list[Any] | None) -> list[str | list[int]]:
    """All four forms as a list of prompts."""
    if prompt is None or isinstance(prompt, str):
        return [prompt or ""]
    if not prompt:
        raise refused("prompt: an empty list (must have a prompt)", "prompt")
    found = [prompt] if isinstance(prompt[0], int) else prompt
    if len(found) > LIMITS.prompts:
        raise refused(f"prompt: {len(found)} prompts (must be at most {LIMITS.prompts})", "prompt")
    return cast(list[str | list[int]], found)


def _prompted(prompt: str | Sequence[int], served: Served, echo: bool) -> Prompted:
    """A prompt as `chainrule sample` reads it; one that is repeated is not healed, since its tokens are shown."""
    tokenizer = served.tokenizer
    if isinstance(prompt, str):
        special = tokenizer.conventions.chat_template is not None
        with encoding("prompt"):
            found = (
                Prompt(encoded(tokenizer, prompt, special)) if echo else prompted(tokenizer, prompt, special)
            )
        return Prompted(found, prompt)
    ids = token_ids(prompt, served.vocab_size, "prompt")
    return Prompted(Prompt(ids), tokenizer.decode(ids[ids < tokenizer.vocab_size]))
