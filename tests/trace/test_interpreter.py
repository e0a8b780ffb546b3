"""Models outside of the usual: each decodes as it computes without a cache, or is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule import nn, ops
from chainrule.autograd import Tensor
from chainrule.generate.engine.plan import decoder_graph
from chainrule.generate.session import DecoderSession, WindowSession, session
from chainrule.models import LanguageModel
from chainrule.nn.init import normal, parameter
from chainrule.trace import NotStreamable
from tests.trace.test_trace import IDS, check_decodes, model_of, uncached


class Small(LanguageModel):
    """An embedding, what `mix` makes of it, and a head."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.layer = nn.Linear(config.n_embd, config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, ids: Any) -> Any:
        return self.head(self.mix(self.wte(ids), ids))

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        raise NotImplementedError


def check_refused(model: Any, message: str) -> None:
    """No cache; a session reads a window, and is right."""
    with pytest.raises(NotStreamable, match=message):
        decoder_graph(model)
    texts = session(model)
    assert isinstance(texts, WindowSession)
    texts.read([IDS[:3].tolist()])
    np.testing.assert_allclose(texts.read([IDS[3:5].tolist()])[0], uncached(model, IDS[:5])[-1], atol=1e-4)


class Gate(Small):
    """NumPy computes a gate."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden * Tensor(1 / (1 + np.exp(-hidden.numpy())))


class GateOfArray(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden * np.exp(hidden.array)


class GateOfData(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden * np.asarray(hidden.detach()).clip(0, 1)


class Branch(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden if float(hidden[0, 0, 0]) > 0 else hidden * 2.0


class Truth(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden if hidden[0, 0, 0] * 0.0 else hidden * 2.0


class GateOfPositions(Small):
    """What depends on no token is abstract too."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden * np.exp(self.layer(Tensor(np.ones((1, hidden.shape[1], 16), np.float32))).numpy())


class SpecialToken(Small):
    """A token that the traces do not contain."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden * Tensor((np.asarray(ids) == 5).astype(np.float32)[..., None])


class Compared(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden * (ids == 5)[..., None]


class Reversed(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden + self.wte(ids[:, ::-1])


@pytest.mark.parametrize(
    "kind", [Gate, GateOfArray, GateOfData, Branch, Truth, GateOfPositions, SpecialToken, Compared, Reversed]
)
def test_what_numpy_computes_of_the_text_is_not_frozen(kind: type[Any]) -> None:
    check_refused(model_of(kind), "NumPy reads the numbers of an array")


class FixedIds(Small):
    """Adds the mean of the embeddings of two tokens that are always the same."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden + self.wte(np.array([[3, 4]])).mean(axis=1, keepdims=True)


def test_ids_that_are_always_the_same_are_no_text() -> None:
    check_decodes(model_of(FixedIds), compiled=False)


class Joined(Small):
    """Heads that are joined before they are transposed back."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        B, T, C = hidden.shape
        q = self.layer(hidden).reshape(B, T, 2, C // 2).transpose(0, 2, 1, 3)
        return ops.attention(q, q, q, causal=True).reshape(B, T, C)


def test_a_reshape_that_mixes_tokens_is_refused() -> None:
    check_refused(model_of(Joined), "reshape does not read token by token")


class Sideways(Small):
    """Tokens are the rows of a batch."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return hidden.transpose(1, 0, 2)


def test_a_result_has_a_row_for_each_token() -> None:
    with pytest.raises(NotStreamable, match=r"head\.linear has no row for each token"):
        decoder_graph(model_of(Sideways))


class Twice(Small):
    """Transposed there and back, in four axes, with what is no head at the end."""

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        B, T, C = hidden.shape
        parts = hidden.reshape(B, T, 2, C // 2).transpose(0, 2, 1, 3).tanh()
        return parts.transpose(0, 2, 1, 3).reshape(B, T, C) + hidden


class Features(Small):
    """A parameter beside the features of each token."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.layer = nn.Linear(2 * config.n_embd, config.n_embd)

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        T = hidden.shape[1]
        return self.layer(ops.concat(hidden, self.wpe(np.arange(T)).reshape(1, T, -1), axis=-1))


@pytest.mark.parametrize("kind", [Twice, Features])
def test_axes_that_keep_tokens_apart_decode(kind: type[Any]) -> None:
    check_decodes(model_of(kind), compiled=False)


class SoftPrompt(Small):
    """Trained rows before the text, which attend too; rows of the result that are theirs come first."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.prompt = parameter(normal, (1, 3, config.n_embd))
        self.layer = nn.Linear(config.n_embd, 3 * config.n_embd)

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        hidden = ops.concat(self.prompt, hidden, axis=1)
        return hidden + ops.packed_attention(self.layer(hidden), heads=2)


def test_rows_before_the_text_stay_in_the_cache() -> None:
    model = model_of(SoftPrompt)
    texts = session(model)
    assert isinstance(texts, DecoderSession)
    for start, end in ((0, 3), (3, 4), (4, 6)):
        found = texts.read([IDS[start:end].tolist()])[0]
        np.testing.assert_allclose(found, uncached(model, IDS[:end])[-1], rtol=1e-4, atol=1e-4)


class Broken(Small):
    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        Tensor(np.ones(3)).backward()
        return hidden


def test_errors_of_a_model_are_not_taken_for_a_window() -> None:
    with pytest.raises(RuntimeError, match="backward: this tensor"):
        session(model_of(Broken))


class Shifted(Small):
    """A parameter that is no weight of a layer."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.shift = parameter(normal, (1, 1, config.n_embd))

    def mix(self, hidden: Tensor, ids: Any) -> Tensor:
        return (hidden + self.shift).tanh()


def test_a_parameter_is_added_to_each_token() -> None:
    check_decodes(model_of(Shifted), compiled=False)
