"""What a request may ask for; beyond it is refused before any work is done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes of requests, and how long to wait for slow clients."""

    body_bytes: int = 4 << 20
    prompts: int = 128
    """Prompts of one request for completions."""
    texts: int = 2048
    """Texts of one request for embeddings."""
    messages: int = 1024
    choices: int = 64
    """`n` and `best_of`."""
    stop_strings: int = 16
    stop_length: int = 1000
    """Characters of a stop string."""
    biases: int = 1024
    """Tokens of a `logit_bias`."""
    alternatives: int = 20
    """`logprobs` and `top_logprobs`."""
    schema_bytes: int = 1 << 16
    """A schema of `response_format`."""
    max_tokens: int = 1 << 15
    """Of a model whose context has no end."""
    scored: int = 1 << 19
    """Log-probabilities of a prompt: its tokens, times 1 + `logprobs`, times the texts."""
    connections: int = 512
    """At a time; a further one is closed."""
    pending: int = 64
    """Requests beyond those that run or wait in a queue: being read, checked or answered."""
    read_seconds: float = 30.0
    """For a client to send its request."""
    write_seconds: float = 30.0
    """For a client to take what was sent; one that does not is dropped."""
    drain_seconds: float = 30.0
    """For requests under way to end after SIGTERM."""
    retry_seconds: int = 1
    """What `Retry-After` says when the queue is full."""


LIMITS = Limits()
