"""`chainrule chat`"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.commands.sample import Weights
from chainrule.cli.render.show import used
from chainrule.errors import DataError
from chainrule.generate import Sampling
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.generate.sample import Model

HELP = "/reset forgets the conversation, /quit ends it (as does Ctrl-D); Ctrl-C ends an answer"


@dataclass(frozen=True)
class Command:
    """Talk with a trained model: the conversation so far is the prompt of each answer.

    The model sees a play with two speakers, "User: ...", "Assistant: ...", and its turn ends where yours would begin.
    So any model of text can answer, in the way of its texts: after Shakespeare, try --user ROMEO --assistant JULIET.

    Example: chainrule chat runs/demo --user ROMEO --assistant JULIET --temperature 0.7
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run, or one of its checkpoints."""
    user: str = "User"
    """Your name in the conversation."""
    assistant: str = "Assistant"
    """The model's name in the conversation."""
    system: str = ""
    """Text at the beginning of the conversation."""
    sampling: Sampling = field(default_factory=Sampling)
    weights: Weights = "fp32"
    """Format of the weights (docs/understand/inference.md). GPT and Llama only."""

    def run(self) -> None:
        named = bool(self.user and self.assistant)
        Check("chat", self).require(named, "user", "assistant", rule="must be names, not empty")
        model, tokenizer = cr.runs.load_language_model(self.run_folder)
        used(self.run_folder)
        talk = Conversation(self, model, tokenizer)
        talk.check()
        if sys.stdin.isatty():
            print(HELP)
        for message in messages(f"{self.user}: "):
            if message == "/reset":
                talk.reset()
                continue
            print(f"{self.assistant}:", end="", flush=True)
            try:
                for piece in talk.answer(message):
                    print(piece, end="", flush=True)
            except DataError as error:  # an unknown character: the conversation continues without it
                print(f" ({error})", end="")
            except KeyboardInterrupt:
                pass
            print()


class Conversation:
    """What was said so far, as a text."""

    def __init__(self, options: Command, model: Model, tokenizer: cr.text.Tokenizer) -> None:
        from chainrule.generate.session import vocab_size

        self.options = options
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size(model)
        self.session: cr.generate.Session = cr.generate.session(model, options.weights)
        self.sampling = replace(options.sampling, stop=(*options.sampling.stop, f"\n{options.user}:"))
        self.reset()

    def reset(self) -> None:
        self.text = f"{self.options.system}\n" if self.options.system else ""
        self.turn = 0

    def check(self) -> None:
        """The names and options must fit the model before anybody has written a word."""
        self._request(f"{self.options.user}: {self.options.assistant}:")

    def answer(self, message: str) -> Iterator[str]:
        """The model's turn after a message, piece by piece; an answer that is broken off was said as far as it came"""
        asked = f"{self.text}{self.options.user}: {message}\n{self.options.assistant}:"
        request = self._request(asked)
        self.session.keep([])
        try:
            for _ in cr.generate.run(self.session, [request]):
                yield request.piece
        finally:
            self.text = f"{asked}{request.text}\n"
            self.turn += 1

    def _request(self, text: str) -> cr.generate.Request:
        sampling = replace(self.sampling, seed=self.sampling.seed + self.turn)
        return cr.generate.Request(self.tokenizer.encode(text), sampling, self.vocab_size, self.tokenizer)


def messages(prompt: str) -> Iterator[str]:
    """What is typed, line by line, until /quit or the end of standard input"""
    with suppress(ImportError):
        import readline  # noqa: F401  # arrows and history, where there is one
    shown = prompt if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(shown).strip()
        except EOFError:
            return
        if line == "/quit":
            return
        if line:
            yield line
