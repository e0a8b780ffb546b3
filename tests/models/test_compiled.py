"""The compiled step: the bits of the op-by-op step, for every family, whatever the batches are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native, ops, random
from chainrule.align.reward import RewardTraining
from chainrule.autograd import Op, precision
from chainrule.autograd.recording import Recording
from chainrule.data import Bag, Masked, Pair, Segmented, Twins
from chainrule.data.batches.packed import Packed
from chainrule.errors import ConfigError, DataError, ShapeError
from chainrule.models import IGNORE, Compiled, Model, Reward, make, tuning
from chainrule.models import compiled as module
from chainrule.models.gpt import GPT
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch
from chainrule.models.replayable import Replayable
from chainrule.models.reward import Comparisons
from chainrule.nn import TokenRows
from chainrule.optim import AdamW, clip_global_norm
from chainrule.tasks.labeled.frozen import Read

pytestmark = pytest.mark.skipif(not native.available(), reason="without kernels nothing is compiled")

V, T, STEPS = 17, 8, 20
Batches = Iterator[Batch]


def words(rows: int = 4, tokens: int = T, ignored: bool = True) -> Batches:
    rng = np.random.default_rng(0)
    while True:
        ids = rng.integers(V, size=(rows, tokens + 1))
        targets = ids[:, 1:].copy()
        if ignored:
            targets[0, rng.integers(tokens) :] = IGNORE
        yield Batch(ids[:, :-1], targets)


def pairs(padded: bool = True) -> Batches:
    rng = np.random.default_rng(1)
    for batch in words():
        length = rng.integers(2, 7, size=(4, 1)) if padded else np.full((4, 1), 6)
        source = rng.integers(V, size=(4, 6))
        yield batch._replace(inputs=Pair(source, np.arange(6) < length, batch.inputs))


def segmented(rng: np.random.Generator, inputs: Any) -> Segmented:
    mask = np.arange(T) < rng.integers(2, T + 1, size=(4, 1))
    return Segmented(inputs, mask, rng.integers(2, size=(4, T)))


def labels() -> Batches:
    rng = np.random.default_rng(2)
    for batch in words():
        yield Batch(segmented(rng, batch.inputs), rng.integers(3, size=4))


def gists() -> Batches:
    """What a frozen body made of texts."""
    rng = np.random.default_rng(2)
    for batch in labels():
        yield batch._replace(inputs=Read(*batch.inputs, rng.normal(size=(4, 1, 16)).astype(np.float32)))


def bags() -> Batches:
    rng = np.random.default_rng(2)
    while True:
        counts = rng.integers(3, size=(4, 6))
        yield Batch(Bag(rng.integers(50, size=(4, 6)), counts), rng.integers(3, size=4))


def tags() -> Batches:
    rng = np.random.default_rng(2)
    for batch in words():
        yield Batch(segmented(rng, batch.inputs), rng.integers(3, size=(4, T)))


def masked() -> Batches:
    rng = np.random.default_rng(2)
    for batch in words():
        ids, mask, segments = segmented(rng, batch.inputs)
        yield Batch(Masked(ids, mask, segments, rng.integers(2, size=4)), batch.targets)


def packed() -> Batches:
    """Texts of other lengths in each row and batch."""
    rng = np.random.default_rng(2)
    for batch in words():
        segments = np.cumsum(rng.random((4, T)) < 0.3, axis=1)
        yield batch._replace(inputs=Packed(batch.inputs, segments))


def few_masked(rows: int = 16) -> Batches:
    """About one word in seven is asked for, as in pre-training."""
    rng = np.random.default_rng(4)
    for batch in words(rows, ignored=False):
        asked = rng.random(batch.targets.shape) < 0.15
        inputs = Masked(batch.inputs, np.ones((rows, T), bool), np.zeros((rows, T), int), np.zeros(rows, int))
        yield Batch(inputs, np.where(asked, batch.targets, IGNORE))


def documents(rows: int = 16) -> Batches:
    """Rows of other lengths, which are padded to the longest."""
    rng = np.random.default_rng(4)
    for batch in words(rows, ignored=False):
        lengths = rng.integers(2, T + 1, size=(rows, 1))
        longest = int(lengths.max())
        targets = np.where(np.arange(T) < lengths, batch.targets, IGNORE)
        yield Batch(batch.inputs[:, :longest], targets[:, :longest])


def longer_bags() -> Batches:
    rng = np.random.default_rng(5)
    while True:
        F = rng.integers(20, 30)
        yield Batch(Bag(rng.integers(50, size=(4, F)), rng.integers(3, size=(4, F))), rng.integers(3, size=4))


def twins() -> Batches:
    rng = np.random.default_rng(2)
    while True:
        texts, partners = (segmented(rng, rng.integers(V, size=(4, T))) for _ in range(2))
        targets = np.where(rng.random(4) < 0.2, IGNORE, 0)
        yield Batch(Twins(texts.ids, texts.mask, partners.ids, partners.mask), targets)


def preferences() -> Batches:
    rng = np.random.default_rng(2)
    while True:
        mask = np.arange(T) < rng.integers(1, T + 1, size=(4, 2, 1))
        yield Batch(Comparisons(rng.integers(V, size=(4, 2, T)), mask), np.zeros(4, np.int64))


SMALL = {"vocab_size": V, "block_size": T}
TRANSFORMER = {"n_layer": 2, "n_head": 2, "n_embd": 16} | SMALL
WINDOWS = {"n_layer": 1, "n_embd": 4, "n_hidden": 9, "vocab_size": V, "block_size": 3}
RECURRENT = {"n_layer": 2, "n_embd": 6, "n_hidden": 8} | SMALL
FAMILIES: dict[str, Callable[[], Model]] = {
    "gpt": lambda: make("gpt", **TRANSFORMER),
    "gpt dropout": lambda: make("gpt", **TRANSFORMER, dropout=0.2),
    "gpt relu untied without bias": lambda: make(
        "gpt", **TRANSFORMER, activation="relu", tied=False, bias=False
    ),
    "llama": lambda: make("llama", **TRANSFORMER, n_kv_head=1),
    "neox": lambda: make("neox", **TRANSFORMER),
    "ngram": lambda: make("ngram", vocab_size=V, block_size=2),
    "rnn": lambda: make("rnn", **RECURRENT),
    "gru": lambda: make("gru", **RECURRENT, dropout=0.2),
    "lstm": lambda: make("lstm", **RECURRENT),
    "mlp": lambda: make("mlp", **WINDOWS),
    "mlp of two layers without batch norm": lambda: make("mlp", **WINDOWS | {"n_layer": 2}, batch_norm=False),
    "seq2seq": lambda: make("seq2seq", **TRANSFORMER, dropout=0.1),
    "t5": lambda: make("t5", **TRANSFORMER),
    "t5 gated without dropout": lambda: make("t5", **TRANSFORMER, gated=True, tied=False, dropout=0.0),
    "classifier by distance": lambda: make("bert-classifier", **TRANSFORMER, classes=3, relative_buckets=4),
    "mean classifier": lambda: make("bert-classifier", **TRANSFORMER, classes=3, pooling="mean"),
    "embedder": lambda: make("bert-embedder", **TRANSFORMER, dropout=0.1),
    "embedder by distance": lambda: make("bert-embedder", **TRANSFORMER, relative_buckets=4, normalize=False),
    "reward": lambda: Reward.on(make("gpt", **TRANSFORMER, dropout=0.1)),
    "llama reward": lambda: Reward.on(make("llama", **TRANSFORMER, n_kv_head=1)),
    "neox reward": lambda: Reward.on(make("neox", **TRANSFORMER)),
    "bag of words": lambda: make("bow-classifier", **SMALL, buckets=50, classes=3),
    "bag of words without l2": lambda: make("bow-classifier", **SMALL, buckets=50, classes=3, l2=0.0),
    "classifier": lambda: make("bert-classifier", **TRANSFORMER, classes=3, dropout=0.1),
    "max classifier": lambda: make("bert-classifier", **TRANSFORMER, classes=3, pooling="max"),
    "classifier with a bag": lambda: make("bert-classifier", **TRANSFORMER, classes=3, buckets=20),
    "gists of a mean": lambda: make("bert-classifier", **TRANSFORMER, classes=3, pooling="mean"),
    "gists and a bag": lambda: make("bert-classifier", **TRANSFORMER, classes=3, buckets=20),
    "max embedder": lambda: make("bert-embedder", **TRANSFORMER, pooling="max"),
    "cls embedder": lambda: make("bert-embedder", **TRANSFORMER, pooling="cls"),
    "tagger": lambda: make("bert-tagger", **TRANSFORMER, classes=3),
    "pretraining": lambda: make("bert", **TRANSFORMER),
    "pretraining with next sentence": lambda: make("bert", **TRANSFORMER, next_sentence=True, norm="post"),
    "reward near 0": lambda: RewardTraining(Reward.on(make("gpt", **TRANSFORMER, dropout=0.1)), center=0.1),
    "packed gpt": lambda: make("gpt", **TRANSFORMER, dropout=0.2),
    "packed llama": lambda: make("llama", **TRANSFORMER, n_kv_head=1),
    "packed neox": lambda: make("neox", **TRANSFORMER),
    "packed prompt": lambda: tuning.Prompt(length=2).apply(
        make("gpt", **TRANSFORMER | {"block_size": T + 2})
    ),
    "packed llama prompt": lambda: tuning.Prompt(length=2).apply(
        make("llama", **TRANSFORMER | {"block_size": T + 2})
    ),
    "packed prefix": lambda: tuning.Prefix(length=2).apply(
        make("gpt", **TRANSFORMER | {"block_size": T + 2})
    ),
    "packed llama prefix": lambda: tuning.Prefix(length=2).apply(make("llama", **TRANSFORMER)),
    "prefix classifier": lambda: tuning.Prefix(length=2).apply(
        make("bert-classifier", **TRANSFORMER, classes=3)
    ),
    "tokens": lambda: tuning.LoRA(rank=2, tokens=(3, 5)).apply(make("gpt", **TRANSFORMER)),
    "untied tokens": lambda: tuning.LoRA(rank=2, tokens=(3, 5)).apply(
        make("llama", **TRANSFORMER, tied=False)
    ),
    "lora": lambda: tuning.LoRA(rank=2).apply(make("gpt", **TRANSFORMER)),
    "adapters": lambda: tuning.BottleneckAdapter(bottleneck=4).apply(make("llama", **TRANSFORMER)),
    "prefix": lambda: tuning.Prefix(length=2).apply(make("gpt", **TRANSFORMER | {"block_size": T + 2})),
    "prompt": lambda: tuning.Prompt(length=2).apply(make("gpt", **TRANSFORMER | {"block_size": T + 2})),
    "llama prompt": lambda: tuning.Prompt(length=3).apply(
        make("llama", **TRANSFORMER | {"block_size": T + 3})
    ),
    "bitfit": lambda: tuning.BitFit().apply(make("gpt", **TRANSFORMER)),
}
PREPARED = (
    "mlp",
    "ngram",
    "pretraining with next sentence",
    "packed llama",
    "classifier with a bag",
    "reward near 0",
)


def batches_of(name: str) -> Batches:
    special = {"seq2seq": pairs, "t5": pairs, "tagger": tags, "pretraining": masked, "packed": packed}
    special |= {"classifier": labels, "reward": preferences, "embedder": twins, "words": bags, "gists": gists}
    return next((make for kind, make in special.items() if kind in name.split()), words)()


def trained(
    model: Model,
    batches: Batches,
    *,
    compiled: bool,
    steps: int = STEPS,
    accumulate: int = 1,
    factor: float = 1.0,
    rows: int = 4,
    between: Callable[[Model, int], None] = lambda model, step: None,
) -> tuple[list[Any], Compiled]:
    """The loss and the bits of the weights and buffers after each step of AdamW."""
    parameters, found = model.parameters(), cr.compile(model)
    optimizer = AdamW(parameters, 1e-2)
    gradient = found.backward if compiled else lambda batch, **options: backward(model, batch, **options)
    history, state = [], None
    for step in range(steps):
        between(model, step)
        batch = next(batches)
        if not compiled:
            parameters.zero_grad()
        with random.step(step), parameters.replaced() if compiled else nullcontext():  # as in training
            initial = model.initial_state(rows) if state is None else state
            loss, state = gradient(batch._replace(state=initial), accumulate=accumulate, factor=factor)
        parameters.grad *= 1 / factor
        history.append((loss, clip_global_norm(parameters, 1.0), parameters.grad.tobytes()))
        optimizer.step()
        history.append((parameters.data.tobytes(), [array.tobytes() for _, array in model.named_buffers()]))
    return history, found


def learn(compiled: Compiled, batch: Batch) -> bool:
    """One step of gradient descent; True if its gradient has the bits of op by op."""
    parameters = compiled.model.parameters()
    parameters.zero_grad()
    backward(compiled.model, batch)
    expected = parameters.grad.tobytes()
    parameters.zero_grad()
    compiled.backward(batch)
    same = parameters.grad.tobytes() == expected
    parameters.data[: parameters.grad.size] -= 0.1 * parameters.grad
    return same


def spoil_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on replays meet a target that is out of range."""
    fill = Replayable.fill

    def spoil(self: Replayable, part: Batch, *rest: Any) -> None:
        fill(self, part, *rest)
        self.part.targets[...] = V + 1

    monkeypatch.setattr(Replayable, "fill", spoil)


