"""A plan of a scaling study: for each compute budget models of several sizes, each with its text, rate and time.

Rules, all to be overridden:

    shape           width = 32 x layers (aspect), heads of 32, parameters = 12 L d² without embeddings
    learning rate   LR (N / N_0)^-0.5, tokens per step BATCH (N / N_0)^0.5, with N_0 = 1e6
    text            D = C / (6 N) tokens
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from chainrule.errors import ConfigError, DataError, Setting
from chainrule.models import n_params as count_params
from chainrule.models.registry import described
from chainrule.scaling.laws.allocation import TOKENS_PER_PARAMETER, chinchilla
from chainrule.scaling.laws.joint import FLOPS
from chainrule.trace.count import flops, step_batch, total
from chainrule.validate import Check

REFERENCE = 1e6  # parameters, of which LR and BATCH are known to be good
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the size that the rule of thumb says
LEAST = 8  # rows of a batch
MOST_HEADS = 400  # of a model: about 8e11 parameters, if a head is 32 wide
OVER = 1.5  # times its budget that a model may take without a word
BEYOND = 2  # times the largest size that may be wanted without a word


@dataclass(frozen=True)
class PlanConfig:
    """How a study is planned."""

    budgets: tuple[float, ...] = (1e11, 3e11, 1e12, 3e12)
    """Compute budgets in FLOPs."""
    factors: tuple[float, ...] = FACTORS
    """Sizes of each budget, as factors of the size for 20 tokens per parameter."""
    ratio: float = TOKENS_PER_PARAMETER
    """Tokens per parameter of the size in the middle."""
    context: int = 128
    """Tokens of a window."""
    vocab_size: int = 128
    """Size of the vocabulary, which the text decides."""
    aspect: int = 32
    """Width divided by the number of layers."""
    head: int = 32
    """Width of an attention head."""
    lr: float = 3e-3
    """Learning rate of a million parameters; others by N^-0.5."""
    batch_tokens: int = 2048
    """Tokens per step of a million parameters; others by N^0.5."""
    seeds: int = 1
    """Runs of each model."""

    def __post_init__(self) -> None:
        check = Check("scale plan", self)
        check.at_least(1, "context", "vocab_size", "aspect", "head", "batch_tokens", "seeds")
        check.positive("lr", "ratio")
        for name in ("budgets", "factors"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if not values:
                raise ConfigError("scale plan: ", Setting(name), " has no value (must have at least one)")
            for value in values:
                if not (math.isfinite(value) and value > 0):
                    raise ConfigError.of("scale plan", {name: value}, "each must be a positive number")
        names = [f"{budget:g}" for budget in self.budgets]
        for place, name in enumerate(names):
            if name in names[:place]:
                rule = "each must occur once, within six digits: it names its runs"
                raise ConfigError.of("scale plan", {"budgets": self.budgets[place]}, rule)


@dataclass(frozen=True)
class Planned:
    """One model of a study and its training."""

    budget: float
    sizes: dict[str, int]
    """Fields of a GPT's config"""
    params: int
    """N as Hoffmann et al. count it: all parameters"""
    params_without_embedding: int
    """N as Kaplan et al. count it"""
    tokens: int
    batch_size: int
    lr: float
    steps: int
    flops: float
    """6 N D"""
    exact_flops: float
    """As traced: embeddings looked up cost nothing, attention between positions does"""
    seconds: float | None = None
    """On this machine, if it was measured"""

    @property
    def name(self) -> str:
        """Of its directory: budget and size"""
        return f"C{self.budget:g}-N{self.params}".replace("+", "")


