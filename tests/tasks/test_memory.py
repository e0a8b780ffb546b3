"""What a training step takes, counted before it is made, beside what it takes."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.errors import ChainruleWarning, ConfigError
from chainrule.models.tuning import LoRA, Prefix, Prompt
from chainrule.tasks import memory
from chainrule.train import TrainConfig

CONFIG: Any = cr.models.GPTConfig(n_layer=2, n_head=2, n_embd=32, block_size=512, vocab_size=100)
TRAINING = TrainConfig(batch_size=4, accumulate=1)


def test_windows_that_are_made_shorter_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = memory.step_bytes(CONFIG, TRAINING, 300)
    monkeypatch.setattr(memory, "memory", lambda: 2 * needed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memory.longest_window(CONFIG, TRAINING, 300) == 300
    monkeypatch.setattr(memory, "memory", lambda: 2 * needed - 2)
    with pytest.warns(
        ChainruleWarning, match="rows of 150 tokens instead of 300: longer ones would take more"
    ):
        assert memory.longest_window(CONFIG, TRAINING, 300) == 150
    monkeypatch.setattr(memory, "memory", lambda: 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert memory.longest_window(CONFIG, TRAINING, 300) < 64  # too little for any: refused elsewhere
    monkeypatch.setattr(memory, "memory", lambda: 2 * needed - 2)
    with pytest.warns(ChainruleWarning, match="rows of 256 tokens instead of 512"):
        assert memory.longest_window(CONFIG, TRAINING, 1000) == 256  # the context is the most


def test_shorter_windows_must_save_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 rows 2,048 tokens are learned from at a time, however long the rows are."""
    many = TrainConfig(batch_size=64)
    needed = {window: memory.step_bytes(CONFIG, many, window) for window in (512, 128, 64)}
    assert needed[512] < 1.1 * needed[64]
    monkeypatch.setattr(memory, "memory", lambda: needed[64] * 1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        window = memory.longest_window(CONFIG, many, 512)
    assert window > 64 and memory.step_bytes(CONFIG, many, window) <= 1.02 * needed[64]


def test_advice_names_only_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory", lambda: 100_000)

    def said(**settings: Any) -> str:
        with pytest.raises(ConfigError) as error:
            memory.check_memory(CONFIG, TrainConfig(**settings), 512)
        return str(error.value)

    assert said(batch_size=4, accumulate=1).endswith(
        "(take a smaller batch_size, or a smaller block_size, or a larger accumulate)"
    )
    assert said(batch_size=64).endswith("a larger accumulate)")
    assert "accumulate" not in said(batch_size=64, accumulate=64)
    assert said(batch_size=1).endswith("(take a smaller block_size)")


def test_windows_of_no_text_and_beside_a_prefix() -> None:
    assert [memory.longest_window(CONFIG, TRAINING, wanted) for wanted in (-1, 0, 1)] == [1, 1, 1]
    for method, context in ((Prefix(length=12), 500), (Prompt(length=12), 500), (LoRA(rank=2), 512)):
        with memory.counted_with(method):
            assert memory.context_of(CONFIG) == memory.longest_window(CONFIG, TRAINING, 1000) == context
    assert memory.context_of(CONFIG) == 512


def test_recomputing_a_block_more_keeps_its_input_and_all_that_learns() -> None:
    training = replace(TRAINING, recompute=True)
    two, three = (memory.step_bytes(replace(CONFIG, n_layer=n), training) for n in (2, 3))
    block = cr.models.GPT.abstract(CONFIG).h[0].count()
    assert three - two == 4 * (4 * block + 4 * 512 * 32)  # weights, gradients, two moments; (B, T, C)
    assert two < memory.step_bytes(CONFIG, TRAINING)
    with memory.counted_with(LoRA(rank=2, targets=("h.1.attn.c_proj",))):  # a layer by its number
        assert memory.step_bytes(CONFIG, training) < two


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("memory")
    text = cr.data.load("pydoc").text[:20_000]
    (made / "text.txt").write_text(text, encoding="utf-8")
    tokenizer = cr.text.CharTokenizer.train(text)
    sizes = {"n_layer": 8, "n_head": 8, "n_kv_head": 4, "n_embd": 384, "n_hidden": 1024, "block_size": 128}
    cr.io.save_pretrained(
        cr.models.make("llama", **sizes, vocab_size=tokenizer.vocab_size), tokenizer, made / "base"
    )
    return made


TUNE = """
import sys
from chainrule.cli import main
from chainrule.machine import peak_memory
main(sys.argv[1:])
print("peak", peak_memory() / 2**20)
"""


@pytest.mark.parametrize(
    ("method", "batch_size", "more"),
    [("lora", 4, []), ("full", 1, []), ("full", 2, ["--recompute"]), ("lora", 16, ["--recompute"])],
)
def test_a_tuning_takes_what_is_said_before_its_first_step(
    folder: Path, tmp_path: Path, method: str, batch_size: int, more: list[str]
) -> None:
    """A process of its own, from reading the base to the last checkpoint."""
    words = ["tune", str(folder / "base"), str(folder / "text.txt"), "--method", method]
    words += ["--max-steps", "5"]  # the third step of a shape is a replay
    words += ["--batch-size", str(batch_size), "--eval-windows", "2", "--out", str(tmp_path / "run"), *more]
    done = subprocess.run([sys.executable, "-c", TUNE, *words], capture_output=True, text=True, check=True)
    said, there = re.search(r"memory: about ([\d,]+) MiB", done.stderr + done.stdout), done.stdout.split()[-1]
    assert said is not None
    forecast, peak = float(said[1].replace(",", "")), float(there)
    assert 0.85 * peak < forecast < 1.15 * peak
    weights = 4 * cr.load(folder / "base")[0].count() / 2**20
    assert forecast > (4 if method == "full" else 1) * weights + 50  # and not the program alone
