"""`chainrule count`"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.commands.sample import Weights
from chainrule.cli.render.numbers import amount, size
from chainrule.errors import ConfigError
from chainrule.models.gradient import microbatch_count
from chainrule.models.registry import KNOWN
from chainrule.scaling.presets import PRESETS
from chainrule.suggest import hinted
from chainrule.validate import Check

KEYS = {"recompute": "again", "optimizer": "optimiser"}  # in JSON, as scripts know them
MOST_LAYERS = 10_000  # each is traced


@dataclass(frozen=True)
class Count(Reporting):
    """Parameters, FLOPs and memory of a model, counted without making it.

    Give a family (gpt, llama, ...) and sizes, a well-known model, or the directory of a run.

    Example: chainrule count gpt --n-layer 12 --n-head 12 --n-embd 768 --block-size 1024 --vocab-size 50257
    """

    sizes: ClassVar[Any] = None  # the config of the family, if one is counted

    what: Annotated[str, Argument("FAMILY|NAME|RUN")] = "gpt"
    """A family, a well-known model, or the directory of a run."""
    batch_size: int = 32
    """Batch size of a training step."""
    tokens: int | None = None
    """Tokens per row. Default: the model's context."""
    weights: Weights = "fp32"
    """Format of the weights of a model that generates text; stored: as a GGUF file has them, all else in fp32."""
    measure: bool = False
    """Also measure how long a step takes here: about two seconds."""

    def run(self) -> None:
        model, tokens, written = self._model()
        tokens = tokens if self.tokens is None else self.tokens
        Check("count", replace(self, tokens=tokens)).at_least(1, "batch_size", "tokens")
        context = max(model.config.block_size, getattr(model, "training_window", 1))
        if tokens > context:
            raise ConfigError.of("count", {"tokens": tokens}, f"the model's context is {context}")
        batch = cr.scaling.step_batch(model, self.batch_size, tokens)
        found = report(model, batch, written, self.weights)
        if self.measure and self.what in PRESETS:
            raise ConfigError("count: only a family or a run can be measured (leave --measure out)")
        if self.measure:
            found["measured"] = measured(model, batch, found["flops"]["step"])
        self.report({"model": self.what} | for_scripts(found), lambda: table(self.what, found))

    def _model(self) -> tuple[cr.models.Model, int, cr.models.Model]:
        """The model without its values, the tokens in a row of its training, and the model as its files have it."""
        written = None
        if self.weights == "stored" and (self.sizes is not None or self.what in PRESETS):
            rule = "must be a format, such as int8: nothing of it is stored"
            raise ConfigError.of("count", {"weights": self.weights}, rule)
        if self.sizes is not None:
            if hasattr(self.sizes, "n_layer"):
                Check("count", self.sizes).whole(1, MOST_LAYERS, "n_layer")
            model = cr.models.family(self.what).model.abstract(self.sizes)
        elif self.what in PRESETS:
            sizes, tokens = PRESETS[self.what]
            model = cr.models.model_class(sizes).abstract(sizes)
            return model, tokens, model
        elif Path(self.what).exists():
            from chainrule.runs.load import open_model

            written = open_model(self.what, to_decode=True).model
            model = type(written).abstract(written.config)
        else:
            known = [*KNOWN, *PRESETS]
            rule = hinted(f"must be one of {', '.join(known)}, or a directory", self.what, known)
            raise ConfigError(f"count: {self.what}: no such model or run ({rule})")
        return model, getattr(model, "training_window", model.config.block_size), written or model


def command(_: str, words: Sequence[str]) -> type[Count]:
    """`Count` with the sizes of the family that the words begin with as flags."""
    what = words[0] if words and not words[0].startswith("-") else "gpt"
    if what not in KNOWN:
        return Count
    config = KNOWN[what].config
    sizes = [("sizes", config, field(default_factory=config))]
    return make_dataclass("Command", sizes, bases=(Count,), namespace={"__doc__": Count.__doc__}, frozen=True)


