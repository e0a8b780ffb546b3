"""Seq2Seq against torch.nn.Transformer with the same weights: logits, loss, every gradient, ten steps of training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import chainrule as cr
from chainrule.models import IGNORE, Seq2Seq, Seq2SeqConfig
from tests.battery.checks import distance
from tests.peers.torch_layers import in_projection

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
SIZE = Seq2SeqConfig(
    n_layer=2, n_head=3, n_embd=24, n_hidden=40, block_size=12, vocab_size=29, bias=True, dropout=0.0
)
VARIANTS = {
    f"{norm}, {positions}": replace(SIZE, norm=norm, positions=positions)
    for norm in ("post", "pre")
    for positions in ("sinusoidal", "learned")
} | {
    "tied, scaled, gelu, smooth": replace(
        SIZE, tied=True, scale_embedding=True, activation="gelu", label_smoothing=0.1
    ),
    "two vocabularies": replace(SIZE, source_vocab_size=31, norm_eps=1e-3),
}
RNG = np.random.default_rng(0)
MASK = np.arange(10) < np.array([10, 7, 3])[:, None]
TARGETS = RNG.integers(29, size=(3, 8))
TARGETS[2, 5:] = IGNORE
INPUTS = (RNG.integers(29, size=(3, 10)), MASK, RNG.integers(29, size=(3, 8)))


class TorchSeq2Seq(nn.Module):
    """torch.nn.Transformer between embeddings and a head; its parameters have its own names."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        C, V, T = config.n_embd, config.vocab_size, config.block_size
        self.config = config
        options = {"activation": config.activation, "norm_first": config.norm == "pre", "dropout": 0.0}
        sizes = (C, config.n_head, config.n_layer, config.n_layer, config.inside)
        self.body = nn.Transformer(*sizes, batch_first=True, layer_norm_eps=config.norm_eps, **options)
        if config.norm == "post":  # torch ends in one more norm all the same
            self.body.encoder.norm = self.body.decoder.norm = None
        if config.source_vocab_size is not None:
            self.source = nn.Embedding(config.source_vocab_size, C)
        self.target = nn.Embedding(V, C)
        if config.positions == "learned":
            self.source_positions, self.target_positions = nn.Embedding(T, C), nn.Embedding(T, C)
        self.head = nn.Linear(C, V)
        if config.tied:
            self.head.weight = self.target.weight

    def forward(self, source: Tensor, padding: Tensor, target: Tensor) -> Tensor:
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        table = self.target if self.config.source_vocab_size is None else self.source
        hidden = self.body(
            self.embed(table, source, "source_positions"),
            self.embed(self.target, target, "target_positions"),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return self.head(hidden)

    def embed(self, table: nn.Embedding, ids: Tensor, positions: str) -> Tensor:
        T, C = ids.shape[1], self.config.n_embd
        x = table(ids) * (C**0.5 if self.config.scale_embedding else 1)
        if self.config.positions == "learned":
            return x + getattr(self, positions)(torch.arange(T))
        return x + torch.tensor(cr.nn.sinusoidal(T, C, layout="half"), dtype=x.dtype)

    def loss(self, inputs: tuple[np.ndarray, ...], targets: np.ndarray) -> Tensor:
        source, mask, target = (torch.tensor(x) for x in inputs)
        logits = self(source, ~mask, target).flatten(0, 1)
        smooth = self.config.label_smoothing
        goal = torch.tensor(targets).flatten()
        return F.cross_entropy(logits, goal, ignore_index=IGNORE, label_smoothing=smooth)


def their_names(ours: dict[str, Tensor], config: Seq2SeqConfig) -> dict[str, Tensor]:
    """Our weights under torch's names."""
    names = {"head.bias": ours["final_logits_bias"][0]}
    names["head.weight"] = ours.get("lm_head.weight", ours.get("model.shared.weight"))
    tables = {"target": "model.shared"}
    if config.source_vocab_size is not None:
        tables = {"source": "model.encoder.embed_tokens", "target": "model.decoder.embed_tokens"}
    if config.positions == "learned":
        tables |= {"source_positions": "model.encoder.embed_positions"}
        tables |= {"target_positions": "model.decoder.embed_positions"}
    names |= {f"{theirs}.weight": ours[f"{name}.weight"] for theirs, name in tables.items()}
    norms = {"encoder": ["self_attn", "final"], "decoder": ["self_attn", "encoder_attn", "final"]}
    for stack, i in ((stack, i) for stack in norms for i in range(config.n_layer)):
        mine, theirs = f"model.{stack}.layers.{i}", f"body.{stack}.layers.{i}"
        parts = {f"norm{n}": f"{norm}_layer_norm" for n, norm in enumerate(norms[stack], start=1)}
        for part, name in (parts | {"linear1": "fc1", "linear2": "fc2"}).items():
            names |= {f"{theirs}.{part}.{kind}": ours[f"{mine}.{name}.{kind}"] for kind in ("weight", "bias")}
        for part, name in {"self_attn": "self_attn", "multihead_attn": "encoder_attn"}.items():
            joint = in_projection(ours, f"{mine}.{name}.")
            names |= {f"{theirs}.{part}.{key}": value for key, value in joint.items()}
    if config.norm == "pre":
        for stack in norms:
            for kind in ("weight", "bias"):
                names[f"body.{stack}.norm.{kind}"] = ours[f"model.{stack}.layer_norm.{kind}"]
    return names


def twins(config: Seq2SeqConfig, dtype: str) -> tuple[Seq2Seq, TorchSeq2Seq]:
    """The same weights in both, larger than at the start of training so that every part matters."""
    cr.seed(0)
    model = Seq2Seq(config).to(dtype)
    for _, param in model.named_parameters():
        param.data += 0.2 * RNG.normal(size=param.shape)
    peer = TorchSeq2Seq(config).to(getattr(torch, dtype))
    weights = {name: torch.tensor(value) for name, value in model.state().items()}
    peer.load_state_dict(their_names(weights, config))
    return model, peer


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_logits_loss_and_gradients(config: Seq2SeqConfig, dtype: str) -> None:
    model, peer = twins(config, dtype)
    source, mask, target = (torch.tensor(x) for x in INPUTS)
    with cr.no_grad(), torch.no_grad():
        assert distance(model(*INPUTS).data, peer(source, ~mask, target).numpy()) <= TOLERANCE[dtype]
    params = model.parameters()
    loss, expected = model.loss(INPUTS, TARGETS), peer.loss(INPUTS, TARGETS)
    loss.backward()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=TOLERANCE[dtype])
    grads = their_names({name: torch.tensor(p.grad) for name, p in params.items()}, config)
    for name, want in peer.named_parameters():
        assert distance(grads[name].numpy(), want.grad.numpy()) <= TOLERANCE[dtype], name


def test_ten_steps_of_training() -> None:
    model, peer = twins(replace(SIZE, norm="pre"), "float64")
    ours = cr.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0)
    theirs = torch.optim.AdamW(peer.parameters(), lr=3e-3, weight_decay=0.0)
    for step in range(10):
        rng = np.random.default_rng(step)
        inputs = (rng.integers(29, size=(3, 10)), MASK, rng.integers(29, size=(3, 8)))
        loss, expected = model.loss(inputs, TARGETS), peer.loss(inputs, TARGETS)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-8), step
        for optimizer, value in ((ours, loss), (theirs, expected)):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