@dataclass(frozen=True)
class Plan:
    """All models of a study."""

    config: PlanConfig
    models: list[Planned] = field(default_factory=list)

    @classmethod
    def of(cls, config: PlanConfig) -> Self:
        """The grid of budgets and sizes; two factors that lead to the same shape are one model"""
        found: dict[str, Planned] = {}
        for budget in config.budgets:
            middle = chinchilla(budget, config.ratio)
            for factor in config.factors:
                model = planned(budget, factor * middle.params, config)
                found.setdefault(model.name, model)
        return cls(config, list(found.values()))

    @property
    def asked(self) -> int:
        """How many models were asked for"""
        return len(self.config.budgets) * len(self.config.factors)

    def doubts(self) -> list[str]:
        """What is not as it was asked for, in words"""
        found = []
        count, most = len(self.models), max(model.params for model in self.models)
        middle = chinchilla(max(self.config.budgets), self.config.ratio)
        wanted = max(self.config.factors) * middle.params
        if wanted > BEYOND * most:
            why = f"{wanted:.1e} parameters are wanted, {most:.1e} is the largest size (smaller budgets)"
            found.append(f"{count} model{'s' * (count > 1)} of {self.asked} asked for: {why}")
        elif count < self.asked:
            why = "sizes fell together: there is no smaller head or layer (a smaller head, or larger budgets)"
            found.append(f"{count} model{'s' * (count > 1)} of {self.asked} asked for; {why}")
        over = sum(model.flops > OVER * model.budget for model in self.models)
        if over:
            said = f"{over} of them take{'s' * (over == 1)} more than the budget"
            found.append(f"{said}: one step alone does (larger budgets)")
        return found

    @property
    def total_flops(self) -> float:
        return self.config.seeds * sum(model.flops for model in self.models)

    def to_dict(self) -> dict[str, Any]:
        return {"config": asdict(self.config), "models": [asdict(model) for model in self.models]}

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """A plan from the file that `chainrule scale plan --out` wrote"""
        rule = "must be the --out of chainrule scale plan"
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls(PlanConfig(**found["config"]), [Planned(**model) for model in found["models"]])
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}; {rule})") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DataError(f"{path}: is not a plan ({rule})") from error


def shape(params: float, config: PlanConfig) -> dict[str, int]:
    """Layers, heads and width of the GPT whose number of parameters is nearest, with width near aspect x layers"""

    def count(layers: int, heads: int) -> int:
        return count_params(_description(config, layers, heads))

    best: tuple[float, int, int] | None = None
    for heads in range(1, MOST_HEADS + 1):
        ideal = max(1.0, heads * config.head / config.aspect)
        for layers in {
            max(1, math.floor(ideal)),
            math.ceil(ideal),
            max(1, round(ideal) - 1),
            round(ideal) + 1,
        }:
            off = abs(math.log(count(layers, heads) / params)) + 0.2 * abs(math.log(layers / ideal))
            if best is None or off < best[0]:
                best = (off, layers, heads)
        if best is not None and count(1, heads) > 4 * params:
            break
    assert best is not None
    _, layers, heads = best
    return {"n_layer": layers, "n_head": heads, "n_embd": heads * config.head, "block_size": config.context}


def planned(budget: float, params: float, config: PlanConfig) -> Planned:
    """A model of about so many parameters, and the training that spends the budget on it"""
    sizes = shape(params, config)
    description = {"model_type": "gpt", "vocab_size": config.vocab_size, **sizes}
    N = count_params(description)
    embedding = (config.vocab_size + config.context) * sizes["n_embd"]
    D = budget / (FLOPS * N)
    rows = max(LEAST, round(config.batch_tokens * math.sqrt(N / REFERENCE) / config.context))
    steps = max(1, round(D / (rows * config.context)))
    tokens = steps * rows * config.context
    model = make_abstract(description)
    per_step = total(flops(model, step_batch(model, rows, config.context))).total
    return Planned(
        budget, sizes, N, N - embedding, tokens, rows, config.lr * (N / REFERENCE) ** -0.5, steps,
        FLOPS * N * tokens, float(per_step) * steps,
    )  # fmt: skip


def make_abstract(description: dict[str, Any]) -> Any:
    """A model of shapes only"""
    kind, config = described(description)
    return kind.abstract(config)


def _description(config: PlanConfig, layers: int, heads: int) -> dict[str, Any]:
    sizes = {"n_layer": layers, "n_head": heads, "n_embd": heads * config.head, "block_size": config.context}
    return {"model_type": "gpt", "vocab_size": config.vocab_size, **sizes}


def timed(plan: Plan) -> Plan:
    """With the seconds of each model on this machine, from a few measured steps of each shape"""
    from chainrule.scaling.speed import step_seconds

    models = []
    for model in plan.models:
        made = make_abstract({"model_type": "gpt", "vocab_size": plan.config.vocab_size, **model.sizes})
        pace = step_seconds(made, step_batch(made, model.batch_size, plan.config.context))
        models.append(replace(model, seconds=pace * model.steps))
    return Plan(plan.config, models)


def check_text(plan: Plan, tokens: int) -> list[str]:
    """Which models would read the text more than once, in words"""
    again = [model for model in plan.models if model.tokens > tokens]
    if not again:
        return []
    most = max(model.tokens / tokens for model in again)
    return [f"{len(again)} of {len(plan.models)} models read the text more than once, up to {most:.1f} times"]
