"""Processes that train one model together: who they are, and sums over all of them.

`mpiexec -n 4 chainrule train ...` starts four; each is a rank. A sum is made in a fixed order, rank 0 first, by cutting
the array into one shard per rank: every rank gets all copies of its shard, adds them up one after the other, and
sends the result to all (reduce-scatter, then all-gather). MPI's own sum may take another order, and so give other bits,
from one network or message size to the next. Each rank sends and receives what a ring would, 2 (n - 1)/n of the array;
a ring needs less memory at a time, this needs one more copy of what is under way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from chainrule import native
from chainrule.errors import ConfigError
from chainrule.machine import launched
from chainrule.types import Array

LOCAL = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")  # of them, those on this machine
LINE = 16  # elements: a shard begins on a line of the cache, as parameters do
T = TypeVar("T")


class Pending:
    """Something under way between ranks."""

    def done(self) -> bool:
        """Is it at its end? Asking moves it on: MPI works only while it is called."""
        return True

    def wait(self) -> None:
        """Until it is."""


class Communicator:
    """One process alone; a subclass joins several."""

    rank = 0
    size = 1

    @property
    def first(self) -> bool:
        """This is the process that speaks, logs and saves."""
        return self.rank == 0

    def shards(self, length: int) -> list[slice]:
        """An array of this length cut into one shard for each rank, nearly alike."""
        lines = -(-length // LINE)
        ends = [min(length, LINE * (lines * rank // self.size)) for rank in range(self.size + 1)]
        return [slice(*pair) for pair in pairwise(ends)]

    def sum(self, array: Array) -> None:
        """Replace an array, flat and contiguous, by the sum of those of all ranks, in the order of the ranks."""
        self.reduce_scatter(array).wait()
        self.all_gather(array).wait()

    def reduce_scatter(self, array: Array) -> Pending:
        """Replace this rank's shard of an array by the sum of those of all ranks, in their order."""
        return Pending()

    def all_gather(self, array: Array) -> Pending:
        """Fill an array with the shards of all ranks."""
        return Pending()

    def to_first(self, array: Array) -> list[Array]:
        """The flat arrays of all ranks, for the first; nothing for the others."""
        return [array]

    def any(self, asked: bool) -> bool:
        """Is it so for one of the ranks?"""
        return asked

    def from_first(self, value: T) -> T:
        """What the first rank has."""
        return value

    def stop(self, code: int) -> None:
        """End all ranks at once: one of them cannot continue."""


class MPIPending(Pending):
    """A request of MPI, and what is left to do when it is at its end."""

    def __init__(self, request: Any, then: Callable[[], None] = lambda: None) -> None:
        self.request = request
        self.then: Callable[[], None] | None = then

    def done(self) -> bool:
        if self.then is not None and self.request.Test():
            self._end()
        return self.then is None

    def wait(self) -> None:
        if self.then is not None:
            self.request.Wait()
            self._end()

    def _end(self) -> None:
        then, self.then = self.then, None
        assert then is not None
        then()


class MPICommunicator(Communicator):
    """Ranks of MPI."""

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self.comm = mpi.COMM_WORLD
        # What is under way on one communicator must begin in the same order on all ranks. Scatters do, and gathers
        # do, but which of a gather and a later scatter comes first depends on the moment.
        self.scatters, self.gathers = self.comm.Dup(), self.comm.Dup()
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)

    def reduce_scatter(self, array: Array) -> Pending:
        counts, starts, kind = self._layout(array)
        own = counts[self.rank]
        copies = np.empty((self.size, own), array.dtype)  # of this rank's shard, one from each
        received = [own] * self.size, [own * rank for rank in range(self.size)]
        request = self.scatters.Ialltoallv([array, (counts, starts), kind], [copies, received, kind])

        def add_up() -> None:
            total = array[starts[self.rank] : starts[self.rank] + own]
            total[...] = copies[0]
            for copy in copies[1:]:
                total += copy

        return MPIPending(request, add_up)

    def all_gather(self, array: Array) -> Pending:
        counts, starts, kind = self._layout(array)
        return MPIPending(self.gathers.Iallgatherv(self.mpi.IN_PLACE, [array, (counts, starts), kind]))

    def _layout(self, array: Array) -> tuple[list[int], list[int], Any]:
        """The lengths of the shards, where they begin, and the kind of number."""
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise ConfigError(f"sum over ranks: array {array.shape} (must be flat and contiguous)")
        cuts = self.shards(array.size)
        lengths, starts = [cut.stop - cut.start for cut in cuts], [cut.start for cut in cuts]
        return lengths, starts, self.mpi._typedict[array.dtype.char]

    def to_first(self, array: Array) -> list[Array]:
        sizes = self.comm.allgather(array.size)
        if not self.first:
            self.comm.Send(array, dest=0)
            return []
        found = [array, *(np.empty(size, array.dtype) for size in sizes[1:])]
        for rank in range(1, self.size):
            self.comm.Recv(found[rank], source=rank)
        return found

    def any(self, asked: bool) -> bool:
        return bool(self.comm.allreduce(int(asked), op=self.mpi.MAX))

    def from_first(self, value: T) -> T:
        found: T = self.comm.bcast(value, root=0)
        return found

    def stop(self, code: int) -> None:
        self.comm.Abort(code)


def world() -> Communicator:
    """Those that train a model with this process: all that were started together, unless they share out other work."""
    return Communicator() if _sharing_out else everyone()


_sharing_out: list[bool] = []  # in here each rank works on items of its own


@contextmanager
def apart() -> Iterator[None]:
    """In here every rank is alone in its `world`."""
    _sharing_out.append(True)
    try:
        yield
    finally:
        _sharing_out.pop()


@cache
def everyone() -> Communicator:
    """All processes that were started together; this one alone if a launcher of MPI did not start it."""
    if not launched():
        return Communicator()
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ConfigError(
            "mpiexec: mpi4py is not installed (pip install 'chainrule[mpi]', or start one process)"
        ) from error
    if MPI.COMM_WORLD.size == 1:
        return Communicator()
    share_threads()
    return MPICommunicator(MPI)


def share_threads() -> None:
    """Ranks on one machine share its cores, unless CHAINRULE_THREADS says how many threads each has."""
    here = next((os.environ[name] for name in LOCAL if os.environ.get(name, "").isdecimal()), "1")
    if "CHAINRULE_THREADS" not in os.environ:
        native.set_threads(max(1, native.get_threads() // int(here)))
