"""Files that are there completely or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chainrule import files
from chainrule.errors import ConfigError, Failure
from chainrule.files import alone, new_file, new_folder, taken, write


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    with new_file(path) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    with pytest.raises(ConfigError, match="exists already"), new_file(path):
        pass
    write(path, b"whole")
    assert path.read_bytes() == b"whole" and os.listdir(path.parent) == ["file"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), new_file(path, replace=True) as file:
        file.write(b"ne")
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "folder") as folder:
        (folder / "part").touch()
        raise KeyboardInterrupt
    for make in (new_file, new_folder):
        with pytest.raises(KeyboardInterrupt), make(tmp_path / "a" / "b" / "c"):  # type: ignore[operator]
            raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_directories_stay_above_what_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though another process takes it away at once, and they are empty."""

    def taken_away(folder: Path) -> None:
        for path in folder.iterdir():
            (path.rmdir if path.is_dir() else path.unlink)()

    monkeypatch.setattr(files, "flush_folder", taken_away)
    write(tmp_path / "a" / "file", b"new")
    with new_folder(tmp_path / "b" / "folder"):
        pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_directory_that_another_removes_is_made_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """One that has failed removes it: it was made for both, and is empty."""
    made, removed = Path.mkdir, []

    def lost(path: Path, *given: Any, **options: Any) -> None:
        made(path, *given, **options)
        if len(removed) < times:
            removed.append(path)
            path.rmdir()

    monkeypatch.setattr(Path, "mkdir", lost)
    path = tmp_path / "deep" / "file"
    if times == 1:
        write(path, b"new")
        assert path.read_bytes() == b"new"
    else:
        with pytest.raises(ConfigError, match="file: cannot be written"):
            write(path, b"new")
        assert not os.listdir(tmp_path)


@pytest.mark.parametrize("place", ["{long}", "{long}/file", "new/{long}/file"])
def test_a_name_that_is_too_long_is_refused_in_one_line(tmp_path: Path, place: str) -> None:
    path = tmp_path / place.format(long="a" * 300)
    refused = r"(a|file): cannot be written \(File name too long\)"
    for begin in (new_file, new_folder):
        with pytest.raises(ConfigError, match=refused), begin(path):  # type: ignore[operator]
            pass
    with pytest.raises(ConfigError, match=refused):
        write(path, b"new")
    assert not os.listdir(tmp_path)


def test_a_link_is_followed_and_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    os.mkfifo(pipe)
    with pytest.raises(ConfigError, match="is not a regular file"):
        write(pipe, b"new")
    assert pipe.is_fifo()


def test_one_at_a_time(tmp_path: Path) -> None:
    refused = pytest.raises(ConfigError, match="another process is at work here")
    with alone(tmp_path), refused, alone(tmp_path):
        pass
    with alone(tmp_path):
        assert taken(tmp_path)
    assert not taken(tmp_path)


def test_a_folder_that_is_held_is_known_again(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with alone(folder) as check:
        check()
        folder.rename(tmp_path / "elsewhere")
        for there in (False, True):
            if there:
                folder.mkdir()
            with pytest.raises(Failure, match="was removed or replaced"):
                check()


def test_what_a_killed_process_began_is_removed_and_what_a_live_one_writes_is_not(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    path = tmp_path / "a[1].json"
    left, other, mine = (tmp_path / f".{path.name}.{n}.partial" for n in (gone.pid, os.getppid(), "x"))
    for partial in (left, other, mine):
        partial.touch()
    (tmp_path / f".out.{gone.pid}.partial").mkdir()
    write(path, b"new")
    with new_folder(tmp_path / "out"):
        pass
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([other.name, mine.name, "a[1].json", "out"])


@pytest.mark.parametrize("error", [errno.EBADF, errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """NFS answers EBADF for a directory: it is not another process that is at work."""
    fcntl = pytest.importorskip("fcntl")

    def without_locks(*handle: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", without_locks)
    assert not taken(tmp_path)
    with alone(tmp_path) as check:
        check()


def test_a_leftover_that_cannot_be_removed_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another user, in a directory such as /tmp."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = tmp_path / f".a.json.{gone.pid}.partial"
    left.touch()

    def refused(*path: object, **options: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(Path, "unlink", refused)
    write(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new" and left.exists()
