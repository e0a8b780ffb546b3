"""Methods that add layers: bottleneck adapters, prefixes of attention, and soft prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from chainrule.errors import ConfigError, Setting
from chainrule.models.language_model import TransformerLM
from chainrule.models.model import Model
from chainrule.models.tuning.method import Method, words
from chainrule.models.tuning.places import SUBLAYERS, put, sublayers
from chainrule.nn import Adapted, Adapter, KeyValuePrefix, SoftPrompt
from chainrule.nn.activation import ACTIVATIONS
from chainrule.suggest import hinted
from chainrule.validate import Check


@dataclass(frozen=True)
class BottleneckAdapter(Method):
    """x + up(f(down(x))) after frozen sublayers, through a narrow middle. (Houlsby et al. 2019)

    >>> import chainrule as cr
    >>> base = cr.models.make("llama", n_layer=2, n_embd=32, vocab_size=10)
    >>> method = cr.models.tuning.BottleneckAdapter(bottleneck=4)
    >>> method.n_params(base), method.apply(base).count(trainable=True)
    (1168, 1168)
    """

    name: ClassVar[str] = "adapter"
    about: ClassVar[str] = "small layers after attention and MLP"

    bottleneck: int = 16
    """Width in the middle of an adapter."""
    after: tuple[str, ...] = tuple(SUBLAYERS)
    """What an adapter follows: attention, mlp, or both with a comma between them."""
    nonlinearity: str = "relu"
    """In the middle of an adapter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "after", words(self.after))
        check = Check("adapter", self)
        check.at_least(1, "bottleneck")
        check.one_of("nonlinearity", ACTIVATIONS)
        for kind in self.after or ("",):
            rule = hinted(f"must be {' or '.join(SUBLAYERS)}", kind, SUBLAYERS)
            check.require(kind in SUBLAYERS, "after", rule=rule)

    def insert(self, model: Model) -> None:
        for path, layer in self._places(model):
            adapter = Adapter(model.config.n_embd, self.bottleneck, activation=self.nonlinearity)
            put(model, path, Adapted(layer, adapter))

    def _places(self, model: Model) -> list[Any]:
        found = [place for kind in dict.fromkeys(self.after) for place in sublayers(model, kind)]
        if not found:
            raise _without("adapter", model, "attention and MLP in blocks")
        return found

    def formula(self, model: Model) -> int:
        """2 C m + m + C for each"""
        C, m = model.config.n_embd, self.bottleneck
        return len(self._places(model)) * (2 * C * m + m + C)


@dataclass(frozen=True)
class Prefix(Method):
    """Learned keys and values before those of every text, in each layer of self-attention. (Li and Liang 2021)

    They start small and at random, so the model does not start as the base: attention gives them a share at once. In a
    GPT, whose positions are learned, they take the first ones, and the text begins behind.

    >>> import chainrule as cr
    >>> base = cr.models.make("gpt", n_layer=2, n_embd=32, n_head=2, vocab_size=10)
    >>> method = cr.models.tuning.Prefix(length=5)
    >>> method.n_params(base), method.apply(base).count(trainable=True)  # 2 layers, keys and values, 5 rows of 32
    (640, 640)
    """

    name: ClassVar[str] = "prefix"
    about: ClassVar[str] = "keys and values before those of the text, in each layer"
    exact: ClassVar[bool] = False
    peft_type: ClassVar[str] = "PREFIX_TUNING"

    length: int = 10
    """Positions before the text."""

    def __post_init__(self) -> None:
        Check(self.name, self).at_least(1, "length")

    def insert(self, model: Model) -> None:
        for path, heads, size in self._places(model):
            put(model, f"{path}.prefix", KeyValuePrefix(self.length, heads, size))
        if model.context < 1:
            said = f" is {self.length}, the context {model.context + self.length} (must be less: the text comes behind)"
            raise ConfigError("prefix: ", Setting("length"), said)

    def _places(self, model: Model) -> list[tuple[str, int, int]]:
        """Path, heads of keys and numbers of each, of every layer of self-attention."""
        heads = (
            getattr(model.config, "n_kv_head", model.config.n_head) if hasattr(model.config, "n_head") else 0
        )
        found = [
            path
            for path, layer in model.named_layers()
            if "prefix" in vars(layer) and not path.endswith("encoder_attn")
        ]
        if not found:
            raise _without(
                self.name, model, "self-attention that takes one: GPT, Llama, NeoX, BERT or Seq2Seq"
            )
        size = getattr(model.config, "head_size", None) or model.config.n_embd // model.config.n_head
        return [(path, heads, size) for path in found]

    def formula(self, model: Model) -> int:
        """2 m H D for each layer"""
        return sum(2 * self.length * heads * size for _, heads, size in self._places(model))


@dataclass(frozen=True)
class Prompt(Method):
    """Learned rows before the embeddings of every text, as if they were tokens. (Lester et al. 2021)

    They start at random, or as the tokens of a text, `ids`: then the model starts as the base that reads this text
    first.

    >>> import chainrule as cr
    >>> base = cr.models.make("gpt", n_layer=2, n_embd=32, n_head=2, vocab_size=10)
    >>> method = cr.models.tuning.Prompt(length=5)
    >>> method.n_params(base), method.apply(base).count(trainable=True)
    (160, 160)
    """

    name: ClassVar[str] = "prompt"
    about: ClassVar[str] = "rows before the embeddings of the text"
    exact: ClassVar[bool] = False
    peft_type: ClassVar[str] = "PROMPT_TUNING"

    length: int = 10
    """Rows before the text; with an initial text as many as it has tokens."""
    ids: tuple[int, ...] = ()
    """Tokens whose embeddings the rows start with; in place of the length."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", tuple(int(id) for id in self.ids))
        if self.ids:
            object.__setattr__(self, "length", len(self.ids))
        Check(self.name, self).at_least(1, "length")

    def insert(self, model: Model) -> None:
        path, embedding = self._place(model)
        prompt = SoftPrompt(embedding, self.length)
        rows = embedding.weight.array
        if not isinstance(rows, np.ndarray) or type(rows) is not np.ndarray:  # shapes alone
            put(model, path, prompt)
            return
        if self.ids and max(self.ids) >= len(rows):
            said = f" has token {max(self.ids)}, the model {len(rows)} (must be tokens of its own)"
            raise ConfigError("prompt: ", Setting("ids"), said)
        # At random they are as large as those of tokens.
        prompt.prompt.array[...] = rows[list(self.ids)] if self.ids else prompt.prompt.array * rows.std()
        put(model, path, prompt)

    def _place(self, model: Model) -> tuple[str, Any]:
        if not isinstance(model, TransformerLM):
            raise _without(self.name, model, "an embedding that takes one: GPT, Llama or NeoX")
        if self.length >= model.context:
            said = f" is {self.length}, the context {model.context} (must be less: the text comes behind)"
            raise ConfigError("prompt: ", Setting("length"), said)
        return next((path, layer) for path, layer in model.named_layers() if layer is model.embedding)

    def formula(self, model: Model) -> int:
        """m C"""
        return self.length * int(self._place(model)[1].weight.shape[1])


def _without(method: str, model: Model, rule: str) -> ConfigError:
    return ConfigError(f"{method}: a {type(model).__name__} has no place for one (must have {rule})")
