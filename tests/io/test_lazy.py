"""Arrays that are computed when they are read: models come and go without a second copy of all their weights."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.io import convert, gguf, load, load_pretrained, safetensors, save_pretrained
from chainrule.io.lazy import Lazy, later
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig
from chainrule.text import CharTokenizer

VALUES = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_it_is_an_array_to_those_who_copy_it() -> None:
    reads = []

    def read() -> Any:
        reads.append(1)
        return VALUES

    lazy: Any = Lazy((4, 3), read)
    assert np.shape(lazy) == (4, 3) and (lazy.ndim, lazy.size, lazy.nbytes, len(lazy)) == (2, 12, 48, 4)
    half, turned, doubled = lazy[1:3], lazy.T, later(lambda x: 2 * x, lazy)
    assert half.shape == (2, 3) and turned.shape == (3, 4) and lazy[3:9].shape == (1, 3)
    assert not reads
    target = np.zeros((4, 3))
    target[...] = lazy
    np.testing.assert_array_equal(target, VALUES)
    np.testing.assert_array_equal(half, VALUES[1:3])
    np.testing.assert_array_equal(turned, VALUES.T)
    np.testing.assert_array_equal(doubled, 2 * VALUES)
    assert len(reads) == 4


LLAMA = LlamaConfig(n_layer=10, n_head=4, n_kv_head=4, n_embd=128, n_hidden=256, block_size=8, vocab_size=11)
CONFIGS = {
    "llama": (Llama, LLAMA),
    "phi3": (Llama, LlamaConfig(**vars(LLAMA) | {"variant": "phi3"})),
    "gpt": (GPT, GPTConfig(n_layer=10, n_head=4, n_embd=128, n_hidden=256, block_size=8, vocab_size=11)),
}


def peak(work: Callable[[], Any]) -> float:
    """The most memory that it takes, in bytes."""
    tracemalloc.start()
    try:
        kept = work()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
        del kept


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("weights", ["f32", "q8_0", "BF16", "F16"])
def test_a_model_comes_and_goes_array_by_array(name: str, weights: str, tmp_path: Path) -> None:
    kind, config = CONFIGS[name]
    model, words = kind(config), CharTokenizer("abcdefghijk")
    size = 4 * model.count()
    if weights in ("BF16", "F16"):
        write: Any = lambda: save_pretrained(model, words, tmp_path / "x")  # noqa: E731
        read: Any = lambda: load_pretrained(tmp_path / "x")  # noqa: E731
    else:
        write = lambda: gguf.write(model, words, tmp_path / "x", weights=weights)  # noqa: E731
        read = lambda: gguf.read(tmp_path / "x")  # noqa: E731
    assert peak(write) < 0.4 * size
    if weights == "BF16":
        halve(tmp_path / "x" / "model.safetensors")
    if weights == "F16":
        path = tmp_path / "x" / "model.safetensors"
        halves = {each: array.astype(np.float16) for each, array in safetensors.read(path).items()}
        path.write_bytes(safetensors.encode(halves))
        del halves
    assert peak(read) < 1.4 * size  # the model itself, and little else
    assert peak(lambda: convert(tmp_path / "x", tmp_path / "out")) < 0.4 * size
    there, here = load(tmp_path / "x")[0].arrays(), load(tmp_path / "out")[0].arrays()
    assert there.keys() == here.keys() and all((there[name] == here[name]).all() for name in there)


def halve(path: Path) -> None:
    """A file of bfloat16 instead."""
    arrays = {name: np.asarray(array) for name, array in safetensors.read(path).items()}
    bits = {name: (array.copy().view(np.uint32) >> 16).astype(np.uint16) for name, array in arrays.items()}
    content = safetensors.encode(bits)
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].replace(b'"U16"', b'"BF16"')
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
