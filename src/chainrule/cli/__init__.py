"""The command `chainrule`: a dataclass per command, in a file that is imported only when it is called."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chainrule.errors import ChainruleError, ConfigError

# Every command: the module that has its dataclass `Command`, or MODULE:NAME for what `command(NAME, WORDS)` there
# returns (without a name, the words decide), and what it does.
COMMANDS = {
    "demo": ("demo", "train a small GPT for two minutes and see what it writes"),
    "train": ("train:", "train a model on a text of your own: ngram, mlp, rnn, gru, lstm, gpt or llama"),
    "train gpt": ("train:gpt", ""),
    "train llama": ("train:llama", ""),
    "train ngram": ("train:ngram", ""),
    "train mlp": ("train:mlp", ""),
    "train rnn": ("train:rnn", ""),
    "train gru": ("train:gru", ""),
    "train lstm": ("train:lstm", ""),
    "train seq2seq": ("train:seq2seq", "train a model that reads one text and writes another, on pairs"),
    "train bert": ("train:bert", "train a model that reads in both directions, on text with hidden words"),
    "train bert-classifier": ("train:bert-classifier", "train a BERT to label texts"),
    "train bert-tagger": ("train:bert-tagger", "train a BERT to label words"),
    "train word2vec": ("train_word2vec:word2vec", "learn a vector for each word of a text"),
    "ladder": ("ladder", "compare every kind of language model on a text, from counting to attention"),
    "eval": ("evaluate", "judge a model: loss, bits per byte, perplexity, accuracy, BLEU, multiple choice"),
    "sample": ("sample", "let a trained model write"),
    "import": ("import_", "take a model of another program: Hugging Face's, GGUF, llama2.c"),
    "export": ("export", "write a model for another program"),
    "chat": ("chat", "talk with a trained model"),
    "diagnose": ("diagnose", "examine a model: losses, activations, gradients, and what to do about them"),
    "replay": ("replay", "make one step of a run again and open it: batch, activations, gradients"),
    "runs list": ("runs_list", "list the runs in a folder with their results"),
    "runs compare": ("runs_compare", "what differs between runs, and their results side by side"),
    "runs report": ("runs_report", "a run as one page to read: curves, samples, configuration"),
    "figures": ("figures", "draw the figures of the lessons"),
    "vectors": ("vectors", "neighbours, analogies and examinations of word vectors"),
    "ngram": ("ngram", "count what follows what in a text: n-grams, smoothing, samples"),
    "data list": ("data", "list the corpora that can be trained on"),
    "data get": ("data_get", "fetch a named corpus, checked against its hash"),
    "data stats": ("data_stats", "count documents, characters, tokens and copies"),
    "data dedup": ("data_dedup", "leave out copies, near copies and poor texts"),
    "data build": ("data_build", "turn documents into token shards"),
    "tokenize train": ("tokenize_train", "learn a tokenizer from texts"),
    "tokenize encode": ("tokenize_encode", "print the token ids of a text"),
    "tokenize decode": ("tokenize_decode", "print the text of token ids"),
    "tokenize show": ("tokenize_show", "show a text in its tokens, or how they are learnt"),
    "count": ("count:family", "count the parameters, the work and the memory of a model before making it"),
    "doctor": ("doctor", "examine this machine, the data for a model, or how a run went"),
}


def main(args: Sequence[str] | None = None) -> None:
    """Run one command. Bad input is one line on stderr and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a model may write what the terminal cannot show
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            _dispatch(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()
    except ChainruleError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from None
    except MemoryError as error:
        print(f"error: {_too_large(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader has gone, as in `chainrule sample RUN | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except OSError as error:  # such as a full disk behind standard output
        what = error.filename or "standard output"
        print(f"error: {what}: cannot be used ({error.strerror or error})", file=sys.stderr)
        raise SystemExit(2) from None


def _too_large(error: MemoryError) -> str:
    """How much more memory was asked for, if the error says so; not the shape of an array that nobody knows."""
    asked = re.search(r"llocate ([\d.]+ \w+) for", str(error))
    more = f": {asked[1]} more were asked for" if asked else ""
    return f"not enough memory{more} (make the model, the batch or the context smaller)"


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _dispatch(args: list[str]) -> None:
    if not args or args[0] in ("-h", "--help"):
        print(_overview())
        return
    if args[0] == "--version":
        from chainrule import __version__

        print(f"chainrule {__version__}")
        return
    if args[1:2] in (["-h"], ["--help"]) and args[0] not in COMMANDS:
        print(_overview(args[0]))
        return
    words = next((n for n in (2, 1) if " ".join(args[:n]) in COMMANDS), 0)
    if not words:
        raise ConfigError(f"{' '.join(args[:2])!r}: no such command ({_suggestion(args)})")
    name = " ".join(args[:words])
    file, colon, kind = COMMANDS[name][0].partition(":")
    with _quick_to_leave():
        from chainrule.cli.parse import options, parse
        from chainrule.cli.wording import flagged

        module = importlib.import_module(f"chainrule.cli.{file}")
    rest = args[words:]
    command = module.command(kind, rest) if colon else module.Command
    try:
        parse(command, f"chainrule {name}", [*getattr(command, "before", ()), *rest]).run()
    except ChainruleError as error:  # it names the fields of a dataclass; the person gave flags
        raise type(error)(flagged(str(error), options(command))) from error


@contextmanager
def _quick_to_leave() -> Iterator[None]:
    """While modules load, Ctrl-C ends the process at once: nothing is to be cleaned up, and an import may lose or
    disguise an exception."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: Any) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def _overview(group: str = "") -> str:
    """All commands, or those that begin with a word if there are any."""
    about = {name: about for name, (_, about) in COMMANDS.items() if about}
    of_group = {name: text for name, text in about.items() if name.split()[0] == group}
    width = max(map(len, about)) + 2
    listed = [f"  {name:<{width}}{text}" for name, text in (of_group or about).items()]
    return "\n".join(
        [
            "usage: chainrule COMMAND [OPTIONS]",
            "",
            *listed,
            "",
            "`chainrule COMMAND --help` lists the options of a command. For a start: chainrule demo",
        ]
    )


def _suggestion(args: list[str]) -> str:
    """Of the commands that begin with the same word, if there are any, that which was meant, or all."""
    known = [name for name, (_, about) in COMMANDS.items() if about]
    group = {name.partition(" ")[2]: name for name in known if name.split()[0] == args[0]}
    meant = group or {name: name for name in (*known, "--help", "--version")}
    for said in args[1:2] if group else (" ".join(args[:2]), args[0]):
        if near := difflib.get_close_matches(said, meant, n=1):
            return f"did you mean {meant[near[0]]}?"
    return f"there are {', '.join(group.values() or known)}"
