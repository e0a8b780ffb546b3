"""A view: one forward pass of a model over a text, read part by part.

Nothing is computed before it is asked for, and the forward pass runs once. Under edits everything is as they make it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd import intervene
from chainrule.autograd.capture import Capture, Captured, shown_to
from chainrule.autograd.types import Array, Saved
from chainrule.errors import ConfigError, GraphError
from chainrule.inspect.attention import weights_of
from chainrule.inspect.inside.edits import Edits, changes, patched_call
from chainrule.inspect.inside.sites import Sites, arguments, forward_graph, one_text
from chainrule.inspect.probe import evaluating, op_of
from chainrule.models.seq2seq.encoder_decoder import EncoderDecoder
from chainrule.nn import Layer
from chainrule.suggest import did_you_mean
from chainrule.trace.cost import ATTENTION, RECURRENT
from chainrule.types import IGNORE

GATES = {"rnn_sequence": "", "gru_sequence": "rzn", "lstm_sequence": "ifgo"}


class _Chosen(Capture):
    """Keeps the calls with these names, and what attention and recurrent layers saved."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(())
        self.names = set(names)

    def add(
        self,
        name: str,
        args: tuple[Any, ...],
        values: tuple[Array, ...],
        saved: Saved,
        tensors: tuple[Any, ...],
    ) -> None:
        unique = self.calls.unique(name)
        if unique in self.names:
            kept = saved if op_of(name) in (*ATTENTION, *RECURRENT) else ()
            self.found[unique] = Captured(unique, values, kept, [None] * len(values))


