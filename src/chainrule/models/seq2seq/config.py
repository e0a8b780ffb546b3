"""The size of an encoder-decoder transformer, and how it learns."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.models.model import Config
from chainrule.models.seq2seq.encoder_decoder import STARTS
from chainrule.validate import Check

COUNTS = ("n_layer", "n_head", "n_embd", "n_hidden", "block_size", "vocab_size", "source_vocab_size")
SHARES = ("dropout", "label_smoothing", "scheduled_sampling")
CHOICES = {
    "norm": ("post", "pre"),
    "positions": ("sinusoidal", "learned"),
    "activation": ("relu", "gelu", "gelu_tanh", "silu"),
    "target_start": STARTS,
}


@dataclass(frozen=True)
class Seq2SeqConfig(Config):
    """The size of an encoder-decoder.

    >>> import chainrule as cr
    >>> cr.models.Seq2SeqConfig(n_layer=2, n_head=2, n_embd=32, vocab_size=65).n_params
    62977
    """

    n_layer: int = 3
    """Blocks of the encoder, and as many of the decoder."""
    n_head: int = 4
    """Attention heads per block."""
    n_embd: int = 128
    """Width of the residual stream; a multiple of the heads."""
    n_hidden: int | None = None
    """Width inside the MLP; four times n_embd unless given."""
    block_size: int = 128
    """Longest source and longest target, in tokens."""
    vocab_size: int = 256
    """Vocabulary size of the target, and of the source."""
    source_vocab_size: int | None = None
    """Vocabulary size of the source, if it has a vocabulary and embeddings of its own."""
    norm: str = "pre"
    """Layer norm before each sublayer and at the end (pre), or after each residual sum (post)."""
    norm_eps: float = 1e-5
    """Added to the variance before its root."""
    positions: str = "sinusoidal"
    """Added to the embeddings: sinusoidal (all sines, then all cosines) or learned."""
    activation: str = "relu"
    """Between the two layers of an MLP: relu, gelu, gelu_tanh or silu."""
    bias: bool = False
    """Biases in the projections of attention; all other layers have one."""
    tied: bool = False
    """The head shares the matrix of the target's embedding."""
    scale_embedding: bool = False
    """Embeddings times √n_embd before positions are added."""
    dropout: float = 0.1
    """Fraction set to 0 in training: of embeddings, attention weights, MLP activations and what each sublayer adds."""
    label_smoothing: float = 0.0
    """Fraction of each target's mass spread over all tokens in training; for ε over the others give ε V / (V - 1)."""
    scheduled_sampling: float = 0.0
    """Fraction of decoder inputs that are the model's own guesses; grows from 0 to this by the last step."""
    embedding_norm: bool = False
    """Layer norm of the embeddings with their positions, as in BART."""
    target_start: str = "bos"
    """What a target begins with: <s> (bos), <pad> as in Marian and T5 (a source then ends in </s>), or </s> as in BART
    (a source then stands between <s> and </s>)."""

    def __post_init__(self) -> None:
        check = Check("Seq2Seq", self)
        check.at_least(1, *COUNTS)
        check.divides("n_head", "n_embd", "heads must divide the width")
        for name, choices in CHOICES.items():
            check.one_of(name, choices)
        check.fraction(*SHARES)
        check.positive("norm_eps")

    @classmethod
    def base(cls) -> Seq2SeqConfig:
        """The base model of "Attention is all you need"."""
        return cls(
            n_layer=6, n_head=8, n_embd=512, block_size=512, vocab_size=50000, norm="post", norm_eps=1e-6
        )

    @property
    def embedding_scale(self) -> float:
        """What embeddings are multiplied by."""
        return self.n_embd**0.5 if self.scale_embedding else 1.0
