"""The entry: find the command, read its options, run it, and show what goes wrong in one line.

A command's file is imported only when the command is called, so that the list of commands is there at once.
"""

from __future__ import annotations

import codecs
import importlib
import io
import math
import os
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from chainrule.cli.args.familiar import command_hint
from chainrule.cli.render import wrap
from chainrule.errors import ChainruleError, ConfigError, Failure, Setting
from chainrule.machine import launched
from chainrule.suggest import closest

SHARED = ("train", "tune")  # commands that several processes can work on
ANOTHER = 10.0  # seconds in which the first rank says what is wrong
HEARD = (
    1.0  # seconds in which `mpiexec` passes on what a rank has said: what it still holds at an abort is lost
)
PLAIN = (
    "gpt",
    "llama",
    "neox",
    "ngram",
    "mlp",
    "rnn",
    "gru",
    "lstm",
)  # families that the overview lists in one line
# Every command: the file under `commands` with its dataclass `Command`, or FILE:NAME for what `command(NAME, WORDS)` of
# that file returns; and what it does.
COMMANDS = {
    "demo": ("demo", "train a small GPT for two minutes and see what it writes"),
    "train": ("train.family:", "train a model on a text of your own: ngram, mlp, rnn, gru, lstm, gpt, llama or neox"),
    **{f"train {name}": (f"train.family:{name}", "") for name in PLAIN},
    "train seq2seq": ("train.family:seq2seq", "train an encoder-decoder on pairs of texts, such as translations"),
    "train t5": ("train.family:t5", "train an encoder-decoder that knows positions by their distance"),
    "train bert": ("train.family:bert", "train an encoder that reads in both directions, on text with masked words"),
    "train bert-classifier": ("train.family:bert-classifier", "train a BERT to label texts"),
    "train bow-classifier": (
        "train.family:bow-classifier",
        "train a bag of words to label texts: the baseline of every classifier",
    ),
    "train bert-tagger": ("train.family:bert-tagger", "train a BERT to label words"),
    "train bert-embedder": ("train.family:bert-embedder", "train a BERT to turn texts into vectors, on pairs of texts"),
    "train word2vec": ("train.word2vec", "learn a vector for each word of a text"),
    "tune": ("tune.tune:", "tune a trained model: LoRA, adapters, prefixes, or all weights"),
    "tune advise": ("tune.advise", "which method of tuning suits the data and the needs"),
    "tune forgetting": ("tune.forgetting", "tune with each remedy against forgetting, and draw gain against loss"),
    "tune distill": ("tune.distill", "let a teacher answer questions, for a student to learn from"),
    "tune compare": ("tune.compare", "show what tuning changed: right answers, and four groups of behavior"),
    "tune show-mask": ("tune.show_mask", "show which tokens of conversations are trained in instruction tuning"),
    "merge": ("merge", "add what was tuned into the weights of the base, as a plain model"),
    "ladder": ("ladder", "compare every kind of language model on a text, from counting to attention"),
    "eval": ("evaluate", "evaluate a model: loss, bits per byte, perplexity, accuracy, BLEU, multiple choice"),
    "align reward": ("align.reward", "train a reward model: which of two answers is preferred, as one number each"),
    "align dpo": ("align.dpo", "teach a language model which of two answers is preferred, by DPO"),
    "align ppo": ("align.ppo", "let a language model learn from the reward of its own answers: PPO, REINFORCE, GRPO"),
    "pipeline": ("pipeline", "from a text to an aligned model: all stages on built-in data, with a report"),
    "sample": ("sample", "generate text with a trained model"),
    "embed": ("embed", "turn texts into vectors, or show which are near each other"),
    "import": ("import_", "import a model of another program: Hugging Face, GGUF, llama2.c"),
    "export": ("export", "write a model for another program"),
    "chat": ("chat", "talk with a trained model"),
    "studio": ("studio", "open a page in the browser that shows runs, tokens and every gradient"),
    "diagnose": ("diagnose", "look inside a model: losses, activations, gradients, and what to do about them"),
    "replay": ("runs.replay", "repeat one step of a run and open it: batch, activations, gradients"),
    "runs list": ("runs.list", "list the runs in a directory with their results"),
    "runs compare": ("runs.compare", "show what differs between runs, and their results side by side"),
    "runs report": ("runs.report", "write a run as one page: curves, samples, configuration"),
    "figures": ("figures", "draw the figures of the lessons"),
    "vectors": ("vectors", "neighbors, analogies and evaluations of word vectors"),
    "ngram": ("ngram", "count what follows what in a text: n-grams, smoothing, samples"),
    "data list": ("data.list", "list the corpora that can be trained on"),
    "data get": ("data.get", "fetch a named corpus, checked against its hash"),
    "data stats": ("data.stats", "count documents, characters, tokens and copies"),
    "data dedup": ("data.dedup", "leave out copies, near copies and poor texts"),
    "data instruct": ("data.instruct", "turn labeled texts or pairs into instructions"),
    "data mix": ("data.mix", "mix conversations of several files in given proportions"),
    "data build": ("data.build", "turn documents into token shards"),
    "tokenize train": ("tokenize.train", "learn a tokenizer from texts"),
    "tokenize encode": ("tokenize.encode", "print the token ids of a text"),
    "tokenize decode": ("tokenize.decode", "print the text of token ids"),
    "tokenize show": ("tokenize.show", "show the tokens of a text, or how they are learned"),
    "count": ("count:family", "count the parameters, operations and memory of a model before making it"),
    "scale plan": ("scale.plan", "plan a scaling study, or what to train with a compute budget"),
    "scale run": ("scale.run", "train every model of a plan, each as a run, and write their results as one table"),
    "scale fit": ("scale.fit", "fit a scaling law to a table of runs, with intervals and doubts"),
    "scale predict": ("scale.predict", "predict the loss of a run by a fitted law"),
    "doctor": ("doctor", "examine this machine, the data for a model, or how a run went"),
}  # fmt: skip


