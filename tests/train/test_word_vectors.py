"""Training of word2vec: sampling, learning, resuming, and the same bits whoever computes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.errors import ChainruleError, ConfigError, DataError, GraphError
from chainrule.models import CBOW, NOTHING, SkipGram, Word2Vec, Word2VecConfig
from chainrule.random import key
from chainrule.train import WordTrainConfig, WordVectorStep
from chainrule.train.log import Logger
from chainrule.train.word_vectors import trainer as word_vectors
from chainrule.train.word_vectors.sampling import AliasTable, keep_probability, noise, random_words
from chainrule.train.word_vectors.trainer import Progress

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "tree", "slept", "barked"]


def sentences(n: int, seed: int = 0) -> np.ndarray:
    """'the cat sat on a mat': cat and dog, and only they, can stand in each other's place."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        animal = rng.choice(["cat", "dog"])
        rows += ["the", animal, rng.choice(["sat", "ran", "slept"]), rng.choice(["on", "under"])]
        rows += ["a", rng.choice(["mat", "tree"]), None]
    return np.array([NOTHING if word is None else WORDS.index(word) for word in rows])


def model_of(
    kind: type[Word2Vec] = SkipGram, *, V: int = len(WORDS), dim: int = 12, window: int = 2
) -> Word2Vec:
    cr.seed(0)
    return kind(Word2VecConfig(vocab_size=V, dim=dim, window=window))


def run(step: WordVectorStep, first: int = 0) -> Iterator[Progress]:
    for epoch in range(first, step.settings.epochs):
        yield from step.read(epoch)


def trained(kind: type[Word2Vec] = SkipGram, **settings: float) -> Word2Vec:
    model = model_of(kind)
    config = WordTrainConfig(sample=0, **settings)  # type: ignore[arg-type]
    for _ in run(WordVectorStep(model, sentences(80), config)):
        pass
    return model


@pytest.mark.requirement("R-256")
@pytest.mark.parametrize("kind", [SkipGram, CBOW])
def test_words_that_share_contexts_end_up_similar(kind: type[Word2Vec]) -> None:
    vectors = trained(kind, epochs=10, lr=0.2).input.weight.array
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for word, twin in [("cat", "dog"), ("dog", "cat")]:
        cosine = unit @ unit[WORDS.index(word)]
        cosine[WORDS.index(word)] = -1
        present = np.array([w != "barked" for w in WORDS])  # never occurs in the text
        nearest = [WORDS[i] for i in np.argsort(-np.where(present, cosine, -1))[:2]]
        assert twin in nearest


@pytest.mark.parametrize("kind", [SkipGram, CBOW])
def test_the_loss_falls(kind: type[Word2Vec]) -> None:
    model = model_of(kind)
    trainer = WordVectorStep(model, sentences(80), WordTrainConfig(epochs=5, sample=0, lr=0.2))
    before = trainer.loss()
    assert before == pytest.approx(6 * np.log(2), rel=1e-6)
    shares = [progress.fraction for progress in run(trainer)]
    assert shares == sorted(shares) and shares[-1] == 1
    assert trainer.loss() < 0.9 * before


def test_the_learning_rate_falls_linearly_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainrule.train.word_vectors.trainer.PASSAGE", 100)
    trainer = WordVectorStep(model_of(), sentences(80), WordTrainConfig(epochs=3, sample=0, lr=0.2))
    steps = list(run(trainer))
    assert [step.epoch for step in steps] == [0] * 6 + [1] * 6 + [2] * 6  # 560 places
    done = [0.0, *(step.fraction for step in steps)]
    assert done[:3] == pytest.approx([0, 100 / 560 / 3, 200 / 560 / 3]) and done[-1] == 1
    assert [step.lr for step in steps] == pytest.approx([0.2 * (1 - share) for share in done[:-1]])
    assert sum(step.words for step in steps) == 3 * 480