def new(name: str) -> Model:
    cr.seed(3)
    return FAMILIES[name]()


def check_same(name: str, change: Callable[[Model], Any] = lambda model: None, **options: Any) -> Compiled:
    """Train twice, op by op and compiled, to the same bits."""
    models = [new(name), new(name)]
    for model in models:
        change(model)
    expected, _ = trained(models[0], batches_of(name), compiled=False, **options)
    found, compiled = trained(models[1], batches_of(name), compiled=True, **options)
    assert [a == b for a, b in zip(found, expected, strict=True)] == [True] * len(found)
    return compiled


@pytest.mark.parametrize("name", FAMILIES)
def test_same_bits_as_op_by_op(name: str) -> None:
    compiled = check_same(name)
    assert (compiled.replayed, compiled.broken) == (1, [])


@pytest.mark.parametrize("name", ["gpt dropout", "lstm", "llama", *PREPARED])
def test_same_bits_in_microbatches(name: str) -> None:
    compiled = check_same(name, accumulate=2)
    assert (
        compiled.replayed == 2
    )  # the first overwrites the gradients of the step before, the second adds to them
    compiled = check_same(name, accumulate=3)  # of 2, 1 and 1 rows
    assert compiled.replayed == 2


@pytest.mark.parametrize(
    "name", ["gpt dropout", "llama", "packed gpt", "pretraining with next sentence", "tokens"]
)
def test_same_bits_recomputed(name: str) -> None:
    def recompute(model: Model) -> None:
        model.recompute = True

    assert check_same(name, recompute).replayed == 1