def main(args: Sequence[str] | None = None) -> None:
    """Run one command. Bad input is one line on stderr and exit code 2, work that failed is 1."""
    if args is None:
        _use_utf8()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a model may write what the terminal cannot show
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            _dispatch(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()
    except ChainruleError as error:
        _refuse(str(error), _code(error))
    except MemoryError as error:
        _refuse(f"not enough memory{_asked(error)} (make the model, the batch or the context smaller)")
    except KeyboardInterrupt:
        with suppress(OSError):
            print("interrupted", file=sys.stderr, flush=True)
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader has gone, as in `chainrule sample RUN | head`
        _silence()
        raise SystemExit(141) from None
    except SystemExit:
        try:
            sys.stdout.flush()
        except OSError:  # a terminal that was closed: the exit code is to stay
            _silence()
        raise
    except OSError as error:  # such as a full disk behind standard output
        _refuse(f"{error.filename or 'standard output'}: cannot be used ({error.strerror or error})")
    except Exception:
        if launched():  # the others would wait for this one
            traceback.print_exc(file=sys.__stderr__)
            _stop_all(1)
        raise


def _use_utf8() -> None:
    """Begin again with UTF-8 where Python was told to know ASCII only: names and prompts hold other letters."""
    ascii_only = codecs.lookup(sys.getfilesystemencoding()).name == "ascii"
    if ascii_only and sys.executable and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _silence() -> None:
    """Let standard output go nowhere: Python would complain when it flushes it at the end."""
    with suppress(OSError, ValueError):  # in tests it is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(message: str, code: int = 2) -> NoReturn:
    rank = _rank()
    if rank:
        time.sleep(ANOTHER)  # what is wrong for all is said by the first, which then ends all
    who = f"rank {rank}: " if rank else ""
    with suppress(OSError):  # a terminal that was closed
        print(
            f"{who}error: {' '.join(message.split())}", file=sys.__stderr__ if who else sys.stderr, flush=True
        )
    _stop_all(code)
    raise SystemExit(code) from None


def _stop_all(code: int) -> None:
    """End the processes that `mpiexec` started together with this one."""
    if launched():
        from chainrule.distributed import world

        with suppress(ConfigError):
            ranks = world()
            time.sleep(HEARD)
            ranks.stop(code)


def _rank() -> int:
    """Of this process among those that `mpiexec` started together; 0 if it is alone."""
    if not launched():
        return 0
    from chainrule.distributed import world

    try:
        return world().rank
    except ConfigError:  # without mpi4py each process is alone, and says so
        return 0


def _together(name: str) -> None:
    """Let the first of several ranks speak for all. Only a training can be shared."""
    if not launched():
        return
    if _rank():
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if name.split()[0] not in SHARED:
        rule = f"must be one process: only {' and '.join(SHARED)} can be shared"
        raise ConfigError(f"{name}: started as several processes ({rule})")


def _code(error: ChainruleError) -> int:
    return 1 if isinstance(error, Failure) else 2


def _asked(error: MemoryError) -> str:
    """How much more memory was asked for, if it was NumPy that asked."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return ""
    from chainrule.cli.render.numbers import size

    return f": {size(math.prod(shape) * dtype.itemsize)} more were asked for"


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _dispatch(args: list[str]) -> None:
    for word in args:
        try:
            word.encode()
        except UnicodeEncodeError:  # bytes that Python could not decode, which no file of ours could hold
            rule = "must be: rename the file, or write the text as UTF-8"
            raise ConfigError(f"{word!r}: not UTF-8 ({rule})") from None
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
        group = any(name.startswith(f"{args[0]} ") for name in COMMANDS)
        if group and len(args) == 1:
            raise ConfigError(f"{args[0]}: no command alone ({_suggestion(args)})")
        raise ConfigError(f"{' '.join(args[: 1 + group])!r}: no such command ({_suggestion(args)})")
    _run(" ".join(args[:words]), args[words:])


def _run(name: str, words: list[str]) -> None:
    """Run a command with the words that follow its name."""
    _together(name)
    words = _lifted(words)
    file, colon, kind = COMMANDS[name][0].partition(":")
    with _quick_to_leave():
        from chainrule.cli.args.errors import UsageError
        from chainrule.cli.args.options import options_of
        from chainrule.cli.args.outputs import check_outputs
        from chainrule.cli.args.reader import read

        module = importlib.import_module(f"chainrule.cli.commands.{file}")
    command = module.command(kind, words) if colon else module.Command
    options = options_of(command)
    program = f"chainrule {name}"
    if {"-h", "--help"} & set(words):
        from chainrule.cli.render.help import help_text

        print(help_text(command, program, options))
        raise SystemExit(0)
    flags = {option.name: option.flag for option in options if not option.argument}

    def spell(setting: Setting) -> str:  # an error names the fields of a dataclass; the person gave flags
        return flags.get(setting, setting)

    try:
        made = read(command, options, words)
        check_outputs(options, made)
    except ChainruleError as error:
        _answer_for(error, name)
        about_options = isinstance(error, UsageError) or any(isinstance(part, Setting) for part in error.args)
        see = f"; see {getattr(command, 'called', program)} --help" if about_options else ""
        _refuse(f"{error.spelled(spell)}{see}")
    with _quick_to_leave():
        importlib.import_module("chainrule.autograd")  # NumPy and the kernels: every room needs them
    try:
        made.run()
    except ChainruleError as error:
        _answer_for(error, name)
        _refuse(error.spelled(spell), _code(error))


def _answer_for(error: ChainruleError, name: str) -> None:
    """A command answers by its own name: options of sampling are those of `chat` too."""
    owner, commands = getattr(error, "owner", ""), {word for each in COMMANDS for word in each.split()}
    if owner in commands and owner not in name.split():
        error.args = (f"{name}: ", *error.args[1:])


def _lifted(words: list[str]) -> list[str]:
    """Take `--unpack-limit SIZE`, which every command knows, from the words: how far compressed files may grow."""
    rest: list[str] = []
    given = iter(words)
    for word in given:
        name, equals, value = word.partition("=")
        if name != "--unpack-limit":
            rest.append(word)
            continue
        value = value if equals else next(given, "")
        if not re.fullmatch(r"\d{1,12}[kMGT]?B?", value):
            said = f"got {value!r}" if value else "is missing its value"
            raise ConfigError(f"--unpack-limit: {said} (must be a number of bytes, such as 800M or 10G)")
        os.environ["CHAINRULE_UNPACK_LIMIT"] = value
    return rest


@contextmanager
def _quick_to_leave() -> Iterator[None]:
    """While modules load, Ctrl-C ends the process at once: an import may lose or disguise an exception."""
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
    column, width = max(map(len, about)) + 4, wrap.width()
    shown = (of_group or about).items()
    listed = [line for name, text in shown for line in wrap.entry(f"  {name}", text, column, width)]
    end = (
        "`chainrule COMMAND --help` lists the options of a command. For a start: chainrule demo",
        "Every command that reads data knows --unpack-limit SIZE (such as 10G), for compressed files that grow much.",
    )
    closing = [line for sentence in end for line in wrap.paragraph(sentence, width)]
    return "\n".join(["usage: chainrule COMMAND [OPTIONS]", "", *listed, "", *closing])


def _suggestion(args: list[str]) -> str:
    """Of the commands that begin with the same word, if there are any, the one that was meant, or all."""
    known = [name for name, (_, about) in COMMANDS.items() if about]
    if group := {name.partition(" ")[2]: name for name in known if name.split()[0] == args[0]}:
        near = closest(args[1], group) if args[1:] else []
        return f"did you mean {group[near[0]]}?" if near else f"there are {', '.join(group.values())}"
    if hint := command_hint(args[0]):
        return hint
    alone = (*COMMANDS, "--help", "--version")  # what can be typed as it is
    near = closest(args[0], {*known, *alone, *(name.split()[0] for name in known)})
    if not near:
        return f"there are {', '.join(known)}"
    meant = next((name for name in (" ".join([*near, *args[1:2]]), *near) if name in alone), None)
    return f"did you mean {meant}?" if meant else _suggestion([*near, *args[1:]])