def test_rounds_are_short_where_steps_would_add_up() -> None:
    """Chunks side by side do not see each other: fewer of them for larger steps, and for a word that is everywhere."""
    rare = np.arange(1000).repeat(2)
    ids = np.concatenate([rare, np.full(20, 7)])  # one word in a hundred

    def lanes(kind: type[Word2Vec] = SkipGram, window: int = 2, **settings: float) -> int:
        config = WordTrainConfig(sample=0, **{"lr": 0.1, **settings})  # type: ignore[arg-type]
        return WordVectorStep(model_of(kind, V=1000, window=window), ids, config).lanes

    assert lanes() == 8
    assert lanes(lr=2.0) == 1
    # That word is read 22 times in 2020, each time with 5 negatives: 8 / (0.25 · 3 · 6 · 22/2020) = 163 centers.
    assert lanes(lr=0.25) == 163 // 32
    assert lanes(power=3.0) == 1  # nearly all negatives are that word
    assert lanes(window=20) < lanes(CBOW, window=20) == 8  # the mean of a window is one step


def test_a_loss_from_before_cannot_be_sent_back_after_training() -> None:
    model = model_of()
    model.parameters()  # in one block, where nothing but the count of changes tells
    loss = model.loss(np.array([0, 1]), np.array([1, 2]))
    list(run(WordVectorStep(model, sentences(5), WordTrainConfig(epochs=1))))
    with pytest.raises(GraphError, match="changed"):
        loss.backward()


@pytest.mark.parametrize("lr", [0.025, 0.1, 0.5])
def test_a_small_vocabulary_stays_finite(lr: float) -> None:
    """Every chunk meets every word: rounds shrink until their steps cannot add up to too much."""
    state = trained(epochs=4, lr=lr).state()
    assert max(np.abs(table).max() for table in state.values()) < 20


def test_it_goes_on_from_an_epoch_as_if_it_had_never_stopped() -> None:
    config, ids = WordTrainConfig(epochs=3, seed=4), sentences(50)
    whole = model_of()
    trainer = WordVectorStep(whole, ids, config)
    list(trainer.read(0))
    saved = whole.state()
    list(run(trainer, 1))

    second = model_of()
    second.load(saved)
    trainer = WordVectorStep(second, ids, config)
    list(run(trainer, 1))
    for name, table in whole.state().items():
        np.testing.assert_array_equal(second.state()[name], table)


def test_kernel_and_reference_tell_the_same_story(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = trained(epochs=1)
    monkeypatch.setattr(native, "available", lambda: False)
    slow = trained(epochs=1)
    for name, table in fast.state().items():
        np.testing.assert_allclose(slow.state()[name], table, atol=1e-5)


# -- sampling ------------------------------------------------------------------------------------------------


def test_subsampling_keeps_rare_words_and_thins_frequent_ones() -> None:
    counts = np.array([90_000, 9_900, 100, 0])
    chance = keep_probability(counts, 1e-3)
    assert chance[2] == chance[3] == 1
    assert chance[0] == pytest.approx(np.sqrt(1e-3 / 0.9) + 1e-3 / 0.9)
    np.testing.assert_array_equal(keep_probability(counts, 0), 1)

    ids = np.repeat(np.arange(4), counts)
    trainer = WordVectorStep(model_of(V=4), np.append(ids, [NOTHING] * 50))
    kept = trainer.kept(0)
    share = np.bincount(kept[kept >= 0], minlength=3)[:2] / counts[:2]
    np.testing.assert_allclose(share, chance[:2], rtol=0.1)
    assert (kept == NOTHING).sum() == 50 and (kept == 2).sum() == 100
    assert len(trainer.kept(1)) != len(kept)
    np.testing.assert_array_equal(trainer.kept(0), kept)


def test_the_noise_distribution() -> None:
    counts = np.array([16, 1, 0])
    np.testing.assert_allclose(noise(counts, 0.75), [8 / 9, 1 / 9, 0])
    np.testing.assert_allclose(noise(counts, 0.0), [0.5, 0.5, 0])


@pytest.mark.parametrize("V", [1, 2, 3, 50])
def test_an_alias_table_is_its_distribution(V: int) -> None:
    """Every column added up: exact, up to the 32 bits of a draw."""
    p = np.random.default_rng(V).dirichlet(np.full(V, 0.3))
    table = AliasTable.of(p)
    share = table.accept / 2**32
    got = share + np.bincount(table.other, weights=1 - share, minlength=V)
    np.testing.assert_allclose(got / V, p, atol=1e-8)

    draws = table.draw(np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32))
    np.testing.assert_allclose(np.bincount(draws, minlength=V) / len(draws), p, atol=0.005)


