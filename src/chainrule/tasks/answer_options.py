"""What a trained model is asked, and what it answers: a plain dict for each prompt, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.generate import Beam, Sampling
from chainrule.text import Tokenizer

Answer = dict[str, Any]


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
    logprobs: bool = False
    """Add the log-probability of each token."""
    special: bool = False
    """Names of special tokens in a prompt are these tokens."""
    show_special: bool = False
    """Special tokens that the model writes are part of its text."""


def token_logprobs(
    tokenizer: Tokenizer, ids: Sequence[int], logs: Sequence[float | None]
) -> list[dict[str, Any]]:
    """Tokens and their log-probabilities; the first of a prompt has none"""
    return [
        {"id": id, "token": tokenizer.piece(id), "logprob": log} for id, log in zip(ids, logs, strict=True)
    ]


def show_text(answer: Answer, number: int, between: str = "") -> str:
    """A written text for people: how it came about, the text, the log-probabilities"""
    facts = ", ".join(f"{key} {answer[key]:.5g}" for key in ("seed", "logprob", "score") if key in answer)
    lines = [f"--- {number + 1}: {facts}", answer["prompt"] + between + answer["text"]]
    for token in [*answer.get("prompt_logprobs", ()), *answer.get("logprobs", ())]:
        log = "" if token["logprob"] is None else f"{token['logprob']:.4f}"
        lines.append(f"{log:>10}  {token['token']!r}")
    return "\n".join(lines)
