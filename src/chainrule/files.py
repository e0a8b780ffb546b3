"""Atomic writing: files and folders appear completely or not at all, even after a crash; locks; values of JSON."""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from chainrule.errors import ConfigError, DataError, Failure, FileName, FormatError, kind_of

# What NAME is called while the process of this number writes it.
PARTIAL = re.compile(r"\.(.+)\.(\d+)\.partial")
TRIES, PAUSE = 5, 0.02  # seconds: who only asks whether a lock is taken holds it for a moment


def check_regular(path: Path) -> None:
    """Refuse what exists and is neither a file nor a directory: a pipe would keep its reader waiting."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(FileName(path), ": not a regular file (must be a file or a directory)")


def regular_bytes(path: Path) -> bytes:
    """The content of a file; an OSError or a DataError if there is none to be read."""
    check_regular(path)
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Write the content of a file, replacing the old one."""
    with new_file(path, replace=True) as file:
        file.write(content)


@contextmanager
def new_file(path: Path, *, replace: bool = False) -> Iterator[IO[bytes]]:
    """A file to write; it gets its name when it is completely on disk, and an error leaves nothing.

    With `replace` an existing file stays until then and is replaced; a link is followed to its file.
    """
    path = path.resolve()
    (check_file if replace else check_new_file)(path)
    partial, new = _partial(path), _missing_parents(path)
    try:
        with _opened(partial) as file:
            _drop_leftovers(path)
            yield file
            flush(file)
        partial.replace(path)
        flush_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):  # it was renamed, or never created
            partial.unlink()
        _remove_empty(new)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from error
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill; it gets its name when it is complete, and an error leaves nothing.

    The caller must flush the files in it.
    """
    check_new(path)
    partial, new = _partial(path), _missing_parents(path)
    try:
        _drop_leftovers(path)
        partial.mkdir(parents=True)
        yield partial
        flush_folder(partial)
        if path.is_dir():
            path.rmdir()  # an empty folder may exist
        partial.rename(path)
        flush_folder(path.parent)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        _remove_empty(new)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from error
        raise


@contextmanager
def alone(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold a folder for this process; the system lets go if the process dies.

    The folder itself is locked, not a file in it, which could be removed. Yields a check that it is still the one at
    this path: a Failure if it was removed or replaced.
    """
    try:
        handle = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    except OSError as error:
        raise _cannot_write(folder, error) from error
    if handle is None:  # no such locks there
        yield lambda: None
        return
    try:
        if not _locked(handle, TRIES):
            rule = "wait for it, or stop it"
            raise ConfigError(f"{folder}: another process is at work here ({rule})")
        yield lambda: _check_same(folder, handle)
    finally:
        os.close(handle)


def taken(folder: Path) -> bool:
    """Whether another process holds the folder by `alone`; writes nothing."""
    if os.name != "posix" or not folder.is_dir():
        return False
    handle = os.open(folder, os.O_RDONLY)
    try:
        return not _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int, tries: int = 1) -> bool:
    """Lock an open folder unless another process has."""
    import fcntl

    for left in reversed(range(tries)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE if left else 0)
        except OSError:  # a file system without locks of directories, such as NFS: nobody can hold one there
            return True
        else:
            return True
    return False


def _check_same(folder: Path, handle: int) -> None:
    try:
        there = os.path.samestat(folder.stat(), os.fstat(handle))
    except OSError:
        there = False
    if not there:
        raise Failure(
            f"{folder}: was removed or replaced by another while in use (nothing more is written there)"
        )


def flush(file: IO[bytes]) -> None:
    """Wait until the written data is on disk."""
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system supports it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def json_value(content: bytes, kind: type = dict, once: Callable[..., Any] | None = None) -> Any:
    """The object, or the list, in the content of a JSON file; `once` makes objects of their names and values."""
    try:
        value = json.loads(content, object_pairs_hook=once)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON ({error})") from error
    if not isinstance(value, kind):
        raise FormatError(f"holds {kind_of(value)} (must be {'a list' if kind is list else 'an object'})")
    return value


def plain(value: Any) -> Any:
    """The same dicts, lists and numbers for JSON, which has no NaN and no infinity: None stands for these."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_number(value: Any) -> bool:
    """A number of JSON; True and False, which Python counts as integers, are not, nor what no float can hold."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _partial(path: Path) -> Path:
    return path.absolute().with_name(f".{path.absolute().name}.{os.getpid()}.partial")


def _opened(partial: Path) -> IO[bytes]:
    """A new file, with the folders above it."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        return partial.open("wb")
    except FileNotFoundError:  # another process has failed, and removed the folder, which was empty
        partial.parent.mkdir(parents=True, exist_ok=True)
        return partial.open("wb")


def _missing_parents(path: Path) -> list[Path]:
    """The folders above a path that do not exist yet, the innermost first."""
    return [folder for folder in path.absolute().parents if not folder.exists()]


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders that have stayed empty, from the innermost on."""
    for folder in folders:
        with suppress(OSError):  # it has something in it, or was never made
            folder.rmdir()


def is_partial(path: Path) -> bool:
    """What a process has begun to write, which is not under its name yet."""
    return PARTIAL.fullmatch(path.name) is not None


def as_given(path: Path) -> str:
    """A path as a person wrote it: of a web address `Path` drops a slash."""
    return re.sub(r"^([a-z]+):/(?=[^/])", r"\1://", str(path))


def _drop_leftovers(path: Path) -> None:
    """Remove what processes that are no more began to write under this name; what cannot be removed stays."""
    for partial in path.absolute().parent.glob(f".{glob.escape(path.name)}.*.partial"):
        number = PARTIAL.fullmatch(partial.name)
        if number and not _alive(int(number[2])):
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                with suppress(OSError):  # of another user
                    partial.unlink()


def _alive(process: int) -> bool:
    """Whether there is a process of this number; always true where one cannot ask."""
    if os.name != "posix" or process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user, or no such number
        return True
    return True


def check_new(path: Path) -> None:
    """Refuse to write what exists, but for an empty directory."""
    _check_parent(path)
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise ConfigError(f"{path}: exists already (choose another name, or remove it)")


def check_new_file(path: Path) -> None:
    """Refuse to write a file where there is one, or a directory."""
    check_file(path)
    check_new(path)


def check_file(path: Path) -> None:
    """Refuse to replace what is no file."""
    _check_parent(path)
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: is not a regular file (choose another name)")


def check_replaced(path: Path, endings: Sequence[str]) -> None:
    """Refuse to replace what is no file, or a file of another kind."""
    check_file(path)
    if path.exists() and path.suffix not in endings:
        rule = f"only a file that ends in {' or '.join(endings)} is replaced"
        raise ConfigError(f"{path}: exists already ({rule}: choose another name, or remove it)")


def check_folder(path: Path) -> None:
    """Refuse to write files into what is no directory."""
    _check_parent(path)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path}: is not a directory (choose another name)")


def _check_parent(path: Path) -> None:
    """The directory that a path is in, or the nearest that exists, must be one to write in."""
    try:
        path.exists()  # may fail itself: for a name that is too long
        there = next((parent for parent in path.absolute().parents if parent.exists()), None)
    except OSError as error:
        raise _cannot_write(path, error) from error
    if there is not None and not there.is_dir():
        raise _cannot_write(path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))


def _cannot_write(path: Path, error: OSError) -> ConfigError:
    # A file may be in a folder that is not complete: the name to say is the one that it was to get.
    whole = Path(*(PARTIAL.sub(r"\1", part) for part in path.parts))
    return ConfigError(f"{whole}: cannot be written ({error.strerror or error})")
