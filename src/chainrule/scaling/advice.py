"""What to train with a budget: the size by the rule of thumb, with little text, with much use, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chainrule.scaling.laws.allocation import Allocation, chinchilla, data_limited, optimal, with_inference
from chainrule.scaling.laws.comparison import money
from chainrule.scaling.laws.published import CHINCHILLA_REFITTED

MEANING = {
    "smaller": "a model that suits the text; compute is left over",
    "epochs": "the model that suits the compute, on the text again and again",
    "larger": "the text once, with a model so large that the compute is spent",
}


@dataclass(frozen=True)
class Advice:
    """Sizes for a budget."""

    compute: float
    rule: Allocation
    """20 tokens per parameter"""
    law: Allocation
    """By the law of Hoffmann et al., fitted again"""
    limited: dict[str, Allocation] = field(default_factory=dict)
    """With less text than the rule wants"""
    serving: Allocation | None = None
    """For the loss of `law` at the lowest cost of training and use"""
    hours: float | None = None
    price: float | None = None

    def to_dict(self) -> dict[str, Any]:
        def one(each: Allocation) -> dict[str, float]:
            return each._asdict() | {"flops": each.flops}

        found: dict[str, Any] = {"compute": self.compute, "rule": one(self.rule), "law": one(self.law)}
        if self.limited:
            found["limited"] = {name: one(each) for name, each in self.limited.items()}
        if self.serving:
            found["serving"] = one(self.serving)
        return found | {"hours": self.hours, "price": self.price}

    def __str__(self) -> str:
        lines = [
            f"{self.compute:.3g} FLOPs = 6 N D",
            f"rule of thumb    {_words(self.rule)}    20 tokens per parameter",
            f"fitted law       {_words(self.law)}    Hoffmann et al. 2022, fitted again 2024",
        ]
        lines += [f"{name:<16} {_words(each)}    {MEANING[name]}" for name, each in self.limited.items()]
        if self.serving:
            lines.append(
                f"{'with its use':<16} {_words(self.serving)}    the same loss, cheapest in training and use"
            )
        if self.hours is not None:
            cost = "" if self.price is None else f", {self.price:,.0f} in money"
            lines.append(f"{self.hours:,.1f} hours{cost}")
        return "\n".join(lines)


def advise(
    compute: float,
    available: float | None = None,
    served: float | None = None,
    flops_per_second: float | None = None,
    devices: int = 1,
    price: float | None = None,
) -> Advice:
    """All that follows from a budget in FLOPs; what is not given is left out"""
    rule, law = chinchilla(compute), optimal(CHINCHILLA_REFITTED, compute)
    limited = data_limited(compute, available) if available is not None and available < rule.tokens else {}
    serving = None
    if served is not None:
        loss = CHINCHILLA_REFITTED(law.params, law.tokens).item()
        serving = with_inference(CHINCHILLA_REFITTED, loss, served)
    hours = None if flops_per_second is None else compute / (flops_per_second * devices) / 3600
    paid = None if hours is None or price is None else money(devices, hours, price)
    return Advice(compute, rule, law, limited, serving, hours, paid)


def _words(each: Allocation) -> str:
    return f"N {each.params:.3g}, D {each.tokens:.3g}"
