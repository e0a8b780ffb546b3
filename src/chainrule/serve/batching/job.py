"""A request on its way: its tokens so far, where its updates go, and whether it was cancelled."""

from __future__ import annotations

from array import array
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
        self._ids = array("i", request.prompt)

    @property
    def ids(self) -> array[int]:
        """All tokens so far, of the prompt and of the text: always the same array, which grows."""
        written = len(self._ids) - len(self.request.prompt)
        self._ids.extend(self.request.tokens[written:])
        return self._ids

    @property
    def n_tokens(self) -> int:
        """How many they are."""
        return len(self.request.prompt) + len(self.request.tokens)

    @property
    def most_tokens(self) -> int:
        """That a cache may have to hold: the last token that is written is not read."""
        return len(self.request.prompt) + max(0, self.request.sampling.max_new_tokens - 1)

    @property
    def reads_prompt(self) -> bool:
        """It is not over once its prompt has been read, or the prompt is to be scored."""
        return self.request.finish is None or self.scores_prompt

    @property
    def scores_prompt(self) -> bool:
        """Scores of the prompt are wanted and not complete."""
        wanted = self.top_of_prompt is not None
        return wanted and len(self.prompt_scores) < len(self.request.prompt) - 1
