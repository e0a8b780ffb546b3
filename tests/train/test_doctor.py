"""The doctor: every fault that is planted is found, and named by its place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Tensor
from chainrule.data import Batches, DocumentBatches, Encoded, LabeledBatches, PairBatches, SpecialIds
from chainrule.data.batches.padded import IGNORE
from chainrule.doctor import Finding
from chainrule.doctor.monitor import Doctor
from chainrule.doctor.nonfinite import search
from chainrule.doctor.preflight import examine
from chainrule.errors import ChainruleError
from chainrule.models import GPT, make
from chainrule.models.microbatch import Batch
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig, Trainer
from chainrule.train.log import read
from tests.train.helpers import corpus, new_run
from tests.train.test_loop import Told

TEXT = "the quick brown fox jumps over the lazy dog. " * 60
TOKENIZER = CharTokenizer.train(TEXT)
IDS = TOKENIZER.encode(TEXT)
SIZES: dict[str, Any] = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12}


def trainer_of(family: str = "gpt", batches: Any = None, **options: Any) -> Trainer:
    cr.seed(1)
    model = make(family, **SIZES, vocab_size=TOKENIZER.vocab_size)
    batches = batches or Batches(IDS, batch_size=6, block_size=12)
    defaults = {"max_steps": 12, "batch_size": 6, "lr": 1e-2, "warmup": 2, "eval_every": 4}
    return Trainer(model, batches, [batches.batch(99)], TrainConfig(**defaults | options), TOKENIZER)


def id_of(letter: str) -> int:
    return int(TOKENIZER.encode(letter)[0])


def weight(trainer: Trainer, name: str) -> Any:
    return dict(trainer.model.named_parameters())[name].array


def said(trainer: Trainer) -> str:
    told = Told()
    before = trainer.model.state()
    with pytest.raises(ChainruleError) as error:
        trainer.run(told)
    after = trainer.model.state()
    assert all(
        np.array_equal(before[name], after[name], equal_nan=True) for name in before
    )  # nothing has changed
    assert told.notes[-1]["finding"]["about"] == "not finite" and told.notes[-1]["step"] == 1
    return str(error.value)


# -- NaN and infinity -------------------------------------------------------------------------------------------


class Untied(GPT):
    """The embedding is read by the input alone, so that a bad row of it shows only where its token stands."""

    def loss(self, inputs: Any, targets: Any) -> Tensor:
        hidden = self.hidden(inputs)
        return cr.ops.cross_entropy(
            cr.ops.linear(hidden, np.ones((TOKENIZER.vocab_size, 16), np.float32)), targets=targets
        )


@pytest.mark.parametrize("letter", ["q", "z"])
def test_a_nan_in_a_row_of_the_embedding(letter: str) -> None:
    trainer = trainer_of()
    trainer.model = trainer.step.model = Untied(trainer.model.config)
    weight(trainer, "wte.weight")[id_of(letter), 3] = math.nan
    while letter not in TOKENIZER.decode(trainer.batches.batch(trainer.steps)[0].reshape(-1)):
        trainer.steps += 1
    inputs, targets = trainer.batches.batch(trainer.steps)
    origin = search(trainer.model, Batch(inputs, targets))
    row, position = (int(i) for i in np.argwhere(inputs == id_of(letter))[0])
    assert origin is not None and origin.weight is not None
    assert (origin.weight.name, origin.weight.index) == ("wte.weight", (id_of(letter), 3))
    assert (origin.entry.name, origin.row, origin.position) == ("wte.embedding", row, position)
    with pytest.raises(ChainruleError) as error:
        trainer.update(1e-3)
    for expected in (
        f"wte.weight[{id_of(letter)}, 3] is nan (the row of token {letter!r})",
        f"first met in wte.embedding, in row {row}, position {position}, token {letter!r}",
        "the step was not taken",
    ):
        assert expected in str(error.value)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_infinite_weight_in_a_layer(recompute: bool, accumulate: int) -> None:
    trainer = trainer_of(recompute=recompute, accumulate=accumulate)
    weight(trainer, "h.1.mlp.c_fc.weight")[5, 2] = math.inf
    message = said(trainer)
    assert "h.1.mlp.c_fc.weight[5, 2] is inf" in message
    assert "first met in h.1.mlp.c_fc.linear, in row 0, position 0" in message


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_overflow_is_blamed_on_the_op_the_row_and_the_token(accumulate: int) -> None:
    """A token whose embedding is finite, but too long for the first norm."""
    trainer = trainer_of(accumulate=accumulate)
    weight(trainer, "wte.weight")[id_of("j")] = 3e38
    inputs, _ = trainer.batches.batch(0)
    row, position = (int(i) for i in np.argwhere(inputs == id_of("j"))[0])
    message = said(trainer)
    assert "h.0.ln_1.layernorm is the first op that makes nan of finite numbers" in message
    assert f"in row {row}, position {position}, token 'j'" in message
    assert "jump" in message or "fox j" in message  # the text around it


def test_a_loss_that_is_one_number_is_searched_by_halves() -> None:
    """Of a fused loss there is no row to read off; one target is made impossible."""
    trainer = trainer_of()

    class Fussy(GPT):
        def loss(self, inputs: Any, targets: Any) -> Tensor:
            logits = cr.ops.linear(self.hidden(inputs), self.wte.weight)
            asked = np.where(np.asarray(targets) == id_of("z"), -np.inf, 0.0).astype(np.float32)
            return cr.ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE) + asked.sum()

    model = Fussy(trainer.model.config)
    inputs, targets = next(b for b in map(trainer.batches.batch, range(50)) if (b[1] == id_of("z")).any())
    asked = np.argwhere(targets == id_of("z"))[0]
    # The sum is an argument that is not finite itself: no op is to blame, but the loss of the row is.
    assert search(model, Batch(inputs, targets)) is None
    overflow = np.float32(3e38)

    class Overflowing(GPT):
        def loss(self, inputs: Any, targets: Any) -> Tensor:
            loss = cr.ops.cross_entropy(
                cr.ops.linear(self.hidden(inputs), self.wte.weight), targets=targets, ignore_index=IGNORE
            )
            return loss * (overflow if (np.asarray(targets) == id_of("z")).any() else 1.0)

    origin = search(Overflowing(trainer.model.config), Batch(inputs, targets))
    assert origin is not None and origin.entry.name == "mul"
    assert (origin.row, origin.position) == (int(asked[0]), int(asked[1]))


def test_a_gradient_that_is_not_finite_while_the_loss_is() -> None:
    trainer = trainer_of()

    class Steep(GPT):
        def hidden(self, ids: Any) -> Tensor:
            return cr.ops.sqrt(super().hidden(ids) * 0.0) + super().hidden(ids)  # the slope of a root at 0

    trainer.model = trainer.step.model = Steep(trainer.model.config)
    inputs, targets = trainer.batches.batch(0)
    origin = search(trainer.model, Batch(inputs, targets))
    assert origin is not None and (origin.phase, origin.entry.name) == ("backward", "mul")
    assert (origin.row, origin.position) == (0, 0)


def test_a_search_changes_nothing_and_finds_nothing_in_a_sound_model() -> None:
    trainer = trainer_of()
    trainer.update(1e-3)
    data, grad = (
        block.copy() for block in (trainer.step.optimizer.params.data, trainer.step.optimizer.params.grad)
    )
    assert search(trainer.model, Batch(*trainer.batches.batch(1))) is None
    assert (trainer.step.optimizer.params.data == data).all() and (
        trainer.step.optimizer.params.grad == grad
    ).all()


def test_pairs_name_the_side() -> None:
    cr.seed(0)
    model = make("seq2seq", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=12)
    batches = PairBatches([[4, 5, 6], [7, 8]], [[9, 10], [11, 4]], start=1, end=2, batch_size=2, block_size=8)
    work = Batch(*batches.batch(0))
    for name, param in model.named_parameters():
        if "decoder" in name and name.endswith("weight") and param.array.ndim == 2 and "embed" not in name:
            param.array[0, 0] = math.inf
            break
    origin = search(model, work)
    assert origin is not None and origin.weight is not None and origin.weight.name == name
    assert "decoder" in origin.entry.name and origin.row == 0
    assert list(origin.ids) == work.inputs.target[0].tolist()


# -- while it trains --------------------------------------------------------------------------------------------


def doctor_of(**options: Any) -> Doctor:
    return Doctor(TrainConfig(**options), choices=65)


def noise(n: int, spread: float = 0.05) -> Any:
    return np.random.default_rng(0).normal(0, spread, n)


def test_a_spike_is_said_once_and_again_when_it_has_passed() -> None:
    doctor = doctor_of()
    losses = 2.0 + noise(500)
    losses[200:205] = 5.0
    losses[400] = 5.0
    found = [(i, f) for i, loss in enumerate(losses) for f in doctor.step(float(loss), 0.5)]
    assert [i for i, _ in found] == [200, 400]
    finding = found[0][1]
    assert finding.about == "loss spike" and "loss 5.000" in finding.measured and "lr" in finding.advice


def test_a_falling_loss_is_no_spike() -> None:
    losses = 4.0 * np.exp(-np.arange(600) / 200) + 1 + noise(600, 0.1)
    doctor = doctor_of()
    assert not [f for loss in losses for f in doctor.step(float(loss), 0.5)]


def test_clipping_of_every_step() -> None:
    doctor = doctor_of(clip=1.0)
    found = [f for _ in range(500) for f in doctor.step(2.0, 7.5)]
    assert [f.about for f in found] == ["clipping"] and "7.5" in found[0].measured
    rarely = doctor_of(clip=1.0)
    assert not [f for i in range(500) for f in rarely.step(2.0, 7.5 if i % 10 else 0.5)]


def test_overfitting_is_validation_that_rises_while_training_falls() -> None:
    doctor = doctor_of()
    validations = [2.0, 1.8, 1.7, 1.75, 1.8, 1.9, 2.0]
    found = []
    for number, validation in enumerate(validations):
        for _ in range(10):
            doctor.step(1.9 - 0.2 * number, 0.5)
        found += [(number, f) for f in doctor.evaluation(10 * (number + 1), validation)]
    assert [(n, f.about) for n, f in found] == [(5, "overfitting")]
    assert "1.700 at step 30" in found[0][1].measured


def test_overfitting_of_a_tiny_text(tmp_path: Path) -> None:
    text = "".join(np.random.default_rng(0).choice(list("abcdefgh"), 400))  # nothing to learn but by heart
    (tmp_path / "tiny.txt").write_text(text)
    config = TrainConfig(max_steps=300, batch_size=8, lr=1e-2, warmup=5, eval_every=25)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 32, "block_size": 16}
    run = cr.runs.Run.new(tmp_path / "run", cr.data.load(tmp_path / "tiny.txt"), config, **size)
    run.train()
    findings = [r["finding"] for r in read(run.files.log) if "finding" in r]
    assert [f["about"] for f in findings].count("overfitting") == 1


def test_a_rate_that_is_too_high(tmp_path: Path) -> None:
    run = new_run(tmp_path, lr=3.0, max_steps=150, eval_every=50, warmup=60, schedule="constant")
    run.train()
    found = [r["finding"] for r in read(run.files.log) if "finding" in r]
    about = {f["about"] for f in found}
    assert about & {"loss spike", "loss curve"}
    assert any("lr" in f["advice"] or "learning rate" in f["advice"] for f in found)


def test_layers_that_no_longer_learn() -> None:
    trainer = trainer_of(max_steps=4)
    weight(trainer, "h.1.mlp.c_fc.weight")[...] = 0
    dict(trainer.model.named_parameters())["h.1.mlp.c_fc.bias"].array[
        ...
    ] = -100  # gelu is 0, and so is its slope
    told = Told()
    trainer.run(told)
    found = [note["finding"] for note in told.notes if "finding" in note]
    dead = next(f for f in found if f["about"] == "gradients")
    assert "h.1.mlp.c_fc.weight" in dead["measured"] or "h.1.mlp" in dead["measured"]


def test_updates_too_small_to_matter() -> None:
    trainer = trainer_of(lr=1e-9, max_steps=8)
    told = Told()
    trainer.run(told)
    found = [note["finding"] for note in told.notes if "finding" in note]
    assert [f["about"] for f in found] == ["updates"] and "Below 1e-05" in found[0][
        "meaning"
    ]  # once, not twice


def test_a_resumed_run_says_what_an_unbroken_one_says(tmp_path: Path) -> None:
    """The doctor's memory is the log: losses, norms, evaluations, and what was said."""
    settings: dict[str, Any] = {"lr": 1e-9, "max_steps": 30, "save_every": 10}
    whole = new_run(tmp_path, "whole", **settings)
    whole.train()
    parts = new_run(tmp_path, "parts", **settings)
    stop = parts.trainer.finished
    assert not stop
    real = parts.trainer.update

    def update(lr: float) -> tuple[float, float]:
        if parts.trainer.steps == 15:
            raise KeyboardInterrupt
        return real(lr)

    parts.trainer.update = update  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        parts.train()
    again = cr.runs.Run.resume(parts.folder)
    again.train()

    def records(folder: Path) -> list[Any]:
        return [(r["step"], r.get("loss"), r.get("finding")) for r in read(folder / "log.jsonl")]

    assert records(whole.folder) == records(again.folder)
    assert sum("finding" in r for r in read(again.files.log)) == 1