@dataclass(eq=False, repr=False)
class View:
    """What happens in a model while it reads a text; see `view`."""

    model: Layer
    ids: Any
    edits: Edits = None

    def __post_init__(self) -> None:
        self.given = arguments(self.model, self.ids)
        self._changes = changes(self.edits, self.sites)

    @cached_property
    def sites(self) -> Sites:
        """Where the parts of the model are, by the names of calls."""
        return Sites(forward_graph(self.model, self.given))

    def _run(self, seen: Capture) -> Any:
        with evaluating(self.model), shown_to(seen), intervene(self._changes):
            return self.model(*self.given).numpy()

    @cached_property
    def _passed(self) -> tuple[Array, Capture]:
        """The output of the forward pass, and the calls worth keeping."""
        sites, attentions = self.sites, [a for b in self.sites.blocks.values() for a in b.attentions]
        ends = [name for i, name in enumerate(sites.names) if i in sites.spine and not sites.block_at(i)]
        names = {*sites.streams.values(), *(part.call for part in sites.parts), *ends, *sites.last_norm}
        names |= {name for b in sites.blocks.values() for name in (b.neurons, b.recurrent) if name}
        names |= {name for a in attentions for name in (a.call, a.weights)}
        seen = _Chosen(names)
        return self._run(seen), seen

    def value(self, call: str) -> Array:
        """The value of any call by its name, with the axis of the batch: `h.0.mlp.gelu`"""
        _, seen = self._passed
        if call not in seen.found:
            again = _Chosen([call])
            self._run(again)
            if call not in again.found:
                hint = did_you_mean(call, self.sites.names, 3, 0.4)
                raise GraphError(f"inspect: nothing named {call!r} was called; {hint}".rstrip("; "))
            seen.found |= again.found
        return seen[call].value

    # -- predictions -------------------------------------------------------------------------------------------

    @property
    def tokens(self) -> Array:
        """The ids that were read (T,); of an encoder-decoder those of the target."""
        return one_text(self.given[2 if isinstance(self.model, EncoderDecoder) else 0])

    @cached_property
    def targets(self) -> Array:
        """What each position is to predict (T,): the next token, IGNORE at the last; of a BERT the token itself."""
        if "masked" in getattr(self.model, "reads", ()):
            return self.tokens
        return np.append(self.tokens[1:], IGNORE)

    @property
    def output(self) -> Array:
        """What the model returned for the text: logits (T, V) of a language model."""
        return one_text(self._passed[0])

    @property
    def logits(self) -> Array:
        """Scores of all tokens at every position (T, V)."""
        output = self.output
        if output.shape != (len(self.tokens), getattr(self.model.config, "vocab_size", None)):  # type: ignore[attr-defined]
            name, shape = type(self.model).__name__, output.shape
            raise ConfigError(
                f"{name}: gives {shape} for a text (must be logits of tokens to be predictions)"
            )
        return output

    @cached_property
    def logprobs(self) -> Array:
        """ln P of all tokens at every position (T, V)."""
        return np.asarray(ops.log_softmax(self.logits))

    @property
    def probabilities(self) -> Array:
        """P of all tokens at every position (T, V)."""
        return np.exp(self.logprobs)

    def top(self, k: int = 5) -> list[list[tuple[int, float]]]:
        """The k most probable tokens at each position, with their probabilities."""
        return top_tokens(self.logprobs, k)

    @property
    def loss(self) -> Array:
        """-ln P of each target (T,), in nats; NaN where there is none."""
        return target_loss(self.logprobs, self.targets)

    @property
    def rank(self) -> Array:
        """How many tokens are more probable than the target (T,); -1 where there is none."""
        return target_rank(self.logprobs, self.targets)

    @property
    def entropy(self) -> Array:
        """How undecided the model is at each position (T,), in nats: 0 to ln V."""
        return np.asarray(-(self.probabilities * self.logprobs).sum(-1))

    # -- parts -------------------------------------------------------------------------------------------------

    @property
    def blocks(self) -> list[str]:
        """The blocks by name, those of an encoder first."""
        return list(self.sites.blocks)

    def attention(self, block: str | int, *, cross: bool = False) -> Array:
        """Attention weights of a block (H, T, S); with `cross` those to the source."""
        return one_text(self.maps(block, cross=cross))

    def maps(self, block: str | int, *, cross: bool = False) -> Array:
        """The same of several texts (B, H, T, S)."""
        found = self.sites.attending(block, cross)
        _, seen = self._passed
        if found.weights in seen.found:  # an edit changes them, and the fused op was taken apart
            return seen[found.weights].value
        return weights_of(seen[found.call])

    def stream(self, block: str | int) -> Array:
        """The residual stream after a block (T, C); `embedding` is before the first, `source` before an encoder's."""
        return self._rows(self.sites.stream(block))

    def part(self, block: str | int, part: str = "stream") -> Array:
        """The stream after a block, or what its `attention`, `cross_attention` or `mlp` adds (T, C): for `Patch`."""
        return self._rows(patched_call(self.sites, block, part))

    def _rows(self, call: str) -> Array:
        value = self.value(call)
        rows = value if value.ndim == 2 else one_text(value)  # a model of windows has a row for each
        return rows[self.sites.before :]  # without those of a soft prompt

    @property
    def stream_norms(self) -> dict[str, Array]:
        """The length of the residual stream at each position (T,), before the first block and after each."""
        return {name: np.linalg.norm(self.stream(name), axis=-1) for name in self.sites.streams}

    def neurons(self, block: str | int) -> Array:
        """Activations of the MLP of a block, as its last matrix reads them (T, F)."""
        found = self.sites.block(block)
        if found.neurons is None:
            raise ConfigError(f"inspect: block {found.name} has no MLP (must be a block of a transformer)")
        return one_text(self.value(found.neurons))

    def gates(self, block: str | int) -> dict[str, Array]:
        """Gates and states of a recurrent layer (T, H): h; r, z, n of a GRU; i, f, g, o and the cell c of an LSTM."""
        found = self.sites.block(block)
        if found.recurrent is None:
            raise ConfigError(f"inspect: block {found.name} is not recurrent (must be an RNN, GRU or LSTM)")
        entry = self._passed[1][found.recurrent]
        names = GATES[op_of(entry.name)]
        states = {"h": one_text(entry.value)}
        if not entry.saved:
            raise ConfigError(
                f"inspect: an edit takes {entry.name} apart (gates are seen without such edits)"
            )
        if len(names) == 4:
            states["c"] = one_text(entry.saved[-2])
        parts = np.split(one_text(entry.saved[-3]), len(names), axis=-1) if names else []
        return dict(zip(names, parts, strict=True)) | states

    def summary(self, top: int = 5) -> dict[str, Any]:
        """Predictions and the size of the stream as plain lists, for JSON."""
        return {
            "tokens": self.tokens.tolist(),
            "targets": self.targets.tolist(),
            "loss": [None if np.isnan(x) else float(x) for x in self.loss],
            "rank": self.rank.tolist(),
            "entropy": self.entropy.tolist(),
            "top": [[list(pair) for pair in row] for row in self.top(top)],
            **self.parts(),
        }

    def parts(self) -> dict[str, Any]:
        """The size of the stream, and what there is in each block, as plain lists for JSON; of a model of any kind."""
        return {
            "stream_norms": {name: norms.tolist() for name, norms in self.stream_norms.items()},
            "blocks": [
                {
                    "name": block.name,
                    "heads": [each.heads for each in block.attentions],
                    "cross": [each.cross for each in block.attentions],
                    "neurons": block.neurons is not None,
                    "recurrent": block.recurrent is not None,
                }
                for block in self.sites.blocks.values()
            ],
        }


