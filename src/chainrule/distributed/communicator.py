"""Processes that train one model together: who they are, and sums over all of them.

`mpiexec -n 4 chainrule train ...` starts four; each is a rank. A sum is made in a fixed order, rank 0 first, by cutting
the array into one stretch per rank: every rank gets all copies of its stretch, adds them up one after the other, and
sends the result to all (reduce-scatter, then all-gather). MPI's own sum may take another order, and so give other bits,
from one network or message size to the next. Each rank sends and receives what a ring would, 2 (n - 1)/n of the array;
a ring needs less memory at a time, this needs one more copy of the array.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, TypeVar

import numpy as np

from chainrule import native
from chainrule.errors import ConfigError
from chainrule.machine import launched
from chainrule.types import Array

LOCAL = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")  # of them, those on this machine
T = TypeVar("T")


class Communicator:
    """One process alone; a subclass joins several."""

    rank = 0
    size = 1

    @property
    def first(self) -> bool:
        """This is the process that speaks, logs and saves."""
        return self.rank == 0

    def sum(self, array: Array) -> None:
        """Replace an array, flat and contiguous, by the sum of those of all ranks, in the order of the ranks."""

    def any(self, asked: bool) -> bool:
        """Is it so for one of the ranks?"""
        return asked

    def from_first(self, value: T) -> T:
        """What the first rank has."""
        return value

    def stop(self, code: int) -> None:
        """End all ranks at once: one of them cannot go on."""


class MPICommunicator(Communicator):
    """Ranks of MPI."""

    def __init__(self, mpi: Any) -> None:
        self.mpi = mpi
        self.comm = mpi.COMM_WORLD
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)

    def sum(self, array: Array) -> None:
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise ConfigError(f"sum over ranks: array {array.shape} (must be flat and contiguous)")
        counts = np.full(self.size, array.size // self.size)
        counts[: array.size % self.size] += 1
        starts = np.concatenate([[0], np.cumsum(counts)])
        mine = slice(starts[self.rank], starts[self.rank + 1])
        kind = self.mpi._typedict[array.dtype.char]
        copies = np.empty(
            (self.size, counts[self.rank]), array.dtype
        )  # of this rank's stretch, one from each
        own = [counts[self.rank]] * self.size
        self.comm.Alltoallv(
            [array, (counts, starts[:-1]), kind],
            [copies, (own, [counts[self.rank] * r for r in range(self.size)]), kind],
        )
        total = copies[0]
        for copy in copies[1:]:
            total += copy
        array[mine] = total
        self.comm.Allgatherv(self.mpi.IN_PLACE, [array, (counts, starts[:-1]), kind])

    def any(self, asked: bool) -> bool:
        return bool(self.comm.allreduce(int(asked), op=self.mpi.MAX))

    def from_first(self, value: T) -> T:
        found: T = self.comm.bcast(value, root=0)
        return found

    def stop(self, code: int) -> None:
        self.comm.Abort(code)


@cache
def world() -> Communicator:
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