# -- before the first step --------------------------------------------------------------------------------------


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.about: finding for finding in findings}


def test_a_sound_start() -> None:
    trainer = trainer_of(max_steps=2000)
    weights, grad = trainer.step.optimizer.params.data.copy(), trainer.step.optimizer.params.grad.copy()
    found = examine(trainer)
    assert {f.level for f in found} == {"ok"}
    assert by_name(found).keys() >= {"targets", "vocabulary", "unused tokens", "initial loss", "forecast"}
    assert "2,000 steps" in by_name(found)["forecast"].measured
    assert (trainer.step.optimizer.params.data == weights).all() and (
        trainer.step.optimizer.params.grad == grad
    ).all()


class Planted:
    """Batches with a fault."""

    def __init__(self, change: Any) -> None:
        self.inner, self.change = Batches(IDS, batch_size=6, block_size=12), change

    tokens = 72

    def batch(self, step: int) -> Any:
        inputs, targets = (a.copy() for a in self.inner.batch(step))
        self.change(inputs, targets)
        return inputs, targets


def test_rows_without_a_target() -> None:
    def empty(inputs: Any, targets: Any) -> None:
        targets[2] = IGNORE

    finding = by_name(examine(trainer_of(batches=Planted(empty))))["targets"]
    assert (
        finding.level == "problem"
        and "8 of 48 rows" in finding.measured
        and "first row 2 of step 0" in finding.measured
    )


