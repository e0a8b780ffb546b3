"""Every model of the ladder with PyTorch's autograd behind the same weights: logits, loss, gradients, training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

import chainrule as cr
from chainrule import models, nn, ops
from chainrule.lessons.networks.rnn_seq2seq import AttentiveEncoderDecoder, EncoderDecoder
from chainrule.lessons.networks.sequence_classifier import BagOfWords, RecurrentClassifier, SequenceClassifier
from tests.battery.checks import distance
from tests.peers import torch_models as peers
from tests.peers.torch_layers import Weights
from tests.peers.training import RULES, train_both

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
B, T, V = 4, 9, 13


@dataclass
class Case:
    model: Callable[[], nn.Layer]
    logits: Callable[..., Tensor]  # (weights by our names, *inputs)
    loss: Callable[..., Tensor]  # (weights by our names, *batch)
    batch: Callable[[np.random.Generator], tuple[np.ndarray, ...]]  # what our loss takes
    inputs: int = 1  # how many of them make logits
    method: str = "loss"


# -- batches -------------------------------------------------------------------------------------------------


def text(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Next tokens; some count for nothing, as behind the end of a document."""
    ids = rng.integers(0, V, size=(B, T + 1))
    targets = ids[:, 1:].copy()
    targets[0, 6:], targets[2, 1] = -1, -1
    return ids[:, :-1], targets