def test_same_bits_with_frozen_parameters() -> None:
    assert check_same("gpt", lambda model: model.h[0].freeze()).replayed == 1

    def thaw(model: Model, step: int) -> None:
        if step == 8:
            model.h[0].attn.freeze()

    assert check_same("gpt", between=thaw).replayed >= 1
    assert check_same("mlp", lambda model: model.embedding.freeze()).replayed == 1
    assert check_same("classifier with a bag", lambda model: model.bert.freeze()).replayed == 1


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
@pytest.mark.parametrize("name", ["gpt dropout", "tokens", *PREPARED])
def test_same_bits_in_low_precision(name: str, kind: str) -> None:
    with precision(kind):
        assert check_same(name, factor=1024.0).replayed == 1


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("name", ["gpt", "lstm"])
def test_same_bits_for_any_number_of_threads(name: str, threads: int) -> None:
    """Of a model that is large enough for helper threads."""
    sizes = {"gpt": TRANSFORMER | {"n_layer": 1}, "lstm": RECURRENT | {"n_hidden": 64}}[name]

    def large() -> Model:
        cr.seed(3)
        return make(name, **sizes | {"n_embd": 64, "block_size": 32}, dropout=0.2)

    def learned(compiled: bool) -> tuple[list[Any], Compiled]:
        return trained(large(), words(rows=16, tokens=32), compiled=compiled, steps=8, rows=16)

    before = cr.get_threads()
    try:
        cr.set_threads(1)
        expected = learned(compiled=False)[0]
        cr.set_threads(threads)
        found, compiled = learned(compiled=True)
        assert found == expected and compiled.replayed == 1
        if sys.platform == "linux":
            assert len(os.listdir("/proc/self/task")) >= threads
    finally:
        cr.set_threads(before)


