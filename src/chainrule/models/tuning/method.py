"""A way to tune a trained model: what of it learns, and what is added to it.

A method is a small frozen dataclass. `apply` freezes the model and puts the method's own parts into it; `n_params` says
by a formula how many numbers will learn. What learns is all that an adapter's file holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from chainrule.calls import Fields
from chainrule.errors import ConfigError
from chainrule.models.model import Model
from chainrule.models.tuning.parts import parts
from chainrule.models.tuning.places import head_of
from chainrule.nn import Layer

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

    def apply(self, model: M) -> M:
        """Freeze the model, insert what the method adds, and let that and a head for labels learn; returns it."""
        if found := list(parts(model)):
            rule = "must be a plain model: merge it, or take its base"
            raise ConfigError(f"{self.name}: the model has {found[0]} already ({rule})")
        model.freeze()
        self.insert(model)
        for layer in self.heads(model):
            layer.unfreeze()
        return model

    def insert(self, model: Model) -> None:
        """Put the parts of the method into a frozen model, or let some of its own parameters learn again."""
        raise NotImplementedError

    def heads(self, model: Model) -> list[Layer]:
        """What learns beside the method's own parts: a head for labels, which knows nothing of new ones."""
        return head_of(model) if hasattr(model.config, "labels") else []

    def n_params(self, model: Model) -> int:
        """How many numbers learn once the method is applied to a plain model, by formula."""
        return self.formula(model) + sum(layer.count() for layer in self.heads(model))

    def formula(self, model: Model) -> int:
        """The same without the head."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"method": self.name} | asdict(self)
