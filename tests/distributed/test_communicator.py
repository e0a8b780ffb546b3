"""Sums over ranks: in their order, to the bit; and one process alone."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from chainrule.distributed import Communicator, everyone, world
from chainrule.errors import ConfigError
from tests.distributed.together import MPIEXEC, together

needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="needs mpiexec: pip install 'chainrule[mpi]'")

SUMS = """
import numpy as np
from chainrule.distributed import world
ranks = world()
def drawn(rank, n):
    return np.random.default_rng(rank).normal(size=n).astype(np.float32)
for n in (0, 1, 2, 5, 10007):
    found, expected = drawn(ranks.rank, n), drawn(0, n)
    for rank in range(1, ranks.size):
        expected += drawn(rank, n)
    ranks.sum(found)
    assert np.array_equal(found, expected), n
assert ranks.any(ranks.rank == ranks.size - 1) and not ranks.any(False)
assert ranks.from_first(f"rank {ranks.rank}") == "rank 0"
assert ranks.first == (ranks.rank == 0)
print(ranks.size)
"""


@needs_mpi
@pytest.mark.parametrize("n", [2, 4])
def test_sums_are_made_in_the_order_of_the_ranks(n: int) -> None:
    done = together(n, "-c", SUMS)
    assert (done.returncode, sorted(done.stdout.replace("\n", ""))) == (0, [str(n)] * n), done.stderr


def test_a_process_alone_changes_nothing() -> None:
    alone = world()
    assert type(alone) is Communicator and (alone.rank, alone.size, alone.first) == (0, 1, True)
    array = np.arange(3.0)
    alone.sum(array)
    assert array.tolist() == [0, 1, 2]
    assert alone.any(True) and not alone.any(False) and alone.from_first("x") == "x"
    alone.stop(1)  # there is nobody to stop


def test_without_mpi4py_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    everyone.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"pip install \'chainrule\[mpi\]\'"):
            world()
    finally:
        everyone.cache_clear()
