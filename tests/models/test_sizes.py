"""A size that is missing is refused like one that is too small, unless None is its default."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule.errors import ConfigError
from chainrule.models import BERTConfig, GPTConfig, LlamaConfig, MLPConfig, Seq2SeqConfig


@pytest.mark.parametrize("kind", [BERTConfig, GPTConfig, LlamaConfig, MLPConfig, Seq2SeqConfig])
@pytest.mark.parametrize("value", [None, 0, -3])
def test_a_model_has_at_least_one_layer(kind: Any, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"n_layer is {value} \(must be at least 1\)"):
        kind(n_layer=value)


@pytest.mark.parametrize("kind", [GPTConfig, Seq2SeqConfig])
def test_a_width_that_has_a_default_of_its_own_may_be_left_out(kind: Any) -> None:
    assert kind(n_hidden=None).n_hidden is None
    with pytest.raises(ConfigError, match="n_hidden is 0"):
        kind(n_hidden=0)