def labelled(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.integers(0, V, size=(B, T)), np.array([T, 4, 1, 6]), rng.integers(0, 3, size=B)


def translated(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    ids = rng.integers(0, V, size=(B, T + 1))
    return rng.integers(0, V, size=(B, 5)), ids[:, :-1], ids[:, 1:]


def around(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Windows of CBOW, some with less than four words."""
    return np.where(rng.random((6, 4)) < 0.7, rng.integers(1, V, size=(6, 4)), -1), rng.integers(0, V, size=6)


def words(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    return rng.integers(0, V, size=6), rng.integers(0, V, size=6)


def sampled(pairs: Callable[..., tuple[np.ndarray, ...]]) -> Callable[..., tuple[np.ndarray, ...]]:
    return lambda rng: (*pairs(rng), rng.integers(0, V, size=(6, 5)))


# -- the cases -----------------------------------------------------------------------------------------------


class TorchGRULM(models.RecurrentLM):
    """With the equations of torch.nn.GRU."""

    cell = partial(nn.GRU, reset_after=True)  # type: ignore[assignment]


class BothWays(SequenceClassifier):
    """The last state of each direction."""

    def __init__(self) -> None:
        super().__init__(V, 12, 3)
        self.embedding = nn.Embedding(V, 5)
        self.cells = nn.Bidirectional(nn.LSTM(5, 6), nn.LSTM(5, 6))

    def summary(self, ids: np.ndarray, lengths: np.ndarray) -> cr.Tensor:
        outputs = self.cells(self.embedding(ids), lengths)
        return ops.concat(outputs[np.arange(len(ids)), lengths - 1][:, :6], outputs[:, 0, 6:], axis=-1)


def scored(logits: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The loss of logits, the last array of a batch being the targets."""
    return lambda w, *arrays: peers.cross_entropy(logits(w, *arrays[:-1]), arrays[-1])


def mlp(**sizes: int | bool) -> Case:
    config = models.MLPConfig(block_size=4, n_embd=5, n_hidden=7, vocab_size=V, **sizes)  # type: ignore[arg-type]
    return Case(lambda: models.MLPLM(config), *peers.windows(4, V, peers.mlp(config.n_layer)), text)


def neural_ngram(n: int) -> Case:
    config = models.NeuralNGramConfig(block_size=n - 1, vocab_size=V)
    return Case(lambda: models.NeuralNGram(config), *peers.windows(n - 1, V, peers.neural_ngram), text)


def recurrent(model: type[models.RecurrentLM], op: str) -> Case:
    config = models.RecurrentConfig(n_layer=3, n_embd=5, n_hidden=6, block_size=T, vocab_size=V)

    def logits(w: Weights, ids: Tensor) -> Tensor:
        return peers.recurrent(op, w, ids)[0]

    return Case(lambda: model(config), logits, scored(logits), text)


def classifier(model: Callable[[], nn.Layer], summary: Callable[..., Tensor]) -> Case:
    logits = peers.head(summary)
    return Case(model, logits, scored(logits), labelled, 2)


def translator(model: type[EncoderDecoder]) -> Case:
    logits = peers.encoder_decoder
    return Case(lambda: model(V, 6), logits, scored(logits), translated, 2)


def word2vec(model: type[models.Word2Vec], batch: Callable[..., tuple[np.ndarray, ...]]) -> dict[str, Case]:
    def made() -> nn.Layer:
        return model(models.Word2VecConfig(vocab_size=V, dim=5, window=2))

    return {
        model.__name__: Case(made, peers.word_scores, scored(peers.word_scores), batch),
        f"{model.__name__} sampled": Case(
            made, peers.word_scores, peers.sampled_loss, sampled(batch), method="sampled_loss"
        ),
    }


CASES: dict[str, Case] = {
    "MLP": mlp(batch_norm=False),
    "MLP of three layers": mlp(batch_norm=False, n_layer=3),
    "MLP with batch norm": mlp(),
    "MLP with two batch norms": mlp(n_layer=2),
    "neural bigram": neural_ngram(2),
    "neural 4-gram": neural_ngram(4),
    "RNN": recurrent(models.RNNLM, "rnn"),
    "GRU": recurrent(models.GRULM, "gru"),
    "GRU of PyTorch": recurrent(TorchGRULM, "gru"),
    "LSTM": recurrent(models.LSTMLM, "lstm"),
    "bag of words": classifier(lambda: BagOfWords(V, 6, 3), peers.bag_of_words),
    "RNN classifier": classifier(lambda: RecurrentClassifier(nn.RNN, V, 6, 3), peers.last_state("rnn")),
    "GRU classifier": classifier(lambda: RecurrentClassifier(nn.GRU, V, 6, 3), peers.last_state("gru")),
    "LSTM classifier": classifier(lambda: RecurrentClassifier(nn.LSTM, V, 6, 3), peers.last_state("lstm")),
    "classifier in both directions": classifier(BothWays, peers.both_ways),
    "encoder and decoder": translator(EncoderDecoder),
    "encoder and decoder with attention": translator(AttentiveEncoderDecoder),
    **word2vec(models.SkipGram, words),
    **word2vec(models.CBOW, around),
}


def twins(case: Case, dtype: str) -> tuple[nn.Layer, Weights]:
    """The same weights in both, far from those at the start of training so that every part matters."""
    cr.seed(0)
    model, rng = case.model().to(dtype), np.random.default_rng(0)
    for _, param in model.named_parameters():
        param.data += 0.3 * rng.normal(size=param.shape)
    params = model.parameters()
    return model, {name: torch.tensor(p.data, requires_grad=True) for name, p in params.items()}


def batch(case: Case, step: int = 0) -> tuple[tuple[np.ndarray, ...], list[Tensor]]:
    arrays = case.batch(np.random.default_rng(step))
    return arrays, [torch.tensor(a) for a in arrays]


def check_gradients(model: nn.Layer, weights: Weights, tolerance: float) -> None:
    params = model.parameters()
    for name, want in weights.items():
        assert want.grad is not None
        assert distance(params[name].grad, want.grad.numpy()) <= tolerance, name


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_logits_loss_and_gradients(name: str, dtype: str) -> None:
    case = CASES[name]
    model, weights = twins(case, dtype)
    arrays, tensors = batch(case)
    with cr.no_grad(), torch.no_grad():
        got, want = model(*arrays[: case.inputs]), case.logits(weights, *tensors[: case.inputs])
    assert got.data.dtype == dtype
    assert distance(got.data, want.numpy()) <= TOLERANCE[dtype]
    loss, expected = getattr(model, case.method)(*arrays), case.loss(weights, *tensors)
    loss.backward()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=TOLERANCE[dtype])
    check_gradients(model, weights, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_of_training(name: str, rule: str, dtype: str) -> None:
    case = CASES[name]
    model, weights = twins(case, dtype)

    def losses(step: int) -> tuple[cr.Tensor, Tensor]:
        arrays, tensors = batch(case, step % 3)  # seen again and again, so that the loss falls
        return getattr(model, case.method)(*arrays), case.loss(weights, *tensors)

    pairs, norms = train_both(model, weights, losses, rule)
    assert pairs[-1][0] < pairs[1][0] - 1e-3, (
        "the weights must have moved for the comparison to mean anything"
    )
    for both in (pairs, norms):
        np.testing.assert_allclose(*zip(*both, strict=True), rtol=10 * TOLERANCE[dtype])
    for part, want in weights.items():
        assert distance(model.parameters()[part].data, want.detach().numpy()) <= 10 * TOLERANCE[dtype], part


# -- evaluation with batch norm ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_batch_norm_in_evaluation(dtype: str) -> None:
    """By the statistics that training has left, then with them folded into the linear layers."""
    case = CASES["MLP with two batch norms"]
    model, _ = twins(case, dtype)
    for step in range(5):
        with cr.no_grad():
            model.loss(*batch(case, step)[0])
    assert isinstance(model.eval(), models.MLPLM)
    weights = {name: torch.tensor(value) for name, value in model.state().items()}
    trained = {name: weights[name].requires_grad_() for name, _ in model.parameters().items()}
    logits, loss = peers.windows(4, V, peers.mlp(2, training=False))
    (ids, targets), tensors = batch(case, 7)
    want = logits(weights, tensors[0]).detach().numpy()
    for made in (model, model.folded()):
        assert distance(made(ids).numpy(), want) <= TOLERANCE[dtype]
    model.loss(ids, targets).backward()
    loss(weights, *tensors).backward()
    check_gradients(model, trained, TOLERANCE[dtype])


# -- a state that goes on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["RNN", "GRU", "GRU of PyTorch", "LSTM"])
def test_truncated_back_propagation(name: str, dtype: str) -> None:
    """Twenty windows of one text: the state goes from each to the next, gradients end at its first token."""
    model, weights = twins(CASES[name], dtype)
    assert isinstance(model, models.RecurrentLM)
    op = name.split()[0].lower()
    ids = np.random.default_rng(5).integers(0, V, size=(B, 20 * T + 1))
    state: models.rnn_lm.State | None = None
    carried: peers.State | None = None

    def losses(step: int) -> tuple[cr.Tensor, Tensor]:
        nonlocal state, carried
        inputs, targets = (ids[:, step * T + k : (step + 1) * T + k] for k in (0, 1))
        loss, state = model.loss_from(state, inputs, targets)
        logits, after = peers.recurrent(op, weights, torch.tensor(inputs), carried)
        carried = [tuple(part.detach() for part in layer) for layer in after]
        return loss, peers.cross_entropy(logits, torch.tensor(targets))

    pairs, norms = train_both(model, weights, losses)
    for both in (pairs, norms):
        np.testing.assert_allclose(*zip(*both, strict=True), rtol=10 * TOLERANCE[dtype])
    assert state is not None and carried is not None
    for ours, theirs in zip(state, carried, strict=True):
        for got, want in zip(ours, theirs, strict=True):
            assert distance(got, want.numpy()) <= 10 * TOLERANCE[dtype]