def test_documents_that_are_cut() -> None:
    documents = Encoded.of([[1, 2, 3]] * 6 + [list(range(1, 20))] * 4)
    finding = by_name(examine(trainer_of(batches=DocumentBatches(documents, batch_size=6, block_size=12))))[
        "length"
    ]
    assert finding.level == "note" and "40.0%" in finding.measured
    pairs = PairBatches([[4] * 20, [5]], [[6], [7]], start=1, end=2, batch_size=2, block_size=8)
    assert pairs.truncated == 0.5


def test_ids_beyond_the_vocabulary() -> None:
    wrong = IDS.copy()
    wrong[100] = 999
    finding = by_name(examine(trainer_of(batches=Batches(wrong, batch_size=6, block_size=12))))["vocabulary"]
    assert finding.level == "problem" and "id 999" in finding.measured


def test_a_tokenizer_with_tokens_that_never_occur() -> None:
    trainer = trainer_of()
    trainer.tokenizer = CharTokenizer.train(TEXT + "ABCDEFGHIJKLMNOPQRST")
    cr.seed(0)
    trainer.model = make("gpt", **SIZES, vocab_size=trainer.tokenizer.vocab_size)
    trainer.batches = Batches(trainer.tokenizer.encode(TEXT), batch_size=6, block_size=12)
    finding = by_name(examine(trainer))["unused tokens"]
    assert finding.level == "note" and "20 of" in finding.measured and "'A', 'B'" in finding.measured


