"""The parts of a transformer in sizes alone; each knows its parameters, its work and what it keeps for backward.

Work is in FLOPs of matrix products, a multiply-add being two; what is done element by element (norms, activations,
softmax) is not counted. A matrix costs one product forward and two backward, for its input and for itself. Attention
costs two products forward and five backward, since our op computes the scores again instead of keeping them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chainrule.ops.linear_cross_entropy import KEEP
from chainrule.scaling.batch import FLOAT, SOURCE, TOKENS, Batch, Kept, Work

# How many inputs an activation keeps: the sign of relu's output is enough.
INPUTS = {"relu": 0, "gelu": 1, "gelu_tanh": 1, "silu": 1, "swiglu": 2}
CHEAP = ("gelu", "gelu_tanh", "swiglu")  # activations whose output is computed again rather than kept


@dataclass(frozen=True)
class Part:
    """Base: costs nothing."""

    @property
    def component(self) -> str:
        """Under which name it is counted: embedding, attention, mlp, norms or head."""
        raise NotImplementedError

    @property
    def packed(self) -> int:
        """Numbers of its matrix, which a weight format of `generate.Decoder` may hold in fewer bits."""
        return 0

    @property
    def params(self) -> int:
        """Numbers that learn."""
        return self.packed

    def work(self, batch: Batch, *, dense: bool = False) -> Work:
        """FLOPs; `dense` counts the scores that a causal mask throws away too."""
        return Work()

    def kept(self, batch: Batch) -> Iterator[Kept]:
        """What the part keeps, its input included where nobody else does."""
        return iter(())


@dataclass(frozen=True)
class Table(Part):
    """Rows to look up, by token or by place: no work."""

    rows: int
    width: int
    by_token: bool = True

    @property
    def component(self) -> str:
        return "embedding"

    @property
    def packed(self) -> int:
        return self.rows * self.width if self.by_token else 0

    @property
    def params(self) -> int:
        return self.rows * self.width


@dataclass(frozen=True)
class Norm(Part):
    """Keeps the residual stream it reads, a number or two per position, and its output if a matrix reads that."""

    width: int
    bias: bool = True
    rms: bool = False
    over: str = TOKENS
    stream: bool = True
    read: bool = True

    @property
    def component(self) -> str:
        return "norms"

    @property
    def params(self) -> int:
        return self.width * (2 if self.bias else 1)

    def kept(self, batch: Batch) -> Iterator[Kept]:
        n = batch.positions(self.over)
        if self.stream:
            yield Kept(n * self.width)
        if self.read:
            yield Kept(n * self.width, cheap=True)
        yield Kept(n * (1 if self.rms else 2))
        if not (self.bias or self.rms):
            yield Kept(self.width)  # zeros in place of the shift


@dataclass(frozen=True)
class Matrix(Part):
    """y = x Wᵀ + b. Its input is kept by who made it."""

    name: str
    of: str
    n_in: int
    n_out: int
    bias: bool = True
    over: str = TOKENS

    @property
    def component(self) -> str:
        return self.of

    @property
    def packed(self) -> int:
        return self.n_in * self.n_out

    @property
    def params(self) -> int:
        return self.packed + (self.n_out if self.bias else 0)

    def work(self, batch: Batch, *, dense: bool = False) -> Work:
        forward = 2 * batch.positions(self.over) * self.n_in * self.n_out
        return Work(forward, 2 * forward)


@dataclass(frozen=True)
class Attend(Part):
    """softmax(q kᵀ) v for each head. Keeps q, k, v, its output, and the log-sum-exp of each row of scores."""

    heads: int
    size: int
    kv_heads: int
    causal: bool = True
    over: str = TOKENS
    keys: str = TOKENS

    @property
    def component(self) -> str:
        return "attention"

    def pairs(self, batch: Batch, *, dense: bool = False) -> int:
        """Of query and key, per head."""
        past = batch.past if self.keys == TOKENS else 0
        queries, seen = batch.positions(self.over), batch.positions(self.keys) // batch.rows + past
        future = 0 if dense or not self.causal else batch.tokens * (batch.tokens - 1) // 2
        return queries * seen - batch.rows * future

    def work(self, batch: Batch, *, dense: bool = False) -> Work:
        product = 2 * self.pairs(batch, dense=dense) * self.heads * self.size
        return Work(2 * product, 4 * product, product)

    def kept(self, batch: Batch) -> Iterator[Kept]:
        queries, keys = batch.positions(self.over), batch.positions(self.keys)
        yield Kept(queries * self.heads * self.size)  # q
        yield Kept(keys * 2 * self.kv_heads * self.size)  # k and v
        yield Kept(queries * self.heads * self.size)  # the output
        yield Kept(queries * self.heads)  # the log-sum-exps

    def cached(self, batch: Batch) -> int:
        """Numbers in the cache of a generating model: keys and values of what comes before, or of the source."""
        if self.over != TOKENS or not (self.causal or self.keys == SOURCE):
            return 0
        past = batch.past if self.keys == TOKENS else 0
        return 2 * self.kv_heads * self.size * (batch.positions(self.keys) + batch.rows * past)


@dataclass(frozen=True)
class Activate(Part):
    """Between the matrices of an MLP: one of INPUTS."""

    kind: str
    width: int
    dropout: bool = False
    over: str = TOKENS

    @property
    def component(self) -> str:
        return "mlp"

    def kept(self, batch: Batch) -> Iterator[Kept]:
        n = batch.positions(self.over) * self.width
        yield Kept(n * INPUTS[self.kind])
        if self.dropout:
            yield Kept(n, itemsize=1)  # which ones were dropped
        if self.dropout and self.kind == "relu":
            yield Kept(n)  # its own output beside what dropout left of it
        yield Kept(n, cheap=self.kind in CHEAP and not self.dropout)


@dataclass(frozen=True)
class Angles(Part):
    """Cosines and sines of rotary positions, one table for all layers."""

    size: int

    @property
    def component(self) -> str:
        return "attention"

    def kept(self, batch: Batch) -> Iterator[Kept]:
        yield Kept(batch.tokens * self.size)


@dataclass(frozen=True)
class Head(Part):
    """Logits and their loss. `tied`: the matrix is the embedding's.

    Many logits are not kept. Without a foreseen gradient (`autograd.foreseen`, as in training) they are computed again,
    which is not counted. A bias is one more column of the matrix, whose input is 1.
    """

    width: int
    vocab_size: int
    tied: bool = True
    bias: bool = False
    over: str = TOKENS

    @property
    def component(self) -> str:
        return "head"

    @property
    def packed(self) -> int:
        return 0 if self.tied else self.width * self.vocab_size

    @property
    def params(self) -> int:
        return self.packed + (self.vocab_size if self.bias else 0)

    def logits(self, batch: Batch) -> int:
        """How many."""
        return batch.positions(self.over) * self.vocab_size

    def work(self, batch: Batch, *, dense: bool = False) -> Work:
        forward = 2 * self.logits(batch) * (self.width + (1 if self.bias else 0))
        return Work(forward, 2 * forward)

    def kept(self, batch: Batch) -> Iterator[Kept]:
        if self.bias:  # the joined matrix, and its inputs
            yield Kept((self.width + 1) * (self.vocab_size + batch.positions(self.over)))
        if self.logits(batch) <= KEEP:
            yield Kept(self.logits(batch))
        yield Kept(4 * batch.positions(self.over))  # loss, peak, sum and weight of each row


@dataclass(frozen=True)
class Scores(Head):
    """Logits that are all kept, and their loss: of few places or few classes."""

    def work(self, batch: Batch, *, dense: bool = False) -> Work:
        forward = 2 * self.logits(batch) * self.width
        return Work(forward, 2 * forward)

    def kept(self, batch: Batch) -> Iterator[Kept]:
        yield Kept(self.logits(batch) + 4 * batch.positions(self.over))


@dataclass(frozen=True)
class Keep(Part):
    """An array that is kept beside those of the other parts, such as the mask of a dropout."""

    of: str
    width: int
    itemsize: int = FLOAT
    over: str = TOKENS
    cheap: bool = False

    @property
    def component(self) -> str:
        return self.of

    def kept(self, batch: Batch) -> Iterator[Kept]:
        yield Kept(batch.positions(self.over) * self.width, self.itemsize, self.cheap)
