"""How a command ends when something is wrong: one line on stderr, and an exit code that says whose fault it is."""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from chainrule.cli.ranks import rank, stop_all
from chainrule.errors import ChainruleError, Failure
from chainrule.machine import launched

ANOTHER = 10.0  # seconds in which the first rank says what is wrong


class Terminated(KeyboardInterrupt):
    """SIGTERM, or a terminal that was closed: unlike Ctrl-C it is meant for the whole command."""


@contextmanager
def one_line_each() -> Iterator[None]:
    """Show what goes wrong inside in one line. Bad input ends with exit code 2, work that failed with 1."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            yield
        sys.stdout.flush()
    except ChainruleError as error:
        refuse(str(error), code(error))
    except MemoryError as error:
        refuse(f"not enough memory{_asked(error)} (make the model, the batch or the context smaller)")
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
        refuse(f"{error.filename or 'standard output'}: cannot be used ({error.strerror or error})")
    except Exception:
        if launched():  # the others would wait for this one
            traceback.print_exc(file=sys.__stderr__)
            stop_all(1)
        raise


def refuse(message: str, exit_code: int = 2) -> NoReturn:
    mine = rank()
    if mine:
        time.sleep(ANOTHER)  # what is wrong for all is said by the first, which then ends all
    who = f"rank {mine}: " if mine else ""
    with suppress(OSError):  # a terminal that was closed
        line = f"{who}error: {' '.join(message.split())}"
        print(line, file=sys.__stderr__ if who else sys.stderr, flush=True)
    stop_all(exit_code)
    raise SystemExit(exit_code) from None


def code(error: ChainruleError) -> int:
    return 1 if isinstance(error, Failure) else 2


def _asked(error: MemoryError) -> str:
    """How much more memory was asked for, if it was NumPy that asked."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return ""
    from chainrule.cli.render.numbers import size

    return f": {size(math.prod(shape) * dtype.itemsize)} more were asked for"


def _silence() -> None:
    """Let standard output go nowhere: Python would complain when it flushes it at the end."""
    with suppress(OSError, ValueError):  # in tests it is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
