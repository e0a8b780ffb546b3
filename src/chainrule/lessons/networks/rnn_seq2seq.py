"""Recurrent encoder and decoder, with all of the source in one vector or with attention over its states.

encoded, state = encoder(source)          decoded = decoder(tokens so far, state)
logits = head decoded                     the bottleneck: `state` is all the decoder knows of the source
logits = head [decoded; attention(decoded, encoded)]
"""

from __future__ import annotations

from chainrule import ops
from chainrule.autograd import Tensor
from chainrule.autograd.types import Array
from chainrule.nn import GRU, Embedding, Layer, Linear, MultiHeadAttention


class EncoderDecoder(Layer):
    """The last state of the encoder is the first of the decoder, and the only thing that passes between them."""

    def __init__(self, vocab_size: int, width: int) -> None:
        self.embedding = Embedding(vocab_size, width)
        self.encoder = GRU(width, width)
        self.decoder = GRU(width, width)
        self.head = Linear(width, vocab_size)

    def forward(self, source: Array, inputs: Array) -> Tensor:
        """source (B, S), what is written so far (B, T) -> logits of what comes next (B, T, V)"""
        encoded, state = self.encoder(self.embedding(source))
        decoded, _ = self.decoder(self.embedding(inputs), state)
        return self.head(self.look_back(decoded, encoded))

    def look_back(self, decoded: Tensor, encoded: Tensor) -> Tensor:
        """decoded (B, T, C), encoded (B, S, C) -> what the head reads; here the decoder alone"""
        return decoded

    def loss(self, source: Array, inputs: Array, targets: Array) -> Tensor:
        """targets (B, T) -> mean negative log-likelihood in nats"""
        return ops.cross_entropy(self(source, inputs), targets=targets)


class AttentiveEncoderDecoder(EncoderDecoder):
    """Each step of the decoder looks at all states of the encoder."""

    def __init__(self, vocab_size: int, width: int) -> None:
        super().__init__(vocab_size, width)
        self.attention = MultiHeadAttention(width, 1)
        self.join = Linear(2 * width, width)

    def look_back(self, decoded: Tensor, encoded: Tensor) -> Tensor:
        return self.join(ops.concat(decoded, self.attention(decoded, encoded), axis=-1)).tanh()
