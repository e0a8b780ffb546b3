"""BERT against Hugging Face's, with the same random weights: names, logits, losses, every gradient, the count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.data import Masked, Segmented
from chainrule.models import IGNORE, BERTPretrainingConfig, Model, fine_tune, make
from chainrule.models.bert.heads import BERTClassifier, BERTEmbedder, BERTTagger
from tests.battery.checks import distance

transformers = pytest.importorskip("transformers")

V, B, T = 101, 3, 13
LOGITS, LOSS = 1e-4, 1e-5
SIZES: dict[str, Any] = {
    "n_layer": 2, "n_head": 3, "n_embd": 24, "n_hidden": 37, "block_size": 17, "vocab_size": V, "dropout": 0.0,
}  # fmt: skip


def settings(config: Any, **more: Any) -> Any:
    return transformers.BertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.n_embd,
        num_hidden_layers=config.n_layer,
        num_attention_heads=config.n_head,
        intermediate_size=config.n_hidden,
        max_position_embeddings=config.block_size,
        type_vocab_size=config.n_segments,
        layer_norm_eps=config.norm_eps,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **more,
    )


def larger(model: Model) -> Model:
    """Weights larger than at the start of training, so that every part matters."""
    rng = np.random.default_rng(0)
    for _, param in model.named_parameters():
        param.data += 0.1 * rng.normal(size=param.shape).astype(np.float32)
    return model.eval()


def twin(model: Model, kind: Any, **more: Any) -> Any:
    """The other library's model with our weights: every name is known there, and none is missing but what is tied."""
    peer = kind(settings(model.config, **more)).eval()
    found = peer.load_state_dict({k: torch.tensor(v) for k, v in model.state().items()}, strict=False)
    assert not found.unexpected_keys
    assert {k for k in found.missing_keys if "decoder" not in k} == set()
    peer.tie_weights()
    return peer


def batch() -> tuple[Masked, np.ndarray]:
    rng = np.random.default_rng(2)
    ids = rng.integers(V, size=(B, T))
    mask = np.arange(T) < np.array([T, 7, 10])[:, None]
    segments = (np.arange(T) >= 5) & mask
    targets = np.where((rng.random((B, T)) < 0.3) & mask, ids, IGNORE)
    return Masked(ids, mask, segments.astype(int), np.array([1, 0, 1])), targets


def tensors(inputs: Any) -> dict[str, torch.Tensor]:
    names = ("input_ids", "attention_mask", "token_type_ids")
    return {name: torch.tensor(array.astype(int)) for name, array in zip(names, inputs, strict=False)}


def labels(targets: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.where(targets == IGNORE, -100, targets))


def same_gradients(model: Model, peer: Any) -> None:
    ours, theirs = model.parameters(), dict(peer.named_parameters())
    for name, param in ours.items():
        got, want = param.grad, theirs[name].grad.numpy()
        assert distance(got, want) <= 1e-5, name


@pytest.mark.parametrize("next_sentence", [True, False])
def test_pretraining(next_sentence: bool) -> None:
    cr.seed(0)
    model = larger(make("bert", **SIZES, norm="post", next_sentence=next_sentence))
    kind = transformers.BertForPreTraining if next_sentence else transformers.BertForMaskedLM
    peer = twin(model, kind)
    inputs, targets = batch()
    expected = peer(
        **tensors(inputs),
        labels=labels(targets),
        **({"next_sentence_label": torch.tensor(1 - inputs.follows)} if next_sentence else {}),
    )
    words = expected.prediction_logits if next_sentence else expected.logits
    with cr.no_grad():
        assert distance(model(*inputs[:3]).numpy(), words.detach().numpy()) <= LOGITS
        if next_sentence:
            pairs = expected.seq_relationship_logits.detach().numpy()
            assert distance(model.follows(*inputs[:3]).numpy(), pairs) <= LOGITS
    model.parameters().zero_grad()
    loss = model.loss(inputs, targets)
    loss.backward()
    expected.loss.backward()
    assert loss.item() == pytest.approx(expected.loss.item(), rel=LOSS)
    same_gradients(model, peer)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("bert-classifier", "BertForSequenceClassification"), ("bert-tagger", "BertForTokenClassification")],
)
def test_classes(name: str, kind: str) -> None:
    cr.seed(0)
    model = larger(make(name, **SIZES, classes=5))
    peer = twin(model, getattr(transformers, kind), num_labels=5)
    inputs = Segmented(*batch()[0][:3])
    targets = (
        np.array([4, 0, 2]) if name == "bert-classifier" else np.where(inputs.mask, inputs.ids % 5, IGNORE)
    )
    expected = peer(**tensors(inputs), labels=labels(targets))
    with cr.no_grad():
        assert distance(model(*inputs).numpy(), expected.logits.detach().numpy()) <= LOGITS
    model.parameters().zero_grad()
    loss = model.loss(inputs, targets)
    loss.backward()
    expected.loss.backward()
    assert loss.item() == pytest.approx(expected.loss.item(), rel=LOSS)
    same_gradients(model, peer)


def test_embeddings() -> None:
    """Mean over the mask and length 1, as sentence-transformers do it."""
    cr.seed(0)
    model = larger(make("bert-embedder", **SIZES))
    peer = transformers.BertModel(settings(model.config), add_pooling_layer=False).eval()
    state = {name.removeprefix("bert."): torch.tensor(value) for name, value in model.state().items()}
    peer.load_state_dict(state)
    inputs = Segmented(*batch()[0][:3])
    with cr.no_grad(), torch.no_grad():
        hidden, mask = peer(**tensors(inputs)).last_hidden_state, torch.tensor(inputs.mask)[..., None]
        want = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
        assert distance(model(*inputs).numpy(), want.numpy()) <= LOGITS


def test_the_number_of_parameters_of_bert_base() -> None:
    base = BERTPretrainingConfig(
        n_layer=12,
        n_head=12,
        n_embd=768,
        n_hidden=3072,
        block_size=512,
        vocab_size=30522,
        norm="post",
        next_sentence=True,
    )
    for config, kind in (
        (base, transformers.BertForPreTraining),
        (BERTPretrainingConfig(**{**vars(base), "next_sentence": False}), transformers.BertForMaskedLM),
    ):
        with torch.device("meta"):
            peer = kind(settings(config))
        assert config.n_params == sum(p.numel() for p in peer.parameters())


@pytest.mark.parametrize("kind", [BERTClassifier, BERTTagger, BERTEmbedder])
def test_a_fine_tuned_body_is_the_pretrained_one(kind: type[Model]) -> None:
    cr.seed(0)
    model = larger(make("bert", **SIZES, norm="post", next_sentence=True))
    head = fine_tune(model, kind).eval()
    peer = twin(model, transformers.BertForPreTraining)
    inputs = batch()[0]
    with cr.no_grad(), torch.no_grad():
        want = peer.bert(**tensors(inputs)).last_hidden_state.numpy()
        assert distance(head.bert(*inputs[:3]).numpy(), want) <= LOGITS