@pytest.mark.parametrize(
    ("name", "batches"),
    [
        ("pretraining", few_masked),
        ("mlp", documents),
        ("ngram", documents),
        ("bag of words", longer_bags),
        ("packed gpt", packed),
    ],
)
def test_batches_of_other_counts_are_replayed_most_of_the_time(
    name: str, batches: Callable[[], Batches], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many words are asked for, windows count, or words a bag has, is another number in each batch."""
    steps, replays = 60, 0
    replay = Recording.replay

    def counted(self: Recording) -> None:
        nonlocal replays
        replays += 1
        replay(self)

    monkeypatch.setattr(Recording, "replay", counted)
    expected = trained(new(name), batches(), compiled=False, steps=steps, rows=16)[0]
    found, compiled = trained(new(name), batches(), compiled=True, steps=steps, rows=16)
    assert found == expected and compiled.broken == [] and 1 <= compiled.replayed <= 5
    assert replays > 0.7 * steps


def test_other_shapes_in_between() -> None:
    def mixed() -> Batches:
        long, short = words(), words(tokens=5)
        for step in range(STEPS):
            yield next(short if step % 3 == 2 else long)

    expected = trained(new("gpt"), mixed(), compiled=False)[0]
    found, compiled = trained(new("gpt"), mixed(), compiled=True)
    assert found == expected and compiled.replayed == 2


def test_padding_that_begins_late_is_not_missed() -> None:
    """Batches without padding take a shorter way: one that was recorded must not be taken by those with it."""

    def late() -> Batches:
        whole, padded = pairs(padded=False), pairs()
        for step in range(STEPS):
            yield next(whole if step < 10 else padded)

    expected = trained(new("seq2seq"), late(), compiled=False)[0]
    found, compiled = trained(new("seq2seq"), late(), compiled=True)
    assert found == expected and compiled.replayed == 1


def test_targets_that_begin_to_be_ignored_late() -> None:
    def late() -> Batches:
        whole, ignored = words(ignored=False), words()
        for step in range(STEPS):
            yield next(whole if step < 10 else ignored)

    expected = trained(new("gpt"), late(), compiled=False)[0]
    found, compiled = trained(new("gpt"), late(), compiled=True)
    assert found == expected and compiled.replayed == 1


def test_a_capture_sees_the_ops() -> None:
    model = new("gpt")
    compiled, batches = cr.compile(model), words()
    for _ in range(4):
        learn(compiled, next(batches))
    assert compiled.replayed == 1
    model.parameters().zero_grad()
    with cr.capture() as seen:
        compiled.backward(next(batches))
    assert seen["h.0.mlp.gelu"].grad is not None


def test_a_hook_is_called() -> None:
    model, seen = new("gpt"), []
    compiled, batches = cr.compile(model), words()
    for step in range(6):
        if step == 4:
            assert compiled.replayed == 1
            model.wpe.weight.register_hook(lambda grad: seen.append(grad.shape))
        learn(compiled, next(batches))
    assert seen == [(T, 16)] * 4  # op by op too


def test_an_op_of_ones_own_is_computed_op_by_op() -> None:
    def forward(x: Any) -> Any:
        return 2 * x, ()

    def backward(dy: Any, saved: Any, needs: Any) -> Any:
        return (2 * dy,)

    twice = Op("twice", forward, backward, lambda rng: iter(()))
    model = new("gpt")
    inside = model.ln_f.forward
    model.ln_f.forward = lambda x: twice(inside(x))
    batches = words()
    compiled = cr.compile(model)
    assert all(learn(compiled, next(batches)) for _ in range(5))
    assert compiled.replayed == 0 and compiled.broken == ["twice is computed by NumPy"]


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("where", ["ids", "targets"])
def test_bad_ids_are_refused_as_op_by_op(step: int, where: str) -> None:
    model, batches = new("gpt"), words()
    compiled = cr.compile(model)
    for _ in range(step):
        learn(compiled, next(batches))
    assert compiled.replayed == (step > 2)
    batch = next(batches)
    batch = Batch(batch.inputs.copy(), batch.targets.copy())
    (batch.inputs if where == "ids" else batch.targets)[1, 1] = V
    with pytest.raises(DataError) as expected:
        backward(model, batch)
    with pytest.raises(DataError) as found:
        compiled.backward(batch)
    assert str(found.value) == str(expected.value)
    assert learn(compiled, next(batches))


@pytest.mark.parametrize("name", ["reward", "mean classifier", "max classifier", "cls embedder"])
def test_a_text_without_tokens_is_refused_as_op_by_op(name: str) -> None:
    model, batches = new(name), batches_of(name)
    compiled = cr.compile(model)
    for step in range(5):
        with random.step(step):
            learn(compiled, next(batches))
    assert compiled.replayed == 1
    batch = next(batches)
    empty = batch._replace(inputs=batch.inputs._replace(mask=np.zeros_like(batch.inputs.mask)))
    with pytest.raises(ShapeError, match="row 0 has no token"):
        compiled.backward(empty)
    assert learn(compiled, batch)


def test_a_replay_that_differs_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that slips through is found by the comparison, and the step is that of op by op."""
    fill = Replayable.fill
    monkeypatch.setattr(
        Replayable, "fill", lambda self, part, *rest: fill(self, part._replace(targets=part.inputs), *rest)
    )
    compiled, batches = cr.compile(new("gpt")), words(ignored=False)
    expected = [learn(compiled, next(batches)) for _ in range(5)]
    assert compiled.broken == ["a replay gave other bits"]
    assert expected == [True, False, True, True, True]  # the second one was recorded on the wrong targets


class Counting(GPT):
    """Counts its passes by NumPy, which no recording sees."""

    buffers = ("seen",)

    def hidden(self, ids: Any, segments: Any = None) -> Any:
        self.seen += 1
        return super().hidden(ids, segments)


def test_a_buffer_that_only_op_by_op_changes_is_found() -> None:
    def counting(model: Model) -> None:
        model.__class__, model.seen = Counting, np.zeros(1, np.float32)

    compiled = check_same("gpt", counting)
    assert compiled.broken == ["a replay gave other bits"] and compiled.model.seen == STEPS


def running(model: Model) -> list[bytes]:
    """The running statistics."""
    return [array.tobytes() for _, array in model.named_buffers()]


@pytest.mark.parametrize("step", range(5))
def test_a_refused_batch_leaves_the_statistics_of_op_by_op(step: int) -> None:
    """The targets are refused after the batch norm has taken in the batch."""
    models, batches = [new("mlp"), new("mlp")], words(ignored=False)
    compiled = cr.compile(models[1])
    for _ in range(step):
        batch = next(batches)
        for model in models:
            model.parameters().zero_grad()
        backward(models[0], batch)
        compiled.backward(batch)
        for model in models:
            model.parameters().data[:] += np.float32(0.01)
        assert running(models[0]) == running(models[1])
    batch = next(batches)
    batch.targets[1, 1] = V
    with pytest.raises(DataError) as expected:
        backward(models[0], batch)
    with pytest.raises(DataError) as found:
        compiled.backward(batch)
    assert str(found.value) == str(expected.value)
    assert running(models[0]) == running(models[1])


def test_a_replay_that_is_refused_takes_no_batch_in_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, batches = cr.compile(new("mlp")), words(ignored=False)
    for _ in range(5):
        learn(compiled, next(batches))
    spoil_targets(monkeypatch)
    assert compiled.replayed == 1
    before, batch = compiled.model.state(), next(batches)
    backward(compiled.model, batch)
    expected = running(compiled.model)
    compiled.model.load(before)
    compiled.backward(batch)
    assert running(compiled.model) == expected and "ValueError" in compiled.broken[0]


def test_statistics_that_moved_are_recorded_anew() -> None:
    def moved(model: Model, step: int) -> None:
        if step == 10:
            model.mlp.norms[0].running_mean = np.ones(9, np.float32)

    assert check_same("mlp", between=moved).replayed == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    model = new("gpt")
    compiled = cr.compile(model)
    for tokens in (3, 4, 5, 6) * 4:
        assert learn(compiled, next(words(tokens=tokens)))
    assert compiled.replayed == 2 and compiled.broken == []
    monkeypatch.setattr(module, "IDLE", 4)
    for _ in range(12):  # what is not used any more gives way
        assert learn(compiled, next(words(tokens=8)))
    assert compiled.replayed == 2 and list(compiled.shapes.values())[-1].trusted


def test_recordings_share_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cr.compile(new("gpt"))
    held = []
    for tokens in (T, T - 1, T // 2):
        for _ in range(4):
            assert learn(compiled, next(words(tokens=tokens)))
        held.append(
            [shape.replayable.recording.bytes for shape in compiled.shapes.values() if shape.replayable]
        )
    assert [len(each) for each in held] == [1, 2, 3] and len(set(held[-1])) == 1
    assert held[-1][0] < 1.5 * held[0][0]  # not the sum of all
    for tokens in (T, T // 2, T - 1) * 4:  # in turn
        assert learn(compiled, next(words(tokens=tokens)))
    assert compiled.replayed == 3
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    monkeypatch.setattr(module, "IDLE", 4)
    for step in range(12):  # another shape waits until all of them are idle
        assert learn(compiled, next(words(tokens=2)))
        assert (compiled.replayed == 3) == (step < 4)
    assert compiled.replayed == 1 and list(compiled.shapes.values())[-1].trusted


def test_memory_is_freed_and_recorded_again() -> None:
    model, batches = new("gpt"), words()
    compiled = cr.compile(model)
    for step in range(10):
        if step == 5:
            assert compiled.replayed == 1
            compiled.forget()
            assert compiled.replayed == 0
        learn(compiled, next(batches))
    assert compiled.replayed == 1


def test_weights_that_moved_are_recorded_anew() -> None:
    model, batches = new("gpt"), words()
    compiled = cr.compile(model)
    for step in range(12):
        if step in (4, 8):
            assert compiled.replayed == 1
        if step == 4:
            model.h[0].freeze()
        if step == 8:
            model.ln_f.weight.array = 2 * model.ln_f.weight.array
        assert learn(compiled, next(batches))
        assert compiled.block is model.parameters()
    assert compiled.replayed == 1


def test_shapes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SHAPES", 3)
    compiled = cr.compile(new("gpt"))
    for tokens in range(1, T + 1):
        learn(compiled, next(words(tokens=tokens)))
    assert len(compiled.shapes) == 3
    with random.seeded(9):  # nothing that was recorded before can be used again
        learn(compiled, next(words()))
    assert len(compiled.shapes) == 1


def no_gradients(model: Model, step: int) -> None:
    for param in model.parameters().unique:
        param.grad = None


def replace_gradient(model: Model, step: int) -> None:
    if step == 10:
        model.wpe.weight.grad = model.wpe.weight.grad.copy()


def change_seed(model: Model, step: int) -> None:
    if step in (0, 10):
        cr.seed(step)


TOGGLED: dict[str, Callable[[Model, int], Any]] = {
    "a layer's mode": lambda model, step: model.h[1].train(step < 10),
    "recompute": lambda model, step: setattr(model, "recompute", step >= 10),
    "freezing": lambda model, step: model.h[0].freeze() if step == 10 else None,
    "seed": change_seed,
    "no gradients": lambda model, step: no_gradients(model, step) if step >= 10 else None,
    "another gradient": replace_gradient,
    "weights": lambda model, step: model.parameters().data.__imul__(np.float32(1.5)) if step == 10 else None,
}


@pytest.mark.parametrize("name", TOGGLED)
def test_same_bits_whatever_is_toggled_midway(name: str) -> None:
    compiled = check_same("gpt dropout", between=TOGGLED[name])
    assert compiled.replayed == (
        2 if name == "no gradients" else 1
    )  # then nothing is left over to be overwritten


def test_same_bits_when_the_precision_is_toggled() -> None:
    compiled, batches = cr.compile(new("gpt")), words()
    for step in range(15):
        with precision("bf16" if 5 <= step < 10 else "fp32"):
            assert learn(compiled, next(batches))
            assert compiled.replayed == (step % 5 > 1 or step in (2, 3, 4))


def test_gradients_that_were_set_to_none_are_replayed_into_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batches = new("gpt"), words()
    compiled = cr.compile(model)
    for _ in range(5):
        learn(compiled, next(batches))
    batch, parameters = next(batches), model.parameters()
    parameters.zero_grad()
    backward(model, batch)
    expected = parameters.grad.tobytes()
    no_gradients(model, 0)
    monkeypatch.setattr(module, "op_by_op", None)  # would fail
    compiled.backward(batch)
    assert parameters.grad.tobytes() == expected
    assert all(param.grad is parameters.grad_view(param) for param in parameters.unique)


def test_a_gradient_that_was_replaced_is_added_to() -> None:
    compiled, batches = cr.compile(new("gpt")), words()
    for _ in range(5):
        learn(compiled, next(batches))
    assert compiled.replayed == 1
    weight = compiled.model.wpe.weight
    weight.grad = np.zeros(weight.shape, np.float32)
    compiled.backward(next(batches))
    assert weight.grad.any()


def test_only_other_weights_and_another_step_make_a_replay_trusted() -> None:
    model, batches = new("gpt"), words()
    compiled, parameters = cr.compile(model), model.parameters()
    for step in (0, 0, 0):
        with random.step(step):
            compiled.backward(next(batches))
    (shape,) = compiled.shapes.values()
    assert shape.replayable is not None and shape.agreed == set()  # a comparison would show nothing
    parameters.data *= np.float32(1.1)
    with random.step(0):
        compiled.backward(next(batches))
    assert shape.agreed == {"weights"} and shape.trusted
    with random.step(1):  # another step is compared once more
        compiled.backward(next(batches))
    assert shape.agreed == {"weights", "step"}


class Learned(GPT):
    """Its norm takes a constant from the weights in a way that no recording sees."""

    def hidden(self, ids: Any, segments: Any = None) -> Any:
        scale = float(np.square(self.wpe.weight.array).mean())
        return ops.rmsnorm(super().hidden(ids, segments), self.ln_f.weight, eps=scale)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_a_constant_of_the_weights_is_found_before_it_is_trusted(accumulate: int) -> None:
    models = [new("gpt"), new("gpt")]
    for model in models:
        model.__class__ = Learned
    expected = trained(models[0], words(), compiled=False, accumulate=accumulate)[0]
    found, compiled = trained(models[1], words(), compiled=True, accumulate=accumulate)
    assert found == expected and set(compiled.broken) == {"a replay gave other bits"}


class Staged(GPT):
    """Its embedding of positions does not learn from some step on, which no recording sees."""

    stage = 0

    def hidden(self, ids: Any, segments: Any = None) -> Any:
        self.wpe.weight.requires_grad = self.stage < 2
        try:
            return super().hidden(ids, segments)
        finally:
            self.wpe.weight.requires_grad = True


def test_a_gradient_that_only_the_recording_has_is_found() -> None:
    model, batches = new("gpt"), words()
    model.__class__ = Staged
    parameters, compiled = model.parameters(), cr.compile(model)
    for model.stage in range(6):
        with parameters.replaced():
            compiled.backward(next(batches))
        assert parameters["wpe.weight"].grad.any() == (model.stage < 2)
        parameters.data[: parameters.grad.size] -= 0.1 * parameters.grad
    assert compiled.broken == ["a replay gave other bits"]


def test_what_goes_wrong_late_is_found_by_the_next_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_CHECK", 4)
    model, batches = new("gpt"), words()
    compiled = cr.compile(model)
    for _ in range(5):
        assert learn(compiled, next(batches))
    model.h[0].mlp.forward = lambda x: x  # against the rules: what it is made of changes
    found = [learn(compiled, next(batches)) for _ in range(8)]
    assert compiled.broken == ["a replay gave other bits"]
    assert not found[0] and found[-4:] == [True] * 4


class Choosy(GPT):
    """Takes arrays only, after its dropout has drawn."""

    def losses_and_state(self, batch: Batch) -> Any:
        found = super().losses_and_state(batch)
        if not isinstance(batch.targets, np.ndarray):
            raise TypeError("takes no Input")
        return found


def test_an_exception_while_recording_does_not_change_the_masks() -> None:
    def choosy(model: Model) -> None:
        model.__class__ = Choosy

    compiled = check_same("gpt dropout", choosy)
    assert compiled.broken == ["TypeError: takes no Input"]


def test_a_replay_that_is_refused_goes_on_op_by_op(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, batches = cr.compile(new("gpt")), words()
    for _ in range(5):
        learn(compiled, next(batches))
    spoil_targets(monkeypatch)
    assert compiled.replayed == 1
    assert learn(compiled, next(batches))
    assert compiled.replayed == 0 and "ValueError" in compiled.broken[0]


def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"compile: NoneType \(must be a model"):
        cr.compile(None)  # type: ignore[arg-type]


def test_rows_of_a_table_that_were_restored_are_restored_again() -> None:
    """A replay writes the learned rows without Python, which must still know what was there."""
    model = new("tokens")
    layer = next(part for _, part in model.named_layers() if isinstance(part, TokenRows))
    original = layer.base.weight.array[layer.tokens].copy()
    compiled, batches = cr.compile(model), batches_of("tokens")
    for _ in range(2):
        for _ in range(5):
            learn(compiled, next(batches))
        assert not np.array_equal(layer.base.weight.array[layer.tokens], original)
        layer.restore()
        np.testing.assert_array_equal(layer.base.weight.array[layer.tokens], original)
    assert compiled.replayed == 1