@pytest.mark.parametrize("negatives", [1, 7, 8, 20])
def test_random_words_belong_to_positions(negatives: int) -> None:
    name = key("test", 1, seed=2)
    whole = random_words(name, 0, 30, negatives)
    assert whole.shape == (30, 1 + negatives)
    np.testing.assert_array_equal(random_words(name, 11, 5, negatives), whole[11:16])


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs is 0 (must be at least 1)"),
        ({"negatives": 0}, "negatives is 0 (must be from 1 to 1000)"),
        ({"lr": 0.0}, "lr is 0.0 (must be a positive number)"),
        ({"lr": np.nan}, "lr is nan (must be a positive number)"),
        ({"sample": -1.0}, "sample is -1.0 (must be 0 or a positive number)"),
        ({"power": np.inf}, "power is inf (must be 0 or a positive number)"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        WordTrainConfig(**settings)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "got ids of float64 (0,)"),
        ([[0, 1]], "got ids of int64 (1, 2)"),
        ([0, 1, 12], "id 12 at position 2 (must be from -1 to 11)"),
        ([0, -2], "id -2 at position 1"),
        ([0, NOTHING, 1, NOTHING, 2], "no two words stand together between boundaries"),
        ([3, 3, NOTHING, 3], "1 different words in the text (must be at least 2)"),
    ],
)
def test_bad_texts(ids: list[int], message: str) -> None:
    with pytest.raises(DataError) as error:
        WordVectorStep(model_of(), ids)
    assert message in str(error.value)


def test_a_window_beyond_the_kernels() -> None:
    with pytest.raises(ConfigError, match="window is 65"):
        WordVectorStep(model_of(window=65), [0, 1, 2])


def test_vectors_that_are_not_finite_are_an_error() -> None:
    trainer = WordVectorStep(
        SkipGram(Word2VecConfig(vocab_size=4, dim=8, window=2)),
        np.arange(400) % 4,
        WordTrainConfig(lr=1e20, epochs=1),
    )
    with np.errstate(all="ignore"), pytest.raises(ChainruleError, match="try a smaller lr than 1e"):
        list(run(trainer))


def test_the_pace_is_told_from_the_first_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    step = WordVectorStep(model_of(), sentences(80), WordTrainConfig(sample=0, epochs=2))
    times = iter([10.0, 10.25])
    monkeypatch.setattr(word_vectors, "time", SimpleNamespace(monotonic=lambda: next(times)))
    said: list[str] = []
    step(0, 0.1, lambda words: bool(said.append(words)))
    assert said == ["epoch 1 of 2, 50%, 1,920 words/s"]  # 480 words in a quarter of a second


def test_the_loss_is_that_of_ten_thousand_pairs() -> None:
    step = WordVectorStep(model_of(), sentences(2000), WordTrainConfig(sample=0))
    assert step.loss() == step.loss(10_000) != step.loss(9_999)


def test_a_checkpoint_is_due_after_every_epoch() -> None:
    """And each is the last of the training if it is stopped there."""
    corpus = cr.data.Corpus("text", "file", "the cat sat on a mat. the dog ran. " * 20)
    task = cr.tasks.WordVectorsTask.of(corpus)
    model = model_of(V=task.tokenizer.vocab_size)
    trainer = word_vectors.word_trainer(task, model, WordTrainConfig(epochs=3))
    saved: list[int] = []
    trainer.run(Logger(), lambda: saved.append(trainer.steps))
    assert saved == [1, 2, 3]
