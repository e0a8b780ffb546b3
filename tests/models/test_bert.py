"""BERT: the body, its pre-training, its heads, and what each of them learns in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.data import Encoded, Masked, MaskedBatches, Segmented, SpecialIds, Twins
from chainrule.errors import ConfigError, ShapeError
from chainrule.models import (
    IGNORE,
    BERTClassifier,
    BERTEmbedder,
    BERTPretraining,
    BERTPretrainingConfig,
    BERTTagger,
    Model,
    describe,
    fine_tune,
    make,
    n_params,
    rebuild,
)
from chainrule.models.bert.body import STD, WIDTH
from chainrule.optim import AdamW, clip_global_norm
from tests.models.tiny import float64

V, B, T = 11, 3, 7
SIZES = {"n_layer": 2, "n_head": 3, "n_embd": 12, "n_hidden": 20, "block_size": 8, "dropout": 0.0}
HEADS: dict[str, dict[str, Any]] = {
    "bert": {"norm": "post", "next_sentence": True},  # as in the paper
    "bert-classifier": {"classes": 3},
    "bert-tagger": {"classes": 4},
    "bert-embedder": {},
}
every_kind = pytest.mark.parametrize("name", HEADS)


def tiny(name: str = "bert", seed: int = 0, **sizes: Any) -> Any:
    cr.seed(seed)
    return make(name, **SIZES | {"vocab_size": V} | HEADS[name] | sizes)


def batch(name: str) -> tuple[Any, np.ndarray]:
    """Three rows, one of them padded, with a target of each kind and some that do not count."""
    rng = np.random.default_rng(1)
    ids, mask = rng.integers(V, size=(B, T)), np.ones((B, T), bool)
    mask[1, 4:] = False
    segments = np.zeros((B, T), int)
    segments[:, 3:] = mask[:, 3:]
    if name == "bert":
        targets = np.where(rng.random((B, T)) < 0.4, ids, IGNORE)
        return Masked(ids, mask, segments, np.array([1, 0, IGNORE])), targets
    if name == "bert-embedder":
        return Twins(ids, mask, rng.integers(V, size=(B, 5)), np.ones((B, 5), bool)), np.array([0, 0, IGNORE])
    if name == "bert-classifier":
        return Segmented(ids, mask, segments), np.array([2, IGNORE, 0])
    return Segmented(ids, mask, segments), np.where(mask, ids % 4, IGNORE)


@every_kind
def test_every_gradient_in_float64(name: str) -> None:
    model, (inputs, targets) = float64(tiny(name)), batch(name)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(inputs, targets)) <= 1e-6


def test_every_gradient_without_next_sentence() -> None:
    model, (inputs, targets) = float64(tiny(next_sentence=False)), batch("bert")
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(inputs, targets)) <= 1e-6


VARIANTS: dict[str, dict[str, Any]] = {
    "pre-norm": {"norm": "pre"},
    "no segments": {"n_segments": 0, "variant": "distilbert"},
    "narrow embeddings": {"embedding_size": 5, "variant": "electra"},
    "distances": {"relative_buckets": 8, "variant": "mpnet"},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", ["bert", "bert-classifier"])
def test_every_gradient_of_every_variant(name: str, variant: str) -> None:
    # With seed 0 a ReLU of DistilBERT's pooler stands 5e-5 from its kink, within the central difference.
    model, (inputs, targets) = float64(tiny(name, seed=1, **VARIANTS[variant])), batch(name)
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(inputs, targets)) <= 1e-6


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_every_gradient_of_every_pooling(pooling: str) -> None:
    model, (inputs, targets) = (
        float64(tiny("bert-embedder", pooling=pooling, normalize=False)),
        batch("bert-embedder"),
    )
    assert cr.gradcheck_model(model.parameters(), lambda: model.loss(inputs, targets)) <= 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_recomputed_blocks_give_the_same_gradients(variant: str) -> None:
    kept, again = (tiny(dropout=0.2, **VARIANTS[variant]) for _ in range(2))
    again.recompute = True
    found = []
    for model in (kept, again):
        with cr.random.step(3):
            found.append(gradients(model, "bert"))
    assert (found[0] == found[1]).all()


def test_pre_norm_adds_one_norm_and_leaves_the_stream_alone() -> None:
    model = tiny(norm="pre").eval()
    assert model.state().keys() - tiny().state().keys() == {
        "bert.encoder.LayerNorm.weight",
        "bert.encoder.LayerNorm.bias",
    }
    for (
        block
    ) in model.bert.encoder.layer:  # what the parts add is 0: the embeddings reach the last norm as they are
        for part in (block.attention.output, block.output):
            part.dense.weight.data[:] = 0
    ids = batch("bert")[0].ids
    hidden = model.bert.embeddings(ids, np.zeros_like(ids))
    np.testing.assert_allclose(
        model.bert(ids).numpy(), model.bert.encoder.LayerNorm(hidden).numpy(), atol=1e-6
    )


def test_one_segment_is_the_same_for_both_texts() -> None:
    model = tiny(n_segments=1).eval()
    ids, mask, segments, _ = batch("bert")[0]
    assert (model(ids, mask, segments).numpy() == model(ids, mask).numpy()).all()


def test_distances_are_seen() -> None:
    """Without positions of their own, tokens are told apart by their distances alone."""
    model = float64(tiny(relative_buckets=8)).eval()
    model.bert.embeddings.position_embeddings.weight.data[:] = 0
    ids = np.array([[4, 5, 6, 7]])
    found, turned = model(ids).numpy()[0], model(ids[:, ::-1]).numpy()[0, ::-1]
    assert np.abs(found - turned).max() > 1e-3
    model.bert.encoder.relative_attention_bias.weight.data[:] = 0
    found, turned = model(ids).numpy()[0], model(ids[:, ::-1]).numpy()[0, ::-1]
    np.testing.assert_allclose(found, turned, atol=1e-12)


def gradients(model: Model, name: str) -> np.ndarray:
    parameters = model.parameters()
    parameters.zero_grad()
    model.loss(*batch(name)).backward()
    return parameters.grad.copy()


@every_kind
def test_native_and_reference_agree(name: str) -> None:
    model = tiny(name)
    for _, param in model.named_parameters():  # larger than at the start, so that every part matters
        param.data += 0.1 * np.random.default_rng(0).normal(size=param.shape).astype(np.float32)
    got = gradients(model, name)
    with cr.backend("reference"):
        want = gradients(model, name)
    assert np.abs(got - want).max() <= 2e-5 * max(1, np.abs(want).max())


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = native.get_threads()
    native.set_threads(n)
    try:
        yield
    finally:
        native.set_threads(before)


@pytest.mark.skipif(not native.available(), reason="needs the extension")
@every_kind
def test_the_same_bits_for_any_number_of_threads(name: str) -> None:
    model, found = tiny(name, dropout=0.1), []
    for n in (1, 2, 5):
        with threads(n), cr.random.step(1):
            found.append(gradients(model, name).tobytes())
    assert len(set(found)) == 1


@every_kind
def test_the_number_of_parameters_is_known_before_there_is_a_model(name: str) -> None:
    model = tiny(name)
    assert n_params(describe(model)) == model.config.n_params == model.count()


def test_the_number_of_parameters_without_next_sentence() -> None:
    model = tiny(next_sentence=False)
    assert model.config.n_params == model.count()


@every_kind
def test_a_description_rebuilds_the_model(name: str) -> None:
    model = tiny(name)
    twin = rebuild(describe(model))
    twin.load(model.state())
    inputs, _ = batch(name)
    assert type(twin) is type(model) and twin.config == model.config
    assert (
        twin.eval()(inputs.ids, inputs.mask).numpy() == model.eval()(inputs.ids, inputs.mask).numpy()
    ).all()


# -- the body ---------------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-368")
def test_right_context_changes_predictions() -> None:
    model = float64(tiny()).eval()
    ids = batch("bert")[0].ids
    before, changed = model(ids).numpy(), ids.copy()
    changed[:, -1] = (changed[:, -1] + 1) % V
    after = model(changed).numpy()
    assert (after[:, 0] != before[:, 0]).all()


def test_padding_is_not_seen() -> None:
    """A row gives the same alone and behind padding, whatever the padding is."""
    model = float64(tiny()).eval()
    inputs, _ = batch("bert")
    together = model(*inputs[:3]).numpy()
    alone = model(inputs.ids[1:2, :4], None, inputs.segments[1:2, :4]).numpy()
    np.testing.assert_allclose(together[1, :4], alone[0], rtol=0, atol=1e-12)
    other = inputs.ids.copy()
    other[1, 4:] = (other[1, 4:] + 3) % V
    assert (model(other, *inputs[1:3]).numpy()[1, :4] == together[1, :4]).all()


def test_a_mask_that_hides_nothing_changes_nothing() -> None:
    model = tiny().eval()
    ids = batch("bert")[0].ids
    mask = np.ones(ids.shape, bool)
    mask[2, 5:] = False  # the first two rows go through the masked kernel
    assert (model(ids).numpy()[:2] == model(ids, mask).numpy()[:2]).all()


def test_segments_tell_the_two_texts_apart() -> None:
    model = tiny().eval()
    ids, mask, segments, _ = batch("bert")[0]
    assert (model(ids, mask, segments).numpy() != model(ids, mask).numpy()).any()


@pytest.mark.requirement("R-332")
def test_class_logits_come_from_position_0_and_the_gradient_reaches_all_tokens() -> None:
    model = tiny("bert-classifier").eval()
    (ids, mask, segments), _ = batch("bert-classifier")
    hidden = model.bert(ids, mask, segments)
    first = np.tanh(hidden.numpy()[:, 0] @ model.bert.pooler.dense.weight.data.T)
    want = first @ model.classifier.weight.data.T  # the biases are 0
    np.testing.assert_allclose(model(ids, mask, segments).numpy(), want, atol=1e-6)
    with cr.capture("*word_embeddings*") as seen:
        (model(ids, mask, segments) * np.array([1, -2, 3])).sum().backward()
    (embedded,) = seen.values()
    assert ((np.abs(embedded.grad).sum(axis=-1) > 0) == mask).all()


@pytest.mark.requirement("R-340")
def test_two_heads_on_one_body() -> None:
    words, classes = tiny(), tiny("bert-classifier", seed=1)
    classes.bert = words.bert
    body = dict(words.bert.named_parameters())
    assert all(param is body[name] for name, param in classes.bert.named_parameters())
    before = classes(batch("bert")[0].ids).numpy()
    optimizer = AdamW(words.parameters(), 1e-2)
    words.loss(*batch("bert")).backward()
    optimizer.step()
    assert (classes(batch("bert")[0].ids).numpy() != before).any()  # what one head teaches, the other sees


@pytest.mark.parametrize(
    ("ids", "mask", "message"),
    [
        (np.zeros((1, 9), int), None, r"ids \(1, 9\) \(must be \(B, T\) with T from 1 to 8\)"),
        (np.zeros(3, int), None, r"ids \(3,\)"),
        (np.zeros((1, 3), int), np.ones((1, 2), bool), r"mask \(1, 2\), ids \(1, 3\) \(must be equal\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(ids: np.ndarray, mask: np.ndarray | None, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        tiny()(ids, mask)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("bert", {"n_head": 5}, "n_embd is 12, n_head 5"),
        ("bert", {"n_segments": -1}, "n_segments is -1"),
        ("bert", {"norm": "middle"}, "norm is 'middle'"),
        ("bert", {"variant": "albert"}, "variant is 'albert'"),
        ("bert", {"relative_buckets": 3}, "relative_buckets is 3"),
        ("bert", {"dropout": 1.0}, "dropout is 1.0"),
        ("bert", {"norm_eps": 0.0}, "norm_eps is 0.0"),
        ("bert-classifier", {"classes": 1}, "classes is 1"),
        ("bert-embedder", {"temperature": 0.0}, "temperature is 0.0"),
        ("bert-embedder", {"pooling": "min"}, "pooling is 'min'"),
        ("bert-embedder", {"max_length": 9}, "max_length is 9, block_size 8"),
    ],
)
def test_sizes_that_cannot_be_are_refused(name: str, size: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny(name, **size)


# -- pre-training -----------------------------------------------------------------------------------------------


def test_only_selected_positions_are_in_the_loss() -> None:
    model, (inputs, targets) = float64(tiny()), batch("bert")
    words, _ = model.losses(inputs, targets)
    scores = cr.ops.log_softmax(model(*inputs[:3])).numpy()
    want = -np.mean([scores[b, t, targets[b, t]] for b, t in np.argwhere(targets != IGNORE)])
    assert words.item() == pytest.approx(want, rel=1e-12)


@pytest.mark.requirement("R-369")
def test_the_first_losses_are_those_of_a_guess() -> None:
    inputs, targets = batch("bert")
    words, pairs = tiny(vocab_size=100).losses(inputs._replace(follows=np.array([1, 0, 1])), targets)
    spread = STD**2 * WIDTH  # the variance of a score, the same at every width: it costs half of it
    assert words.item() == pytest.approx(math.log(100) + spread / 2, abs=0.1)
    assert pairs.item() == pytest.approx(math.log(2), abs=0.05)


def test_class_0_says_that_it_follows() -> None:
    """As in published weights."""
    model, (inputs, targets) = float64(tiny()), batch("bert")
    scores = cr.ops.log_softmax(model.follows(*inputs[:3])).numpy()
    _, pairs = model.losses(inputs, targets)  # follows = [1, 0, none]
    assert pairs.item() == pytest.approx(-(scores[0, 0] + scores[1, 1]) / 2, rel=1e-12)


@pytest.mark.requirement("R-370")
def test_next_sentence_can_be_left_out() -> None:
    model, (inputs, targets) = tiny(next_sentence=False), batch("bert")
    assert len(model.losses(inputs, targets)) == len(model.counts(inputs, targets)) == 1
    gone = tiny().state().keys() - model.state().keys()
    assert {name.rsplit(".", 1)[0] for name in gone} == {"bert.pooler.dense", "cls.seq_relationship"}
    with pytest.raises(ConfigError, match="next_sentence is off"):
        model.follows(inputs.ids)


def test_a_batch_can_be_cut_and_put_together_again() -> None:
    """Rows without a target included: each part of the loss is a mean over what `counts` says."""
    model, (inputs, targets) = float64(tiny()), batch("bert")
    targets[1] = IGNORE
    whole, total = model.losses(inputs, targets), model.counts(inputs, targets)
    sums = np.zeros(2)
    for row in range(B):
        piece = Masked(*(array[row : row + 1] for array in inputs)), targets[row : row + 1]
        losses = [loss.item() for loss in model.losses(*piece)]
        sums += np.multiply(losses, model.counts(*piece))
    np.testing.assert_allclose(sums / total, [loss.item() for loss in whole], rtol=1e-12)
    assert total == (np.count_nonzero(targets != IGNORE), 2)


def test_a_batch_without_a_target_has_no_gradient() -> None:
    model, (inputs, targets) = tiny(), batch("bert")
    nothing = inputs._replace(follows=np.full(B, IGNORE)), np.full_like(targets, IGNORE)
    parameters = model.parameters()
    loss = model.loss(*nothing)
    loss.backward()
    assert loss.item() == 0 and not parameters.grad.any()


def train(model: Model, batches: Any, steps: int, lr: float) -> None:
    """A rate that rises over 50 steps and falls over the last half, clipped gradients."""
    optimizer = AdamW(model.parameters(), lr)
    for step in range(steps):
        optimizer.zero_grad()
        with cr.random.step(step):
            model.loss(*batches.batch(step)).backward()
        clip_global_norm(optimizer.params, 1.0)
        optimizer.step(lr * min(1, (step + 1) / 50, 2 - 2 * step / steps))


SPECIAL = SpecialIds(cls=1, sep=2, mask=3)


def test_a_small_corpus_is_memorized() -> None:
    """Six sentences of words that stand in no other: nearly every hidden word is guessed."""
    rng = np.random.default_rng(0)
    texts = Encoded.of([4 + rng.permutation(np.arange(8 * i, 8 * i + 8)) for i in range(6)])
    sizes: dict[str, Any] = {"vocab_size": 52, "block_size": 11, "next_sentence": False}
    batches = MaskedBatches(texts, special=SPECIAL, batch_size=24, **sizes)
    model = tiny(n_layer=1, n_embd=48, n_hidden=96, **sizes)
    train(model, batches, 250, 5e-3)
    right = asked = 0
    with cr.no_grad():
        for step in range(1000, 1010):
            inputs, targets = batches.batch(step)
            hidden = (targets != IGNORE) & (inputs.ids == SPECIAL.mask)
            right += np.count_nonzero((model(*inputs[:3]).numpy().argmax(-1) == targets) & hidden)
            asked += np.count_nonzero(hidden)
    assert right / asked > 0.95


def test_pairs_that_belong_together_are_told_from_others() -> None:
    """Four documents of four words each."""
    rng = np.random.default_rng(0)
    texts = Encoded.of([rng.integers(4 + 4 * i, 8 + 4 * i, size=24) for i in range(4)])
    sizes: dict[str, Any] = {"vocab_size": 20, "block_size": 11, "next_sentence": True}
    batches = MaskedBatches(texts, special=SPECIAL, batch_size=24, **sizes)
    model = tiny(n_layer=1, n_head=2, n_embd=32, n_hidden=64, **sizes)
    train(model, batches, 250, 1e-2)
    with cr.no_grad():
        told = [
            (model.follows(*inputs[:3]).numpy().argmax(-1) == 0) == inputs.follows
            for inputs, _ in (batches.batch(step) for step in range(1000, 1010))
        ]
    assert np.mean(told) > 0.9


# -- heads ------------------------------------------------------------------------------------------------------


class Fixed:
    """The same batch at every step."""

    def __init__(self, inputs: Any, targets: np.ndarray) -> None:
        self.pair = inputs, targets

    def batch(self, step: int) -> tuple[Any, np.ndarray]:
        return self.pair


def questions(n: int = 40) -> tuple[Segmented, np.ndarray]:
    """Does a text have token 9 or 10? It is one of six, anywhere in the text."""
    rng = np.random.default_rng(3)
    ids = rng.integers(4, 9, size=(n, 6))
    labels = rng.integers(2, size=n)
    ids[np.arange(n), rng.integers(6, size=n)] = 9 + labels
    ids = np.concatenate([np.ones((n, 1), int), ids], axis=1)
    return Segmented(ids, np.ones(ids.shape, bool), np.zeros_like(ids)), labels


def test_a_classifier_learns_what_can_be_told_apart() -> None:
    inputs, labels = questions(200)
    model = tiny("bert-classifier", classes=2)
    train(model, Fixed(Segmented(*(array[:100] for array in inputs)), labels[:100]), 100, 1e-2)
    with cr.no_grad():
        guesses = model(*(array[100:] for array in inputs)).numpy().argmax(-1)
    assert np.mean(guesses == labels[100:]) > 0.95


def test_a_tagger_learns_what_depends_on_a_neighbor() -> None:
    """The label of a token is whether the one after it is odd: its own word says nothing about it."""
    ids = np.random.default_rng(3).integers(4, V, size=(120, T))
    labels = np.full_like(ids, IGNORE)
    labels[:, :-1] = ids[:, 1:] % 2
    model = tiny("bert-tagger", classes=2)
    inputs = Segmented(ids, np.ones(ids.shape, bool), np.zeros_like(ids))
    train(model, Fixed(Segmented(*(array[:60] for array in inputs)), labels[:60]), 150, 1e-2)
    with cr.no_grad():
        guesses = model(ids[60:]).numpy().argmax(-1)
    assert np.mean(guesses[:, :-1] == labels[60:, :-1]) > 0.95


def test_an_embedder_finds_the_partner() -> None:
    """Partners are the same words in another order; new pairs are found among 20 by the largest cosine."""
    rng = np.random.default_rng(3)
    texts = np.stack([rng.permutation(np.arange(4, 36))[:6] for _ in range(60)])
    partners = rng.permuted(texts, axis=1)
    mask = np.ones(texts.shape, bool)
    model = tiny("bert-embedder", vocab_size=40)
    train(model, Fixed(Twins(texts[:40], mask[:40], partners[:40], mask[:40]), np.zeros(40, int)), 40, 3e-3)
    with cr.no_grad():
        cosines = model(texts[40:]).numpy() @ model(partners[40:]).numpy().T
    assert np.mean(cosines.argmax(axis=1) == np.arange(20)) > 0.9
    assert np.abs(cosines).max() <= 1 + 1e-6


def test_the_contrastive_loss_is_that_of_its_definition() -> None:
    model, (inputs, targets) = float64(tiny("bert-embedder", temperature=0.5)), batch("bert-embedder")
    a, b = model(*inputs[:2]).numpy(), model(*inputs[2:]).numpy()
    scores = a @ b.T / 0.5
    there = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    back = scores - np.log(np.exp(scores).sum(axis=0, keepdims=True))
    want = -(there[0, 0] + there[1, 1] + back[0, 0] + back[1, 1]) / 4
    assert model.loss(inputs, targets).item() == pytest.approx(want, rel=1e-9)


def test_an_embedding_does_not_depend_on_padding() -> None:
    model = float64(tiny("bert-embedder")).eval()
    inputs, _ = batch("bert-embedder")
    together = model(inputs.ids, inputs.mask).numpy()
    np.testing.assert_allclose(together[1], model(inputs.ids[1:2, :4]).numpy()[0], atol=1e-12)
    empty = np.zeros((1, 3), bool)
    with pytest.raises(ShapeError, match="row 0 has no token"):
        model(np.zeros((1, 3), int), empty)


@pytest.mark.parametrize("kind", [BERTClassifier, BERTTagger, BERTEmbedder])
def test_fine_tuning_takes_the_body_and_makes_a_new_head(kind: type[Model]) -> None:
    trained = tiny(seed=5)
    model = fine_tune(trained, kind, dropout=0.2)
    assert model.config.dropout == 0.2 and model.config.n_embd == trained.config.n_embd
    old, new = trained.state(), model.state()
    body = [name for name in new if name.startswith("bert.")]
    assert body and all((new[name] == old[name]).all() for name in body)
    for _, param in model.named_parameters():
        param.data += 1
    assert all((trained.state()[name] == old[name]).all() for name in old)  # a copy


def test_fine_tuning_without_a_pooler_starts_a_new_one() -> None:
    model = fine_tune(tiny(next_sentence=False), BERTClassifier, classes=5)
    assert model.count() == model.config.n_params
    assert model(batch("bert")[0].ids).shape == (B, 5)


@pytest.mark.parametrize("kind", [BERTClassifier, BERTTagger, BERTEmbedder, BERTPretraining])
def test_every_head_fits_on_a_body_alone(kind: type[Model]) -> None:
    body = tiny("bert-classifier").bert
    model = fine_tune(body, kind)
    state = body.state()
    taken = {name.removeprefix("bert."): x for name, x in model.state().items() if name.startswith("bert.")}
    assert taken and all((state[name] == value).all() for name, value in taken.items())


def test_fine_tuning_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="fine_tune: BERTPretraining to GPT"):
        fine_tune(tiny(), cr.models.GPT)
    with pytest.raises(ConfigError, match="fine_tune: GPT to BERTClassifier"):
        fine_tune(make("gpt", n_layer=1, n_head=1, n_embd=4), BERTClassifier)
    with pytest.raises(ShapeError, match="word_embeddings"):
        fine_tune(tiny(), BERTClassifier, vocab_size=12)


def test_the_sizes_of_bert_base() -> None:
    base = {
        "n_layer": 12,
        "n_head": 12,
        "n_embd": 768,
        "n_hidden": 3072,
        "block_size": 512,
        "vocab_size": 30522,
    }
    assert BERTPretrainingConfig(**base, norm="post", next_sentence=True).n_params == 110_106_428


# -- a bag of words beside the encoder ----------------------------------------------------------------------------


def test_the_bag_of_a_classifier_learns_alone_and_the_encoder_what_it_leaves_open() -> None:
    cr.seed(0)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_hidden": 8, "vocab_size": 9, "dropout": 0.0}
    model = cr.models.make("bert-classifier", **sizes, classes=3, buckets=5, l2=0.1).to(np.float64)
    rng = np.random.default_rng(1)
    model.load({k: v + 0.1 * rng.normal(size=v.shape) for k, v in model.state().items()})
    inputs = cr.data.Segmented(
        np.array([[1, 5, 6, 2], [1, 7, 2, 0]]),
        np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool),
        np.zeros((2, 4), int),
    )
    targets = np.array([0, 2])
    assert (
        cr.gradcheck_model(model.eval().parameters(), lambda: model.loss(inputs, targets), step=1e-5) <= 1e-6
    )

    def gradients(loss: Any) -> dict[str, Any]:
        model.parameters().zero_grad()
        loss.backward()
        return {name: p.grad.copy() for name, p in model.named_parameters()}

    model.train()
    words = model.bag(*model.features(inputs.ids, inputs.mask))
    alone = gradients((cr.ops.cross_entropy(words, targets=targets) + model.bag.penalty()) * 0.5)
    both = gradients(cr.ops.cross_entropy(model(*inputs), targets=targets) * 0.5)
    found = gradients(model.loss(inputs, targets))
    for name, gradient in found.items():
        np.testing.assert_allclose(
            gradient, (alone if name.startswith("bag.") else both)[name], rtol=1e-9, atol=1e-15
        )
    ids, there = model.features(inputs.ids, inputs.mask)
    assert ids.shape == (2, 7) and ids.max() < 14 and there.sum(axis=1).tolist() == [7, 5]
