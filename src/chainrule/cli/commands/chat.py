"""`chainrule chat`"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import chainrule as cr
from chainrule.cli.args.model_defaults import model_sampling
from chainrule.cli.args.options import Argument, Given
from chainrule.cli.commands.sample import Weights
from chainrule.cli.exits import Terminated
from chainrule.cli.render.show import used
from chainrule.errors import ConfigError, DataError, Setting
from chainrule.generate import Sampling
from chainrule.types import CacheFormat
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.text.chat.formats import Renderer
    from chainrule.types import Ids

HELP = "/reset forgets the conversation, /quit ends it (as does Ctrl-D); Ctrl-C ends an answer"
Format = Literal["plain", "chatml", "llama2", "llama3", "zephyr", "gemma", "roles", "lines"]


@dataclass(frozen=True)
class Command:
    """Talk with a trained model: the conversation so far is the prompt of each answer.

    A model with a chat template is asked in its own way and answers up to its end token (with the extra `chat`). Any
    other model sees a play with two speakers, "User: ...", "Assistant: ...", and its turn ends where yours would begin:
    so it can answer, in the way of its texts; after Shakespeare, try --user ROMEO --assistant JULIET. A model that does
    not know these characters sees each turn as a line.

    Without a terminal the questions come from standard input, one per line, and the answers go to standard output.

    Example: chainrule chat models/tiny-chat --system "Answer in one sentence." --temperature 0.7
    """

    run_folder: Annotated[Path, Argument("MODEL")]
    """Directory of a run, one of its checkpoints, or anything that `chainrule import` takes."""
    format: Format | None = None
    """How the conversation is written. Default: the chat template of the model, or plain if it has none, or lines if
    it cannot read that."""
    user: str = "User"
    """Your name in a plain conversation."""
    assistant: str = "Assistant"
    """The model's name in a plain conversation."""
    system: str = ""
    """Text at the beginning of the conversation: what the model is told to be."""
    sampling: Sampling = field(default_factory=Sampling)
    weights: Weights = "stored"
    """Format of the weights; stored: as a GGUF file has them, all else in fp32
    (docs/understand/inference.md). GPT and Llama only."""
    cache: CacheFormat = "fp32"
    """Format of the keys and values that a transformer remembers of each token."""
    special: bool = False
    """Read special tokens that your messages name, such as <|im_end|>, and print those that the model writes."""
    json: bool = False
    """Print a JSON object for each answer, one per line."""
    given: Given = field(default_factory=Given)

    def run(self) -> None:
        named = bool(self.user and self.assistant)
        Check("chat", self).require(named, "user", "assistant", rule="must be names, not empty")
        model, tokenizer = cr.runs.load_language_model(self.run_folder, to_decode=True)
        used(self.run_folder)
        talk = Conversation(self, model, tokenizer)
        asks = sys.stdin.isatty()
        if asks:
            print(HELP)
        label = f"{self.assistant}:" if talk.name == "plain" else f"{self.assistant}: " if asks else ""
        failed = 0
        for message in messages(f"{self.user}: "):
            if message == "/reset":
                talk.reset()
            elif self.json:
                record = talk.record(message)
                print(json.dumps(record, ensure_ascii=False), flush=True)
                failed += "error" in record
            else:
                failed += not self._print(label, talk.answer(message))
        if failed and not asks:
            raise DataError(f"chat: {failed} of the questions had no answer (see above)")

    def _print(self, label: str, answer: Iterator[str]) -> bool:
        """Print an answer while it is generated; False if that fails."""
        print(label, end="", flush=True)
        try:
            for piece in answer:
                print(piece, end="", flush=True)
        except DataError as error:  # an unknown character: the conversation continues without it
            print(flush=True)
            print(f"({error})", file=sys.stderr)
            return False
        except Terminated:
            raise
        except KeyboardInterrupt:  # of this answer alone
            pass
        print()
        return True