def view(model: Layer, ids: Any, edits: Edits = None) -> View:
    """Look inside a model while it reads one text: ids (T,), or the (source, target) of an encoder-decoder.

    `edits` (see `inspect.edits`) change what happens, so two views show before and after.

    >>> import chainrule as cr, numpy as np
    >>> cr.seed(0)
    >>> model = cr.models.make("gpt", n_layer=2, n_head=2, n_embd=16, block_size=8, vocab_size=10)
    >>> seen = cr.inspect.view(model, [1, 2, 3, 4])
    >>> seen.probabilities.shape, seen.attention("h.1").shape, seen.neurons(0).shape
    ((4, 10), (2, 4, 4), (4, 64))
    >>> list(seen.stream_norms), seen.loss.shape
    (['embedding', 'h.0', 'h.1'], (4,))
    """
    return View(model, ids, edits)


def top_tokens(logprobs: Array, k: int) -> list[list[tuple[int, float]]]:
    """logprobs (T, V) -> the k most probable tokens of each row, with their probabilities"""
    if not 1 <= k <= logprobs.shape[-1]:
        raise ConfigError(f"inspect: top {k} of {logprobs.shape[-1]} tokens (must be from 1 to all)")
    some = np.argpartition(-logprobs, k - 1, axis=-1)[:, :k]
    rows = []
    for row, ids in zip(logprobs, some, strict=True):
        order = ids[np.lexsort((ids, -row[ids]))]
        rows.append([(int(i), float(np.exp(row[i]))) for i in order])
    return rows


def target_loss(logprobs: Array, targets: Array) -> Array:
    """logprobs (..., T, V), targets (T,) -> -ln P of each (..., T), NaN where there is none"""
    picked = np.take_along_axis(logprobs, _columns(logprobs, targets), -1)[..., 0]
    return np.where(targets == IGNORE, np.nan, -picked.astype(np.float64))


def target_rank(logprobs: Array, targets: Array) -> Array:
    """logprobs (..., T, V), targets (T,) -> how many tokens are more probable (..., T), -1 where there is none"""
    picked = np.take_along_axis(logprobs, _columns(logprobs, targets), -1)
    return np.where(targets == IGNORE, -1, (logprobs > picked).sum(-1))


def _columns(logprobs: Array, targets: Array) -> Array:
    columns = np.where(targets == IGNORE, 0, targets)[:, None]
    return np.broadcast_to(columns, (*logprobs.shape[:-1], 1))