def report(
    model: cr.models.Model, batch: cr.scaling.Batch, written: cr.models.Model, weights: Weights
) -> dict[str, Any]:
    """Everything that is printed, in numbers."""
    running = written if weights == "stored" else model
    numbers, works = cr.scaling.parameters(model), cr.scaling.flops(model, batch)
    step, tokens = cr.scaling.total(works), batch.rows * batch.tokens
    microbatches = microbatch_count(model.microbatch_tokens, batch.rows, batch.tokens)
    at_once = cr.scaling.step_batch(model, -(-batch.rows // microbatches), batch.tokens)
    writing = cr.scaling.Batch(rows=1, tokens=1, source=batch.source, past=batch.tokens - 1)
    return {
        "batch": asdict(batch),
        "parameters": with_total(numbers),
        "flops": {
            **{name: work._asdict() for name, work in works.items()},
            "step": step.total,
            "forward_per_token": step.forward // tokens,
            "step_per_token": step.total // tokens,
        },
        "microbatches": microbatches,
        "training_bytes": with_total(cr.scaling.training_memory(model, at_once)),
        "running_bytes": with_total(cr.scaling.running_memory(running, writing, weights)),
    }


def for_scripts(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the keys of JSON."""
    return {KEYS.get(k, k): for_scripts(v) if isinstance(v, Mapping) else v for k, v in found.items()}


def with_total(numbers: Mapping[str, int]) -> dict[str, int]:
    return dict(numbers) | {"total": sum(numbers.values())}


def measured(model: cr.models.Model, batch: cr.scaling.Batch, work: int) -> dict[str, float]:
    """Seconds of a step on this machine, and what follows from them."""
    from chainrule.scaling.speed import step_seconds

    seconds, tokens = step_seconds(model, batch), batch.rows * batch.tokens
    return {
        "seconds_per_step": seconds,
        "tokens_per_second": tokens / seconds,
        "flops_per_second": work / seconds,
    }


def table(name: str, found: Mapping[str, Any]) -> str:
    """The report for people."""
    numbers, work, batch = found["parameters"], found["flops"], found["batch"]
    total = numbers["total"]
    lines = [f"{name}: {total:,} parameters"]
    lines += [f"  {part:<12}{n:>17,}{n / total:>8.1%}" for part, n in numbers.items() if part != "total"]
    if not numbers["head"]:
        lines[-1] += "  shares the embedding's matrix"
    size = f"{batch['rows']} × {batch['tokens']} tokens"
    size += " and as many of the source" if batch["source"] else ""
    lines += ["", f"a training step of {size}: {amount(work['step'])}FLOP"]
    lines += [f"  {'':<12}{'forward':>10}{'backward':>10}{'recompute':>11}"]
    for part in numbers:
        if part in work and work[part]["forward"]:
            lines += [f"  {part:<12}" + "".join(f"{amount(n):>10}" for n in work[part].values())]
    forward, step = amount(work["forward_per_token"]), amount(work["step_per_token"])
    lines += [f"  per token: {forward}FLOP forward, {step}FLOP to learn"]
    if m := found.get("measured"):
        step, tokens = f"{m['seconds_per_step'] * 1e3:,.1f} ms", f"{m['tokens_per_second']:,.0f} tokens"
        lines += [f"  here: {step}, {tokens} per second, {amount(m['flops_per_second'])}FLOP per second"]
    split = f", in {found['microbatches']} microbatches" if found["microbatches"] > 1 else ""
    lines += memory(f"memory to train, {size}{split}", found["training_bytes"])
    lines += memory(f"memory to run, {batch['tokens']} tokens", found["running_bytes"])
    return "\n".join(lines)


def memory(title: str, found: Mapping[str, int]) -> list[str]:
    parts = [f"  {name:<12}{size(n):>17}" for name, n in found.items() if name != "total"]
    return ["", f"{title}: {size(found['total'])}", *parts]
