"""What a trained model is asked, and what it answers: a plain dict for each prompt, ready for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chainrule.generate import Beam, Hypothesis, Request, Sampling
from chainrule.text import Tokenizer

Answer = dict[str, Any]
Prompts = Sequence[str]
Logs = Sequence[float | None]  # log-probabilities of tokens; the first of a prompt has none
Tell = Callable[[int], None]  # is called with the number of tokens so far


@dataclass(frozen=True)
class AnswerOptions:
    """How a model answers; a task reads the fields that mean something to its models."""

    sampling: Sampling = field(default_factory=Sampling)
    num_samples: int = 1
    """Texts for each prompt, drawn with the seeds seed, seed + 1, ..."""
    beam: Beam | None = None
    """Search for the likeliest texts instead of drawing them."""
    weights: str = "fp32"
    """How weights are held while a transformer or a recurrent model writes."""
    cache: str = "fp32"
    """How a transformer holds the keys and values of what it has read."""
    logprobs: bool = False
    """Add the log-probability of each token."""
    special: bool = False
    """Names of special tokens in a prompt are these tokens."""
    show_special: bool = False
    """Special tokens that the model writes are part of its text."""

    @property
    def samplings(self) -> Iterator[Sampling]:
        """How each text of a prompt is drawn, one by one: there may be many."""
        return (replace(self.sampling, seed=self.sampling.seed + i) for i in range(self.num_samples))


DEFAULTS = AnswerOptions()


def silent(tokens: int) -> None:
    """Tells nobody."""


def shorten(text: str, width: int = 70) -> str:
    """The beginning of a text in one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def token_logprobs(tokenizer: Tokenizer, ids: Sequence[int], logs: Logs) -> list[dict[str, Any]]:
    """Tokens and their log-probabilities"""
    pairs = zip(ids, logs, strict=True)
    return [{"id": id, "token": tokenizer.piece(id), "logprob": log} for id, log in pairs]


def drawn(tokenizer: Tokenizer, prompt: str, request: Request, before: Logs | None = None) -> Answer:
    """A text that was drawn; `before` are the log-probabilities of the prompt's tokens, if they are wanted"""
    answer = {"prompt": prompt, "text": request.text, "seed": request.sampling.seed, "finish": request.finish}
    if before is not None:
        answer["prompt_logprobs"] = token_logprobs(tokenizer, request.prompt, before)
    if request.logprobs is not None:
        answer["logprobs"] = token_logprobs(tokenizer, request.tokens, request.logprobs)
    return answer


def searched(
    tokenizer: Tokenizer, prompt: str, text: str, found: Hypothesis, logs: Logs | None = None
) -> Answer:
    """A text that a search has found; `logs` are the log-probabilities of its tokens, if they are wanted"""
    answer: Answer = {"prompt": prompt, "text": text, "logprob": found.logprob, "score": found.score}
    if logs is not None:
        answer["logprobs"] = token_logprobs(tokenizer, found.tokens, logs)
    return answer | {"finish": "stop" if found.finished else "length"}


def show_text(answer: Answer, number: int, between: str = "") -> str:
    """A written text for people: how it came about, the text, the log-probabilities"""
    facts = ", ".join(f"{key} {answer[key]:.5g}" for key in ("seed", "logprob", "score") if key in answer)
    lines = [f"--- {number + 1}: {facts}", answer["prompt"] + between + answer["text"]]
    for token in [*answer.get("prompt_logprobs", ()), *answer.get("logprobs", ())]:
        log = "" if token["logprob"] is None else f"{token['logprob']:.4f}"
        lines.append(f"{log:>10}  {token['token']!r}")
    return "\n".join(lines)
