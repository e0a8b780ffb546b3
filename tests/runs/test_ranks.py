"""One model trained by several processes: the same losses, resumed by another number of them, ended by a dead one."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.runs import load
from tests.distributed.test_communicator import needs_mpi
from tests.distributed.together import TIMEOUT, losses, start, together, train

SIZES = ("--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--warmup", "5")
SETTINGS = (
    "--batch-size",
    "6",
    "--max-steps",
    "12",
    "--eval-every",
    "4",
    "--eval-windows",
    "20",
    "--save-every",
    "4",
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("ranks") / "text.txt"
    path.write_text("the quick brown fox jumps over the lazy dog, and then it sleeps. " * 60)
    return str(path)


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])  # of six rows four ranks get two, two, one and one
def test_several_ranks_give_the_losses_of_one(ranks: int, text: str, tmp_path: Path) -> None:
    main(["train", "gpt", text, *SIZES, *SETTINGS, "--out", str(tmp_path / "one")])
    for name in ("first", "second"):
        done = train(ranks, tmp_path / name, text, *SIZES, *SETTINGS)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("validation loss") == 4  # one rank speaks: three evaluations and the result
    np.testing.assert_allclose(losses(tmp_path / "first"), losses(tmp_path / "one"), rtol=2e-5)
    assert losses(tmp_path / "first") == losses(tmp_path / "second")
    states = [load(tmp_path / name)[0].state() for name in ("first", "second")]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


@needs_mpi
def test_a_checkpoint_of_two_ranks_is_resumed_by_one_and_by_three(text: str, tmp_path: Path) -> None:
    longer = ("--resume", str(tmp_path / "run"), "--max-steps")
    done = train(2, tmp_path / "run", text, *SIZES, *SETTINGS)
    assert done.returncode == 0, done.stderr
    main(["train", "gpt", *longer, "16"])
    done = together(3, "-m", "chainrule.cli", "train", "gpt", *longer, "20")
    assert done.returncode == 0, done.stderr
    found = losses(tmp_path / "run")
    assert len(found) == 20 + 5 and np.isfinite(found).all()


def pairs(folder: Path) -> str:
    path = folder / "pairs.tsv"
    words = ["fox", "dog", "cat", "cow", "hen", "owl", "bee", "ant"]
    rows = [f"the {a} sees the {b}\tthe {b} is seen by the {a}" for a in words for b in words if a != b]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@needs_mpi
@pytest.mark.parametrize("family", ["lstm", "bert-embedder"])
def test_what_carries_a_state_or_compares_its_examples_is_shared(
    family: str, text: str, tmp_path: Path
) -> None:
    """The state of a stream goes with its row, also into a checkpoint that another number of ranks resumes."""
    small = ("--n-layer", "1", "--n-embd", "16", "--dropout", "0", "--schedule", "constant", "--warmup", "0")
    data = text if family == "lstm" else pairs(tmp_path)
    sizes = ("--n-hidden", "12", "--block-size", "8") if family == "lstm" else ("--n-head", "2")
    words = ("train", family, data, *small, *sizes, *SETTINGS, "--out")
    main([*words, str(tmp_path / "one")])
    for name in ("first", "second"):
        done = together(2, "-m", "chainrule.cli", *words, str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "first"), losses(tmp_path / "one"), rtol=1e-4, atol=1e-6)
    assert losses(tmp_path / "first") == losses(tmp_path / "second")
    longer = ("train", family, "--max-steps", "16", "--resume")
    main([*longer, str(tmp_path / "first")])
    done = together(3, "-m", "chainrule.cli", *longer, str(tmp_path / "one"))
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "first"), losses(tmp_path / "one"), rtol=1e-4, atol=1e-6)


@needs_mpi
def test_dropout_and_microbatches_do_not_depend_on_who_computes_them(text: str, tmp_path: Path) -> None:
    more = (*SIZES, *SETTINGS, "--dropout", "0.2")
    main(["train", "gpt", text, *more, "--accumulate", "2", "--out", str(tmp_path / "one")])
    done = train(2, tmp_path / "two", text, *more)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=2e-5)


@needs_mpi
def test_running_statistics_are_those_of_all_ranks(text: str, tmp_path: Path) -> None:
    words = ("train", "mlp", text, "--batch-size", "8", "--eval-every", "3", "--save-every", "3")
    words += ("--schedule", "constant", "--warmup", "0")
    for name, steps in (("whole", "6"), ("parts", "3")):
        out = ("--max-steps", steps, "--out", str(tmp_path / name))
        done = together(2, "-m", "chainrule.cli", *words, *out)
        assert done.returncode == 0, done.stderr
    more = ("--resume", str(tmp_path / "parts"), "--max-steps", "6")
    done = together(2, "-m", "chainrule.cli", "train", "mlp", *more)
    assert done.returncode == 0, done.stderr
    states = [load(tmp_path / name / "checkpoints" / "step_000006")[0].state() for name in ("whole", "parts")]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


@needs_mpi
def test_tuning_with_a_tolerance_is_shared(text: str, tmp_path: Path) -> None:
    main(["train", "gpt", text, *SIZES, *SETTINGS, "--out", str(tmp_path / "base")])
    words = (
        "tune",
        str(tmp_path / "base"),
        text,
        "--max-steps",
        "4",
        "--eval-every",
        "2",
        "--tolerance",
        "0.5",
    )
    done = together(2, "-m", "chainrule.cli", *words, "--out", str(tmp_path / "tuned"))
    assert done.returncode == 0, done.stderr
    load(tmp_path / "tuned")


@needs_mpi
def test_a_dead_rank_ends_the_job_and_leaves_a_good_checkpoint(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = (text, *SIZES, *SETTINGS, "--max-steps", "1000000", "--out", str(folder))
    job = start(2, "-m", "chainrule.cli", "train", "gpt", *words)
    try:
        saved = folder / "checkpoints" / "step_000008"
        until = time.monotonic() + TIMEOUT
        while not saved.exists() and time.monotonic() < until:
            time.sleep(0.05)
        ranks = _children(job.pid)
        os.kill(ranks[-1], signal.SIGKILL)
        said = "".join(job.communicate(timeout=60))
    except BaseException:
        job.kill()
        raise
    assert job.returncode != 0 and "KILLED" in said.upper()
    load(folder)


FAILING = """
import sys
from chainrule.cli import main
from chainrule.data import Batches
from chainrule.distributed import world
from chainrule.errors import DataError
from chainrule.runs import checkpoint
from chainrule.train.evaluation import Evaluation

