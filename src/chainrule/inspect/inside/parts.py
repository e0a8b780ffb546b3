"""The parts of a forward pass that have a name in the field: attention, what is added to the stream, blocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attention:
    """One call of attention."""

    call: str
    heads: int
    cross: bool
    """Queries and keys are of different texts."""
    packed: bool
    """Its value is (B, T, H D), not (B, H, T, D)."""

    @property
    def weights(self) -> str:
        """The call inside whose value is the attention map (B, H, T, S)."""
        name, mark, count = self.call.partition("#")
        return f"{name}.softmax{mark}{count}"


@dataclass(frozen=True)
class Part:
    """What is added to the residual stream: the value of a call."""

    name: str
    """The layer: `h.0.attn`."""
    kind: str
    """embedding, attention, cross_attention or mlp"""
    call: str
    sum: str
    """The call that adds it: its value is the stream afterwards."""
    attention: Attention | None = None


@dataclass(frozen=True)
class Block:
    """One numbered layer along the stream."""

    name: str
    stream: str
    """The call whose value is the stream after the block."""
    attentions: tuple[Attention, ...] = ()
    neurons: str | None = None
    """The call whose value the MLP's last matrix reads."""
    recurrent: str | None = None