class Conversation:
    """What was said so far, and the model that answers."""

    def __init__(
        self, options: Command, model: cr.models.LanguageModel, tokenizer: cr.text.Tokenizer
    ) -> None:
        from chainrule.generate.chat import stopping
        from chainrule.generate.session import PrefixCache, vocab_size

        self.options = options
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size(model)
        self.context = None if model.any_length else model.context
        self.name, self.format = chosen_format(options, tokenizer)
        self.plain = self.name in ("plain", "lines")
        sampling = model_sampling(options.sampling, tokenizer, options.given)
        self.sampling = stopping(sampling, tokenizer, self.format)
        self.reset()
        self._check()
        texts = cr.generate.session(model, options.weights, cache=options.cache)
        self.session: cr.generate.Session = PrefixCache(texts)

    def reset(self) -> None:
        system = self.options.system
        self.messages: list[cr.text.Message] = [{"role": "system", "content": system}] if system else []
        self.turn = 0

    @property
    def text(self) -> str:
        """The conversation so far, as it is written for the model."""
        return self.format.render(self.messages, add_generation_prompt=False)

    def answer(self, message: str) -> Iterator[str]:
        """The model's turn after a message, piece by piece; an answer that is broken off was said as far as it came"""
        self.request = self._request(message)
        self.messages.append({"role": "user", "content": message})
        self.session.keep([])
        try:
            lead = "" if self.plain else getattr(self.format, "lead", "")
            for _ in cr.generate.run(self.session, [self.request]):
                piece = self.request.piece
                yield piece.removeprefix(lead)
                lead = "" if piece else lead
        finally:
            self.messages.append({"role": "assistant", "content": self.request.text})
            self.turn += 1

    def record(self, message: str) -> dict[str, object]:
        """The model's turn after a message, for machines"""
        try:
            text = "".join(self.answer(message))
        except DataError as error:
            return {"question": message, "error": str(error)}
        tokens, finish = len(self.request.tokens), self.request.finish
        return {"question": message, "answer": text, "tokens": tokens, "finish": finish}

    def _request(self, message: str) -> cr.generate.Request:
        sampling = replace(self.sampling, seed=self.sampling.seed + self.turn)
        shown = self.options.special
        return cr.generate.Request(
            self._ids(message), sampling, self.vocab_size, self.tokenizer, show_special=shown
        )

    def _check(self) -> None:
        """Refuse what does not fit the model before anybody has written a word."""
        from chainrule.text.chat.formats import NothingWrittenError, written

        try:
            self._request("")
        except NothingWrittenError:  # as a template does that writes contents alone
            written(self.format, [{"role": "user", "content": "Hello!"}])

    def _ids(self, message: str) -> Ids:
        """The conversation with one more message. If it is too long for the model its oldest turns are forgotten."""
        asked: cr.text.Message = {"role": "user", "content": message}
        while True:
            talk = [*self.messages, asked]
            ids = cr.text.chat_ids(self.tokenizer, self.format, talk, special=self.options.special)
            if self.plain or self.context is None or len(ids) < self.context:
                return ids
            first = int(self.messages[:1] != [] and self.messages[0]["role"] == "system")
            if len(self.messages) == first:
                rule = f"must be fewer than {self.context}, the context of the model: make it shorter"
                raise DataError(f"chat: a message of {len(ids)} tokens ({rule})")
            print("note: the conversation fills the context; its oldest turn is forgotten", file=sys.stderr)
            del self.messages[first : first + 2]


def chosen_format(options: Command, tokenizer: cr.text.Tokenizer) -> tuple[Format | None, Renderer]:
    """The format that was asked for, the model's own (without a name), or the play or the lines that it can read."""
    from chainrule.text.chat.formats import FORMATS, plain, unreadable
    from chainrule.text.chat.roles import own_format

    names = sorted({"user", "assistant"} & options.given)
    has_template = tokenizer.conventions.chat_template is not None
    name: Format | None = options.format or (None if has_template else "plain")
    if names and name != "plain":
        has = f"with the format {name}" if name else "for a model with a chat template"
        fix = (" (leave it out, or choose ", Setting("format"), " plain)")
        raise ConfigError("chat: ", Setting(names[0]), f" is given {has}", *fix)
    if name is None:
        return None, own_format(tokenizer)
    format = plain(options.user, options.assistant) if name == "plain" else FORMATS[name]
    if unknown := unreadable(tokenizer, format):
        said = f"the model does not know {', '.join(map(repr, unknown))} of the format {name}"
        if unreadable(tokenizer, FORMATS["lines"]):
            rule = "train on text with these characters and line ends, or use `chainrule sample`"
            raise ConfigError(f"chat: {said} ({rule})")
        if options.format or names:
            raise ConfigError(f"chat: {said} (choose ", Setting("format"), " lines: each turn is a line)")
        print(f"note: {said}: each turn is a line (--format lines)", file=sys.stderr)
        return "lines", FORMATS["lines"]
    return name, format


def messages(prompt: str) -> Iterator[str]:
    """What is typed, line by line, until /quit or the end of standard input"""
    with suppress(ImportError):
        import readline  # noqa: F401  # arrows and history, where there is one
    asks = sys.stdin.isatty()
    said = False
    while True:
        try:
            line = input(prompt if asks else "").strip()
            line.encode()  # where the locale is not UTF-8, Python reads such bytes as lone surrogates
        except EOFError:
            if said or asks:
                return
            raise DataError(
                "chat: standard input is empty (must be a terminal, or have a question on each line)"
            ) from None
        except UnicodeError as error:
            raise DataError("chat: standard input is not UTF-8 (must be text in it)") from error
        if line == "/quit":
            return
        if line:
            said = True
            yield line
