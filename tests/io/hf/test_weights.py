"""Weights of other programs that are not as ours: rows that are never read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.errors import FormatError
from chainrule.io import load_pretrained, safetensors, save_pretrained
from chainrule.models import make

SIZES: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 7, "vocab_size": 11}
BART = {"norm": "post", "positions": "learned", "embedding_norm": True}
ROBERTA = {"norm": "post", "variant": "roberta", "n_segments": 1}


@pytest.mark.parametrize(
    ("family", "more", "table"),
    [
        ("seq2seq", BART, "model.encoder.embed_positions.weight"),
        ("bert", ROBERTA, "roberta.embeddings.position_embeddings.weight"),
    ],
)
@pytest.mark.parametrize("value", [np.float32(1), np.ones((2, 8), np.float32)], ids=["a number", "two rows"])
def test_a_table_without_rows_of_its_own_is_refused(
    family: str, more: dict[str, Any], table: str, value: Any, tmp_path: Path
) -> None:
    save_pretrained(make(family, **SIZES | more), None, tmp_path / "x")
    path = tmp_path / "x" / "model.safetensors"
    arrays = safetensors.read(path)
    assert table in arrays
    others = {"x": np.ones((9, 8), np.float32)}  # as many values as before
    path.write_bytes(safetensors.encode(arrays | others | {table: np.asarray(value)}))
    with pytest.raises(
        FormatError, match=r"_?positions?.*weight has shape .*must have more than 2 rows"
    ) as error:
        load_pretrained(tmp_path / "x")
    assert "\n" not in str(error.value)
