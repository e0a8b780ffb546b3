"""The share of a rank: the gradient of the whole batch, whoever computes it; see `rank_checks` for each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chainrule.errors import ConfigError
from chainrule.train.share import check_alone
from tests.distributed.test_communicator import needs_mpi
from tests.distributed.together import together
from tests.train.rank_checks import CHECKS


@pytest.fixture(scope="module", params=[2, 3])
def found(request: Any, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """What went wrong on each rank, by the name of the check."""
    folder = tmp_path_factory.mktemp("checks")
    done = together(request.param, "-m", "tests.train.rank_checks", str(folder))
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(request.param)]


@needs_mpi
@pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
def test_ranks_agree(name: str, found: list[dict[str, str]]) -> None:
    for wrong in found:
        assert name not in wrong, wrong[name]


def test_what_cannot_be_shared_is_refused() -> None:
    check_alone("align ppo", 1, "")
    with pytest.raises(
        ConfigError, match=r"^align ppo: started as several .*whose threads .*: because; .*mpiexec\)$"
    ):
        check_alone("align ppo", 4, "because")
