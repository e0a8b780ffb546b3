"""Parameters, work and memory of a model by formula, exactly, before it exists.

parameters      numbers that learn, by component
flops           work of a batch, forward and backward
training_memory weights, gradients, optimiser, and what waits for the backward pass
running_memory  weights and the cache of a model that writes
"""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.autograd.tape import LARGE
from chainrule.scaling.batch import FLOAT, MASKED, SOURCE, TOKENS, Batch, Work
from chainrule.scaling.parts import Attend, Matrix, Part

MASKED_SHARE = 0.15  # of the words, in the training of BERT
COMPONENTS = ("embedding", "attention", "mlp", "norms", "head")
SLOTS = 2  # numbers that AdamW keeps per parameter: both moments
BITS = {
    "fp32": 32.0,
    "bf16": 16.0,
    "int8": 8.5,
    "int4": 4.5,
}  # per weight of a matrix, as in generate/weights.py


def parameters(parts: Sequence[Part]) -> dict[str, int]:
    """How many numbers learn, by component; a matrix that two parts share counts once.

    >>> import chainrule as cr
    >>> from chainrule.scaling import parameters, parts_of
    >>> parameters(parts_of(cr.models.Seq2SeqConfig.base()))
    {'embedding': 25600000, 'attention': 18874368, 'mlp': 25196544, 'norms': 30720, 'head': 25650000}
    """
    return {name: sum(part.params for part in parts if part.component == name) for name in COMPONENTS}


def step_batch(parts: Sequence[Part], rows: int, tokens: int) -> Batch:
    """A training batch, with a source as long as the text and with masked words for models that read such."""
    used = {getattr(part, "over", TOKENS) for part in parts}
    masked = round(MASKED_SHARE * rows * tokens)
    return Batch(rows, tokens, tokens if SOURCE in used else 0, masked if MASKED in used else 0)


def flops(parts: Sequence[Part], batch: Batch, *, dense: bool = False) -> dict[str, Work]:
    """The work of one pass over a batch, by component.

    Under a causal mask half of the scores are thrown away; `dense` counts them, as the NumPy reference computes them.
    """
    found = {}
    for name in COMPONENTS:
        works = [part.work(batch, dense=dense) for part in parts if part.component == name]
        found[name] = Work(*(sum(column) for column in zip(*works, strict=True))) if works else Work()
    return found


def total(works: dict[str, Work]) -> Work:
    """All components together."""
    return Work(*(sum(column) for column in zip(*works.values(), strict=True)))


def kept_for_backward(parts: Sequence[Part], batch: Batch) -> dict[str, int]:
    """Bytes of the arrays that wait for the backward pass, by component.

    The op of a norm or an activation is cheap: its output is computed again where it would take `tape.LARGE` bytes.
    Ids, targets and parameters are not counted here.
    """
    found = dict.fromkeys(COMPONENTS, 0)
    for part in parts:
        arrays = (a for a in part.kept(batch) if not (a.cheap and a.nbytes >= LARGE))
        found[part.component] += sum(a.nbytes for a in arrays)
    return found


def training_memory(parts: Sequence[Part], batch: Batch) -> dict[str, int]:
    """Bytes that training by AdamW holds at the end of a forward pass."""
    numbers = FLOAT * sum(parameters(parts).values())
    return {
        "weights": numbers,
        "gradients": numbers,
        "optimiser": SLOTS * numbers,
        "activations": sum(kept_for_backward(parts, batch).values()),
    }


def running_memory(parts: Sequence[Part], batch: Batch, weights: str = "fp32") -> dict[str, int]:
    """Bytes of a model that writes: its weights in a format of `generate.Decoder`, and keys and values so far."""
    cached = sum(part.cached(batch) for part in parts if isinstance(part, Attend))
    packed = sum(part.packed for part in parts)
    rest = sum(parameters(parts).values()) - packed  # vectors and learned positions stay in float32
    return {"weights": round(packed * BITS[weights] / 8) + FLOAT * rest, "cache": FLOAT * cached}


def lora(parts: Sequence[Part], rank: int, names: Sequence[str] = ("query", "value")) -> int:
    """Trainable numbers when every matrix of these names gets a change of this rank: r (n_in + n_out) each."""
    chosen = [part for part in parts if isinstance(part, Matrix) and part.name in names]
    return sum(rank * (part.n_in + part.n_out) for part in chosen)
