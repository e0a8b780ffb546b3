"""Reward: a language model's body with one number per text, read where the text ends.

    reward = w · hidden[last token]                    Hugging Face's ...ForSequenceClassification with one label
    loss   = -ln σ(r_w - r_l)                          y_w was preferred to y_l (Bradley and Terry 1952)

A decoder's last token has seen the whole text; what stands behind it is padding, which no token before it can see.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.recording import constant
from chainrule.autograd.types import Array
from chainrule.errors import ConfigError
from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.language_model import TransformerLM
from chainrule.models.llama import Llama, LlamaConfig
from chainrule.models.model import Model
from chainrule.models.neox import NeoX, NeoXConfig
from chainrule.nn import LayerNorm, Linear
from chainrule.nn.init import normal
from chainrule.types import Ids
from chainrule.validate import Check

LAST_NORM = ("ln_f", "final_layer_norm")  # before the head, of GPT and NeoX, with a bias; Llama's has none


class Comparisons(NamedTuple):
    """Pairs of whole texts (B, 2, T), the preferred one first; the mask is True at tokens, False at padding."""

    ids: Ids
    mask: npt.NDArray[np.bool_]


class Reward(Model):
    """How good a text is, as one number without a unit: only differences mean something.

    >>> import chainrule as cr, numpy as np
    >>> body = cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=10))
    >>> ids, mask = np.array([[1, 2, 3], [4, 5, 0]]), np.array([[True, True, True], [True, True, False]])
    >>> cr.models.Reward.on(body)(ids, mask).shape
    (2,)
    """

    body_class: ClassVar[type[TransformerLM]]

    def __init__(self, config: Any) -> None:
        if type(self) is Reward:
            raise ConfigError("Reward: no model of its own (must be made with Reward.on(body))")
        super().__init__(config)
        Check(type(self).__name__, config).require(
            config.tied, "tied", rule="must be true: a reward model has no head of words"
        )
        self.body = self.body_class(config)
        self.let_level_learn(False)
        self.score = Linear(config.n_embd, 1, bias=False, init=partial(normal, std=0.02))

    def let_level_learn(self, learns: bool = True) -> None:
        """Whether the last bias learns, which adds the same number to all rewards: where only differences count, not.

        It does not if the norm that it belongs to does not.
        """
        for name, norm in self.body.named_layers():
            if name in LAST_NORM and isinstance(norm, LayerNorm) and norm.bias is not None:
                norm.bias.requires_grad = learns and norm.weight.requires_grad

    @staticmethod
    def on(body: Model, **sizes: Any) -> Reward:
        """A new reward model on a copy of a language model's body; `sizes` are fields that change, such as dropout."""
        if type(body) not in REWARDS:
            known = ", ".join(kind.__name__ for kind in REWARDS)
            raise ConfigError(f"Reward: body is a {type(body).__name__} (must be one of {known})")
        kind, config = REWARDS[type(body)]
        model = kind(config(**vars(body.config) | {"tied": True} | sizes))
        kept = model.body.state().keys()
        model.body.load({name: array for name, array in body.state().items() if name in kept})
        return model

    @property
    def context(self) -> int:
        return self.body.context  # a prefix may take some of it

    @property
    def n_classes(self) -> int:
        """Which of two is better: a guess costs ln 2."""
        return 2

    def forward(self, ids: Array, mask: Array | None = None) -> Tensor:
        """ids (B, T), mask (B, T) -> rewards (B,)

        The mask is True at tokens, False at the padding after them (default: no padding).
        """
        hidden = self.body.hidden(ids)  # (B, T, C)
        if mask is None:
            mask = constant(np.ones(hidden.shape[:2], bool))
        return self.score(ops.pool(hidden, mask=mask, kind="last")).reshape(-1)

    def of_pairs(self, inputs: Comparisons) -> Tensor:
        """The rewards of both texts of each pair (B, 2)"""
        B, _, T = inputs.ids.shape
        return self(inputs.ids.reshape(-1, T), inputs.mask.reshape(-1, T)).reshape((B, 2))

    def loss(self, inputs: Comparisons, targets: Array) -> Tensor:
        """-ln σ(r_w - r_l), the mean over pairs"""
        return preference_loss(self.of_pairs(inputs))

    def counts(self, inputs: Comparisons, targets: Array) -> tuple[int, ...]:
        return (len(inputs.ids),)

    def example_batch(self, rows: int, tokens: int, source: int = 0, masked: int = 0) -> tuple[Any, Array]:
        ids, targets = super().example_batch(2 * rows, tokens)
        return Comparisons(ids.reshape(rows, 2, tokens), np.ones((rows, 2, tokens), bool)), targets[:rows, 0]


@dataclass(frozen=True)
class GPTRewardConfig(GPTConfig):
    """The size of a reward model on a GPT."""


@dataclass(frozen=True)
class LlamaRewardConfig(LlamaConfig):
    """The size of a reward model on a Llama."""


@dataclass(frozen=True)
class NeoXRewardConfig(NeoXConfig):
    """The size of a reward model on a NeoX."""

    tied: bool = True


class GPTReward(Reward):
    """A reward model on a GPT."""

    body_class = GPT


class LlamaReward(Reward):
    """A reward model on a Llama."""

    body_class = Llama


class NeoXReward(Reward):
    """A reward model on a NeoX."""

    body_class = NeoX


REWARDS: dict[type[Model], tuple[type[Reward], type[Any]]] = {
    GPT: (GPTReward, GPTRewardConfig),
    Llama: (LlamaReward, LlamaRewardConfig),
    NeoX: (NeoXReward, NeoXRewardConfig),
}
"""By the class of the body."""


def preference_loss(rewards: Tensor) -> Tensor:
    """rewards (B, 2), the preferred text first -> the mean of -ln σ(r_w - r_l)

    It is the cross-entropy of two classes, of which the first is right: -ln e^r_w / (e^r_w + e^r_l).
    """
    return ops.cross_entropy(rewards, targets=constant(np.zeros(len(rewards), np.int64)))
