"""Writing: what a job makes of the logits after the tokens that its slot has read.

A prompt is scored, or the next token is drawn; of guesses that were read ahead those are kept that were right.
"""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.generate.processors import Logits
from chainrule.generate.requests import token_score
from chainrule.serve.batching.caches import Caches
from chainrule.serve.batching.job import Job, Update
from chainrule.serve.batching.prefixes import Slot


@dataclass
class Counters:
    """What a batcher has done so far."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    tokens: int = 0
    steps: int = 0
    drafted: int = 0
    accepted: int = 0


class Writing:
    """Lets the jobs of slots advance."""

    def __init__(self, caches: Caches, counters: Counters) -> None:
        self.caches = caches
        self.counters = counters

    def advance(self, slot: Slot, piece: list[int], logits: Logits) -> Update | None:
        """A slot has read a piece -> what is new of its job, if anything is"""
        job = slot.job
        assert job is not None
        slot.used = self.counters.steps
        before, known = len(slot.seen), job.n_tokens
        slot.seen.extend(piece)
        if job.cancelled:
            return None
        if job.scores_prompt:
            _score(job, before, logits)
        self.counters.prompt_tokens += max(0, min(len(slot.seen), len(job.request.prompt)) - before)
        if len(slot.seen) < known:
            return None
        if job.request.finish:  # the prompt was to be scored, and nothing else
            return Update(prompt_scores=tuple(job.prompt_scores), finish=job.request.finish)
        try:
            return self._write(slot, job, logits[len(logits) - (len(slot.seen) - known) - 1 :], known)
        except Exception as error:
            return Update(error=error)

    def _write(self, slot: Slot, job: Job, rows: Logits, known: int) -> Update:
        """Draw by the first row, and by each that follows as long as the guess before it was right."""
        request, guesses = job.request, slot.seen[known:]
        first, right, pieces = len(request.tokens), 0, []
        for row, guess in zip(rows, [*guesses, None], strict=True):
            request.advance(row)
            pieces.append(request.piece)
            if request.finish or request.tokens[-1] != guess:
                break
            right += 1
        self.counters.accepted += right
        self.counters.tokens += len(request.tokens) - first
        if guesses:
            kept = self.caches.keep(slot.number, known + right)
            del slot.seen[kept:]
        return Update(
            piece="".join(pieces),
            tokens=tuple(request.tokens[first:]),
            scores=tuple((request.scores or [])[first:]),
            prompt_scores=tuple(job.prompt_scores) if first == 0 else (),
            finish=request.finish,
        )


def wants_every(slot: Slot, piece: list[int]) -> bool:
    """Logits after each token of the piece are needed: a prompt is scored, or guesses are checked."""
    job = slot.job
    return job is not None and (job.scores_prompt or len(slot.seen) + len(piece) > job.n_tokens)


def _score(job: Job, before: int, logits: Logits) -> None:
    """Scores of the tokens of a prompt that follow the first `before`, as far as there are logits."""
    prompt, top = job.request.prompt, job.top_of_prompt or 0
    for place, row in zip(range(before + 1, len(prompt)), logits, strict=False):
        job.prompt_scores.append(token_score(row, prompt[place], top))
