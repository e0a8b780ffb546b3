"""Which method suits the amount of data and what is needed, and what models for many tasks take on a disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from chainrule.calls import Fields
from chainrule.validate import Check

NONE = 10  # examples: fewer than these teach nothing
FEW = 1_000
MANY = 100_000


@dataclass(frozen=True)
class Needs(Fields):
    """What is there, and what matters."""

    examples: int = 0
    """Examples of the task."""
    tasks: int = 1
    """Versions of the same base, one for each task."""
    different: bool = False
    """The task is very different from what the base has learned, such as a new language."""
    performance: bool = False
    """The best result matters more than memory and disk."""
    swappable: bool = False
    """Parts that are swapped and compared, for many tasks; a slower forward pass is acceptable."""
    smallest: bool = False
    """The smallest possible adapter; the task is near to what the base does well."""
    prompt_suffices: bool = False
    """The base does well enough with a good prompt."""

    def __post_init__(self) -> None:
        check = Check("advise", self)
        check.at_least(0, "examples")
        check.at_least(1, "tasks")


class Advice(NamedTuple):
    """A method, by the name of `chainrule tune --method`, or "prompting"; and why."""

    method: str
    reasons: tuple[str, ...]


def advise(needs: Needs) -> Advice:
    """The method that suits the needs.

    >>> from chainrule.models.tuning import Needs, advise
    >>> advise(Needs(examples=5_000)).method
    'lora'
    """
    n = needs.examples
    if needs.prompt_suffices or n < NONE:
        why = "a good prompt suffices" if needs.prompt_suffices else f"{n} examples teach nothing"
        return Advice("prompting", (why, "no training and no storage"))
    if needs.smallest or (n < FEW and not needs.different):
        why = (
            "it has the fewest numbers"
            if needs.smallest
            else f"{n:,} examples are few: few numbers must learn"
        )
        return Advice("prefix", (why, "for a variation of what the base does well"))
    if needs.swappable:
        return Advice("adapter", ("parts are swapped and compared", "each forward pass costs a little more"))
    if needs.tasks == 1 and (n >= MANY or (n >= FEW and (needs.different or needs.performance))):
        whys = {
            f"{n:,} examples are many": n >= MANY,
            "the task is very different from what the base knows": needs.different,
            "the best result matters most": needs.performance,
        }
        return Advice("full", (*(why for why, holds in whys.items() if holds), "there is one task to store"))
    several = (
        f"{needs.tasks} versions share one base" if needs.tasks > 1 else f"{n:,} examples are enough for it"
    )
    return Advice("lora", (several, "the base keeps what it knows", "merged, it costs nothing at inference"))


def storage(params: float, bytes_each: float = 2, copies: int = 1) -> float:
    """Bytes of so many copies of a model, or of an adapter.

    >>> storage(70e9, 2, copies=10)
    1400000000000.0
    """
    return params * bytes_each * copies