def fail(*_, **__):
    raise DataError("the disk of this machine is gone")

where, rank = sys.argv[1], int(sys.argv[2])
if world().rank == rank:
    owner, name = {"evaluation": (Evaluation, "_mean_loss"), "saving": (checkpoint, "_write"),
                   "reading": (Batches, "batch")}[where]
    setattr(owner, name, fail)
main(sys.argv[3:])
"""


@needs_mpi
@pytest.mark.parametrize(
    ("where", "rank"), [("evaluation", 0), ("evaluation", 1), ("saving", 0), ("reading", 1)]
)
def test_a_rank_that_fails_alone_ends_all_in_one_line(
    where: str, rank: int, text: str, tmp_path: Path
) -> None:
    words = ("train", "gpt", text, *SIZES, *SETTINGS, "--out", str(tmp_path / "run"))
    done = together(2, "-c", FAILING, where, str(rank), *words)
    assert done.returncode not in (0, None) and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert errors == [f"{'rank 1: ' * rank}error: the disk of this machine is gone"]


@needs_mpi
def test_a_sharded_optimizer_changes_no_bit_and_is_resumed_without_by_any_number(
    text: str, tmp_path: Path
) -> None:
    more = (*SIZES, *SETTINGS, "--schedule", "constant")
    for name, words in (("plain", ()), ("sharded", ("--shard-optimizer",))):
        done = train(2, tmp_path / name, text, *more, *words)
        assert done.returncode == 0, done.stderr
    files = [
        [path / name for name in ("model.safetensors", "optimizer.safetensors")]
        for path in (tmp_path / name / "checkpoints" / "step_000012" for name in ("plain", "sharded"))
    ]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(*files, strict=True))
    longer = ("-m", "chainrule.cli", "train", "gpt", "--max-steps", "16", "--resume")
    main([*longer[2:], str(tmp_path / "plain")])
    done = together(3, *longer, str(tmp_path / "sharded"))  # sharded among three, as the run says
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "sharded"), losses(tmp_path / "plain"), rtol=2e-5)
    done = together(
        2, *longer[:-3], "--max-steps", "20", "--no-shard-optimizer", "--resume", str(tmp_path / "sharded")
    )
    assert done.returncode == 0, done.stderr
    done = together(
        2, *longer[:-3], "--max-steps", "20", "--shard-optimizer", "--resume", str(tmp_path / "plain")
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(losses(tmp_path / "sharded"), losses(tmp_path / "plain"), rtol=2e-5)


@needs_mpi
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "gpt", "nope.txt"), "error: nope.txt: no such file"),
        (
            ("align", "ppo", "runs/x", "prompts.txt"),
            "align ppo: started as several processes (must be one, whose threads use all cores: one decoder",
        ),
        (("train", "word2vec", "pydoc", "--epochs", "1"), "train word2vec: started as several processes"),
        (("sample", "runs/x"), "started as several processes"),
    ],
)
def test_what_is_wrong_is_said_once(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run")) if words[0] == "train" else ()
    done = together(2, "-m", "chainrule.cli", *words, *out)
    assert done.returncode == 2
    assert done.stderr.count(said) == 1 and not (tmp_path / "run").exists()


def _children(pid: int) -> list[int]:
    """The ranks below mpiexec, which starts them by a proxy."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return sorted(below - set(parents.values()))  # what has no children itself
