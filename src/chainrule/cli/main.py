"""The entry: find the command, read its options and run it.

A command's file is imported only when the command is called, so that the list of commands is there at once.
"""

from __future__ import annotations

import codecs
import importlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from chainrule.cli.exits import Terminated, code, one_line_each, refuse
from chainrule.cli.overview import overview, suggestion
from chainrule.cli.ranks import at_work, together
from chainrule.cli.table import COMMANDS
from chainrule.errors import ChainruleError, ConfigError, Setting
from chainrule.machine import launched

OTHERS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def main(args: Sequence[str] | None = None) -> None:
    """Run one command. Bad input is one line on stderr and exit code 2, work that failed is 1."""
    if args is None:
        _use_utf8()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a model may write what the terminal cannot show
    with one_line_each(), _stopped_alike():
        _dispatch(list(sys.argv[1:] if args is None else args))


def _use_utf8() -> None:
    """Begin again with UTF-8 where Python was told to know ASCII only: names and prompts hold other letters."""
    ascii_only = codecs.lookup(sys.getfilesystemencoding()).name == "ascii"
    if ascii_only and sys.executable and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _dispatch(args: list[str]) -> None:
    for word in args:
        try:
            word.encode()
        except UnicodeEncodeError:  # bytes that Python could not decode, which no file of ours could hold
            rule = "must be: rename the file, or write the text as UTF-8"
            raise ConfigError(f"{word!r}: not UTF-8 ({rule})") from None
    if not args or args[0] in ("-h", "--help"):
        print(overview())
        return
    if args[0] == "--version":
        from chainrule import __version__

        print(f"chainrule {__version__}")
        return
    if args[1:2] in (["-h"], ["--help"]) and args[0] not in COMMANDS:
        print(overview(args[0]))
        return
    words = next((n for n in (2, 1) if " ".join(args[:n]) in COMMANDS), 0)
    if not words:
        group = any(name.startswith(f"{args[0]} ") for name in COMMANDS)
        if group and len(args) == 1:
            raise ConfigError(f"{args[0]}: no command alone ({suggestion(args)})")
        raise ConfigError(f"{' '.join(args[: 1 + group])!r}: no such command ({suggestion(args)})")
    name = " ".join(args[:words])
    together(name)
    with at_work(name) as here:
        if here:
            _run(name, args[words:])


def _run(name: str, words: list[str]) -> None:
    """Run a command with the words that follow its name."""
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
        refuse(f"{error.spelled(spell)}{see}")
    with _quick_to_leave():
        importlib.import_module("chainrule.autograd")  # NumPy and the kernels: every room needs them
    try:
        made.run()
    except ChainruleError as error:
        _answer_for(error, name)
        refuse(error.spelled(spell), code(error))


def _answer_for(error: ChainruleError, name: str) -> None:
    """A command answers by its own name: options of sampling are those of `chat` too."""
    commands = {word for each in COMMANDS for word in each.split()}
    if error.owner in commands and error.owner not in name.split():
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
def _stopped_alike() -> Iterator[None]:
    """SIGTERM and a terminal that is closed interrupt a command as Ctrl-C does: what it began is taken back."""
    heard = [] if launched() else _unclaimed(*OTHERS)  # ranks are ended by mpiexec
    for number in heard:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)


def _terminate(*_: Any) -> NoReturn:
    raise Terminated


@contextmanager
def _quick_to_leave() -> Iterator[None]:
    """While modules load, a signal ends the process at once: an import may lose or disguise an exception."""
    before = {number: signal.getsignal(number) for number in _unclaimed(signal.SIGINT, *OTHERS)}
    for number in before:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _unclaimed(*numbers: signal.Signals) -> list[signal.Signals]:
    """Those that nobody else treats, if this thread may."""
    if threading.current_thread() is not threading.main_thread():
        return []
    usual = (signal.SIG_DFL, signal.default_int_handler, _terminate)
    return [number for number in numbers if signal.getsignal(number) in usual]


def _leave(*_: Any) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)
