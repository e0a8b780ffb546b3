"""Methods that add nothing: all weights learn, all from some layer on, the biases, or the head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chainrule.autograd import Param
from chainrule.errors import ConfigError
from chainrule.models.model import Model
from chainrule.models.tuning.method import Method
from chainrule.models.tuning.places import block_of, embeddings, head_of
from chainrule.nn import Layer
from chainrule.validate import Check


@dataclass(frozen=True)
class Full(Method):
    """All weights learn, or all but the first layers."""

    name: ClassVar[str] = "full"
    about: ClassVar[str] = "all weights"
    alone: ClassVar[bool] = False

    freeze_layers: int = 0
    """Blocks that do not learn, the first ones, and with them the embeddings; of an encoder-decoder in both stacks."""

    def __post_init__(self) -> None:
        Check(self.name, self).at_least(0, "freeze_layers")

    def insert(self, model: Model) -> None:
        for _, param in self._learning(model):
            param.requires_grad = True

    def heads(self, model: Model) -> list[Layer]:
        return []

    def _learning(self, model: Model) -> list[tuple[str, Param]]:
        blocks = {block_of(name) for name, _ in model.named_parameters()} - {None}
        if self.freeze_layers > len(blocks):
            rule = f"must be at most {len(blocks)}, the blocks of this {type(model).__name__}"
            raise ConfigError.of(self.name, {"freeze_layers": self.freeze_layers}, rule)
        frozen = (
            {id(p) for layer in embeddings(model) for _, p in layer.named_parameters()}
            if self.freeze_layers
            else set()
        )
        return [
            (name, param)
            for name, param in model.named_parameters()
            if id(param) not in frozen and not _is_below(name, self.freeze_layers)
        ]

    def formula(self, model: Model) -> int:
        return sum({id(param): param.size for _, param in self._learning(model)}.values())


def _is_below(name: str, layers: int) -> bool:
    block = block_of(name)
    return block is not None and block < layers


@dataclass(frozen=True)
class BitFit(Method):
    """The biases learn alone. (Ben Zaken et al. 2022)"""

    name: ClassVar[str] = "bitfit"
    about: ClassVar[str] = "biases"

    def insert(self, model: Model) -> None:
        for param in self._biases(model):
            param.requires_grad = True

    def _biases(self, model: Model) -> list[Param]:
        found = [p for name, p in model.named_parameters() if name.rpartition(".")[2].endswith("bias")]
        heads = {id(p) for layer in self.heads(model) for _, p in layer.named_parameters()}
        found = [param for param in found if id(param) not in heads]
        if not found:
            rule = "must be a model with biases: a Llama has none; take lora"
            raise ConfigError(f"bitfit: this {type(model).__name__} has no bias ({rule})")
        return found

    def formula(self, model: Model) -> int:
        return sum(param.size for param in self._biases(model))


@dataclass(frozen=True)
class Head(Method):
    """The head learns alone, on what a frozen body makes of a text."""

    name: ClassVar[str] = "head"
    about: ClassVar[str] = "the head"

    def insert(self, model: Model) -> None:
        if not head_of(model):
            what = (
                "the head of a tied model is its embedding"
                if hasattr(model.config, "tied")
                else "it has no head"
            )
            rule = "must have a head of its own, as a classifier or an untied model has; take lora"
            raise ConfigError(f"head: {what} ({rule})")

    def heads(self, model: Model) -> list[Layer]:
        return head_of(model)

    def formula(self, model: Model) -> int:
        self.insert(model)
        return 0