class Ending(CharTokenizer):
    special_ids = {"<|endoftext|>": 0}  # noqa: RUF012


@pytest.mark.parametrize("case", ["never", "no target", "counts"])
def test_a_stop_token_that_is_never_learnt(case: str) -> None:
    ids = IDS.copy()
    ids[ids == 0] = 1
    if case != "never":
        ids[::7] = 0
    source: Any = Planted(lambda inputs, targets: targets.__setitem__(targets == 0, IGNORE))
    source.inner, source.ids = Batches(ids, batch_size=6, block_size=12), ids
    trainer = trainer_of(batches=source if case == "no target" else source.inner)
    trainer.tokenizer = Ending.train(TEXT)
    finding = by_name(examine(trainer))["stop token"]
    assert finding.level == {"never": "note", "no target": "problem", "counts": "ok"}[case]


def test_a_bad_first_loss() -> None:
    trainer = trainer_of()
    weight(trainer, "wte.weight")[...] *= 300
    finding = by_name(examine(trainer))["initial loss"]
    assert finding.level == "problem" and "ln" in finding.measured


def test_a_run_begins_with_what_is_not_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = corpus(tmp_path)
    tokenizer = CharTokenizer.train(data.text + "".join(map(chr, range(0x4E00, 0x4E40))))
    config = TrainConfig(max_steps=3, batch_size=4, eval_every=3)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    run = cr.runs.Run.new(tmp_path / "run", data, config, tokenizer=tokenizer, **size)
    run.train()
    first = json.loads(run.files.log.read_text().splitlines()[0])
    assert first["step"] == 0 and first["finding"]["about"] == "unused tokens"
    assert "note: unused tokens: 65 of" in capsys.readouterr().out


def test_the_doctor_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = new_run(tmp_path, "watched")
    watched.train()
    monkeypatch.setattr("chainrule.runs.run.examine", lambda *_, **__: [])
    for name in ("step", "evaluation", "weights"):
        monkeypatch.setattr(Doctor, name, lambda *_: [])
    alone = new_run(tmp_path, "alone")
    alone.train()
    for saved in ("model", "optimizer"):
        one, two = (
            (run.folder / f"checkpoints/step_000030/{saved}.safetensors").read_bytes()
            for run in (watched, alone)
        )
        assert one == two


def test_labeled_texts_that_are_cut() -> None:
    special = SpecialIds(1, 2, 3)
    batches = LabeledBatches([[4] * 20, [5, 6]], [0, 1], special=special, batch_size=2, block_size=8)
    assert batches.truncated == 0.5 and set(batches.ids.tolist()) == {4, 5, 6}
    cr.seed(0)
    model = make("bert-classifier", n_layer=1, n_head=2, n_embd=16, n_hidden=16, block_size=8, vocab_size=9)
    found = by_name(examine(Trainer(model, batches, [batches.batch(0)], TrainConfig(batch_size=2))))
    assert found["length"].level == "note" and "ln 2 " in found["initial loss"].measured
