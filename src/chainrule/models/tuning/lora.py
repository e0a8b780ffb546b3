"""LoRA: a trained change of low rank beside frozen matrices. (Hu et al. 2022)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chainrule.errors import ConfigError
from chainrule.models.model import Model
from chainrule.models.tuning.method import Method, words
from chainrule.models.tuning.places import Matrix, chosen, put
from chainrule.nn import LoRALinear, PackedLoRALinear
from chainrule.validate import Check


@dataclass(frozen=True)
class LoRA(Method):
    """W x + (α/r) B A x with a frozen W, a pair A (r, in) and B (out, r) for each matrix.

    >>> import chainrule as cr
    >>> base = cr.models.make("llama", n_layer=2, n_embd=32, vocab_size=10)
    >>> method = cr.models.tuning.LoRA(rank=4)
    >>> method.n_params(base), method.apply(base).count(trainable=True)
    (896, 896)
    """

    name: ClassVar[str] = "lora"
    about: ClassVar[str] = "a change of low rank beside frozen matrices"
    peft_type: ClassVar[str] = "LORA"

    rank: int = 8
    """Rank of the change of a matrix."""
    alpha: float | None = None
    """The change is multiplied by alpha / rank. Default: the rank, so that the factor is 1."""
    dropout: float = 0.0
    """Fraction of the inputs of A set to 0 in training."""
    targets: tuple[str, ...] = ("q", "v")
    """Which matrices change: q, k, v, o, mlp, all, or a pattern over the names of layers, such as "h.3.*"; several
    with commas between them. Default: queries and values."""
    fused: bool = False
    """One pair for a layer that holds queries, keys and values together (GPT), as PEFT has it, in place of a pair for
    each; all three then change."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", words(self.targets))
        check = Check("lora", self)
        check.at_least(1, "rank")
        check.positive("alpha")
        check.fraction("dropout")
        check.require(bool(self.targets), "targets", rule="must name at least one layer")

    def insert(self, model: Model) -> None:
        for path, found in self._layers(model).items():
            base = found[0].layer
            most = min(min(each.shape) for each in found)
            if self.rank > most:
                rule = f"must be at most {most}, the smaller size of {found[0].name}"
                raise ConfigError.of(self.name, {"rank": self.rank}, rule)
            rows = {each.role: each.rows for each in found if each.rows is not None}
            layer = (
                PackedLoRALinear(base, self.rank, self.alpha, rows=rows, dropout=self.dropout)
                if rows and not self.fused
                else LoRALinear(base, self.rank, self.alpha, dropout=self.dropout)
            )
            put(model, path, layer)

    def matrices(self, model: Model) -> list[Matrix]:
        """The matrices of a plain model that get a pair each."""
        found = [each for layer in self._layers(model).values() for each in layer]
        if not self.fused:
            return found
        return list({each.path: each._replace(name=each.path, rows=None) for each in found}.values())

    def _layers(self, model: Model) -> dict[str, list[Matrix]]:
        layers: dict[str, list[Matrix]] = {}
        for each in chosen(self.name, model, self.targets):
            layers.setdefault(each.path, []).append(each)
        return layers

    def formula(self, model: Model) -> int:
        """Σ r (in + out)"""
        return sum(self.rank * sum(each.shape) for each in self.matrices(model))
