"""A request on its way: what it still has to read, what it tells whoever waits for it, and whether anybody does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from chainrule.errors import ChainruleError
from chainrule.generate.requests import Finish, Request, TokenScore


class Full(ChainruleError):
    """More requests than fit the slots and the queue."""


class Update(NamedTuple):
    """What has become of a job: more text and tokens, and at the end why it ended, or what went wrong."""

    piece: str = ""
    tokens: tuple[int, ...] = ()
    scores: tuple[TokenScore, ...] = ()
    """Of the tokens, if they were asked for."""
    prompt_scores: tuple[TokenScore, ...] = ()
    """Of the tokens of the prompt but the first, all at once, if they were asked for."""
    finish: Finish | None = None
    error: Exception | None = None

    @property
    def last(self) -> bool:
        """Nothing follows."""
        return self.finish is not None or self.error is not None


class Job:
    """A request for the tokens of a text, and where its updates go.

    `tell` is called by the thread that works, after each step. With `top_of_prompt` the tokens of the prompt are scored
    too, beside so many of the likeliest.
    """

    def __init__(
        self, request: Request, tell: Callable[[Update], None], *, top_of_prompt: int | None = None
    ) -> None:
        self.request = request
        self.tell = tell
        self.top_of_prompt = top_of_prompt
        self.prompt_scores: list[TokenScore] = []
        self.cancelled = False
        self.reused = 0
        """Tokens of the prompt that a cache held already."""

    @property
    def ids(self) -> list[int]:
        """All tokens so far, of the prompt and of the text."""
        return self.request.prompt + self.request.tokens

    def __len__(self) -> int:
        return len(self.request.prompt) + len(self.request.tokens)

    @property
    def reads_prompt(self) -> bool:
        """It is not over once its prompt has been read, or the prompt is to be scored."""
        return self.request.finish is None or self.scores_prompt

    @property
    def scores_prompt(self) -> bool:
        """Scores of the prompt are wanted and not complete."""
        wanted = self.top_of_prompt is not None
        return wanted and len(self.prompt_scores) < len(self.request.prompt) - 1
