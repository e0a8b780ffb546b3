"""A way to tune a trained model: what of it learns, and what is added to it.

A method is a small frozen dataclass. `apply` freezes the model and puts the method's own parts into it; `n_params` says
by a formula how many numbers will learn. What learns is all that an adapter's file holds.

Rows of new tokens learn beside the parts of every method: a frozen row is one that the model can only learn to avoid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, TypeVar

from chainrule.calls import Fields
from chainrule.errors import ConfigError
from chainrule.models.language_model import TransformerLM
from chainrule.models.model import Model
from chainrule.models.reward import Reward
from chainrule.models.tuning.parts import parts
from chainrule.models.tuning.places import head_of, put
from chainrule.nn import Layer, TokenRows

M = TypeVar("M", bound=Model)


def words(said: str | Iterable[str]) -> tuple[str, ...]:
    """The words of a setting, which a file has as a list and a command line with commas between them."""
    texts = (said,) if isinstance(said, str) else said
    return tuple(word for text in texts for word in str(text).split(",") if word)


@dataclass(frozen=True)
class Method(Fields):
    """Base of the methods."""

    name: ClassVar[str]
    about: ClassVar[str]
    """What learns, in words."""
    alone: ClassVar[bool] = True
    """What learns is saved without the rest of the model, which stays that of the base."""
    exact: ClassVar[bool] = True
    """Before the first step the model computes what the base does, bit for bit."""
    peft_type: ClassVar[str] = ""
    """The name of the method in PEFT's files; empty if PEFT has none."""

    tokens: tuple[int, ...] = field(default=(), kw_only=True)
    """Tokens whose rows in the embedding and the head learn too: those that are new."""

    def apply(self, model: M) -> M:
        """Freeze the model, insert what the method adds, and let that and a new head learn; returns it."""
        if found := list(parts(model)):
            rule = "must be a plain model: merge it, or take its base"
            raise ConfigError(f"{self.name}: the model has {found[0]} already ({rule})")
        model.freeze()
        tables = self._tables(model)
        for path, layer in tables.items():
            put(model, path, TokenRows(layer, self.tokens))
        self.insert(model)
        for layer in self.heads(model):
            layer.unfreeze()
        for layer in parts(model).values():
            if isinstance(layer, TokenRows):
                layer.token_rows.requires_grad = True
        return model

    def _tables(self, model: Model) -> dict[str, Any]:
        """The embedding and a frozen head by their paths in a plain model, if rows of them learn."""
        if not self.tokens:
            return {}
        if not isinstance(model, TransformerLM):
            rule = "must be a transformer that writes, such as a gpt or a llama"
            raise ConfigError(f"{self.name}: rows of tokens of a {type(model).__name__} ({rule})")
        learning = self.heads(model)
        layers = {id(layer) for layer in (model.embedding, model.head) if layer not in learning}
        return {path: layer for path, layer in model.named_layers() if id(layer) in layers}

    def insert(self, model: Model) -> None:
        """Put the parts of the method into a frozen model, or let some of its own parameters learn again."""
        raise NotImplementedError

    def heads(self, model: Model) -> list[Layer]:
        """What learns beside the method's own parts: a head for labels or rewards, which knows nothing of new ones."""
        return head_of(model) if hasattr(model.config, "labels") or isinstance(model, Reward) else []

    def n_params(self, model: Model) -> int:
        """How many numbers learn once the method is applied to a plain model, by formula."""
        rows = len(self.tokens) * sum(layer.weight.shape[1] for layer in self._tables(model).values())
        return self.formula(model) + rows + sum(layer.count() for layer in self.heads(model))

    def formula(self, model: Model) -> int:
        """The same without the head and the rows of tokens."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = {"method": self.name} | asdict(self)
        return found if self.tokens else {name: value for name, value in found.items() if name != "tokens"}
