"""What can be known before the first step: faults planted in the data are found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.recording import Recording
from chainrule.data import (
    Batches,
    DocumentBatches,
    Encoded,
    LabeledBatches,
    MaskedBatches,
    PairBatches,
    SpecialIds,
)
from chainrule.data.batches.padded import IGNORE
from chainrule.doctor import Code, Finding, preflight
from chainrule.models import make
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig, Trainer
from tests.doctor.helpers import IDS, SIZES, TEXT, trainer_of, weight
from tests.runs.helpers import corpus


def by_code(findings: list[Finding]) -> dict[Code | None, Finding]:
    return {finding.code: finding for finding in findings}


def test_a_sound_start() -> None:
    trainer = trainer_of(max_steps=2000)
    weights, grad = trainer.step.optimizer.params.data.copy(), trainer.step.optimizer.params.grad.copy()
    found = trainer.examine()
    assert {f.level for f in found} == {"ok"}
    assert by_code(found).keys() >= {
        Code.TARGETS_OK,
        Code.VOCABULARY_OK,
        Code.UNUSED_TOKENS_OK,
        Code.INITIAL_LOSS_OK,
        Code.FORECAST,
    }
    assert "2,000 steps" in by_code(found)[Code.FORECAST].measured
    assert (trainer.step.optimizer.params.data == weights).all() and (
        trainer.step.optimizer.params.grad == grad
    ).all()


def test_the_forecast_is_that_of_the_steps_that_will_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled steps are measured as replays; weights and the training that follows have the same bits."""
    replays, replay = [], Recording.replay
    monkeypatch.setattr(Recording, "replay", lambda self: replays.append(self) or replay(self))
    monkeypatch.setattr(preflight, "LONG", 60.0)  # as on a fast machine
    ends = []
    for compiled, looked_at in ((True, True), (False, True), (True, False)):
        trainer = trainer_of(compile=compiled)
        weights = trainer.model.parameters().data
        before = weights.tobytes()
        if looked_at:
            replays.clear()
            trainer.examine()
            assert (len(replays) == 4) == compiled  # one is compared, three are timed
        assert weights.tobytes() == before
        for _ in range(6):
            trainer.update(1e-2)
        ends.append(weights.tobytes())
    assert ends[0] == ends[1] == ends[2] != before


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

    finding = by_code(trainer_of(batches=Planted(empty)).examine())[Code.TARGETS_MISSING]
    assert (
        finding.level == "problem"
        and "8 of 48 rows" in finding.measured
        and "first row 2 of step 0" in finding.measured
    )


@pytest.mark.parametrize("planted", [False, True])
def test_masked_rows_without_a_target(planted: bool) -> None:
    """In a short row chance may select no word; where more rows are without a target it is a fault."""
    sizes = {**SIZES, "block_size": 16, "vocab_size": 40}
    cr.seed(0)
    model = make("bert", **sizes)
    text = np.random.default_rng(0).integers(4, 40, 4000)
    source = MaskedBatches(
        Encoded.of([text]), special=SpecialIds(1, 2, 3), vocab_size=40, batch_size=32, block_size=16
    )
    inner = source.batch

    def batch(step: int) -> Any:
        inputs, targets = inner(step)
        targets[:: 4 if planted else 99, :] = IGNORE
        return inputs, targets

    source.batch = batch  # type: ignore[method-assign]
    trainer = Trainer(model, source, [], TrainConfig())
    (finding,) = (f for f in trainer.examine() if f.about == "targets")
    rows = int(finding.measured.split()[0])
    assert rows > 0.05 * 256, "a short row has often no target"
    expected = (Code.TARGETS_MISSING, "problem") if planted else (Code.TARGETS_CHANCE, "ok")
    assert (finding.code, finding.level) == expected


def test_documents_that_are_cut() -> None:
    documents = Encoded.of([[1, 2, 3]] * 6 + [list(range(1, 20))] * 4)
    finding = by_code(trainer_of(batches=DocumentBatches(documents, batch_size=6, block_size=12)).examine())[
        Code.LENGTH_CUT
    ]
    assert finding.level == "note" and "40.0%" in finding.measured
    pairs = PairBatches([[4] * 20, [5]], [[6], [7]], start=1, end=2, batch_size=2, block_size=8)
    assert pairs.truncated == 0.5


def test_ids_beyond_the_vocabulary() -> None:
    wrong = IDS.copy()
    wrong[100] = 999
    finding = by_code(trainer_of(batches=Batches(wrong, batch_size=6, block_size=12)).examine())[
        Code.VOCABULARY_ID
    ]
    assert finding.level == "problem" and "id 999" in finding.measured


def test_a_tokenizer_with_tokens_that_never_occur() -> None:
    trainer = trainer_of()
    trainer.tokenizer = CharTokenizer.train(TEXT + "ABCDEFGHIJKLMNOPQRST")
    cr.seed(0)
    trainer.model = make("gpt", **SIZES, vocab_size=trainer.tokenizer.vocab_size)
    trainer.batches = Batches(trainer.tokenizer.encode(TEXT), batch_size=6, block_size=12)
    finding = by_code(trainer.examine())[Code.UNUSED_TOKENS]
    assert finding.level == "note" and "20 of" in finding.measured and "'A', 'B'" in finding.measured


STOP = {Code.STOP_TOKEN_OK, Code.STOP_TOKEN_MISSING, Code.STOP_TOKEN_IGNORED}


class Ending(CharTokenizer):
    special_ids = {"<|endoftext|>": 0}  # noqa: RUF012


@pytest.mark.parametrize("case", ["never", "no target", "counts"])
def test_a_stop_token_that_is_never_learned(case: str) -> None:
    ids = IDS.copy()
    ids[ids == 0] = 1
    if case != "never":
        ids[::7] = 0
    source: Any = Planted(lambda inputs, targets: targets.__setitem__(targets == 0, IGNORE))
    source.inner, source.ids = Batches(ids, batch_size=6, block_size=12), ids
    trainer = trainer_of(batches=source if case == "no target" else source.inner)
    trainer.tokenizer = Ending.train(TEXT)
    (finding,) = (f for f in trainer.examine() if f.code in STOP)
    assert (finding.code, finding.level) == {
        "never": (Code.STOP_TOKEN_MISSING, "note"),
        "no target": (Code.STOP_TOKEN_IGNORED, "problem"),
        "counts": (Code.STOP_TOKEN_OK, "ok"),
    }[case]


def test_one_of_several_stop_tokens_is_enough() -> None:
    """As in conversations, whose answers have an end of their own beside that of texts."""
    trainer = trainer_of(batches=Batches(np.where(IDS == 0, 1, IDS), batch_size=6, block_size=12))
    trainer.tokenizer = Ending.train(TEXT)
    trainer.tokenizer.special_ids = {"<|endoftext|>": 0, "<|end|>": 1}  # type: ignore[misc]
    (finding,) = (f for f in trainer.examine() if f.code in STOP)
    assert finding.code is Code.STOP_TOKEN_OK and "<|end|>" in str(finding)


def test_a_bad_first_loss() -> None:
    trainer = trainer_of()
    weight(trainer, "wte.weight")[...] *= 300
    finding = by_code(trainer.examine())[Code.INITIAL_LOSS_HIGH]
    assert finding.level == "problem" and "ln" in finding.measured


def test_a_run_begins_with_what_is_not_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = corpus(tmp_path)
    tokenizer = CharTokenizer.train(data.text + "".join(map(chr, range(0x4E00, 0x4E40))))
    config = TrainConfig(max_steps=3, batch_size=4, eval_every=3)
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    run = cr.runs.Run.new(tmp_path / "run", data, config, tokenizer=tokenizer, **size)
    run.train()
    first = json.loads(run.files.log.read_text().splitlines()[0])
    assert first["step"] == 0 and first["finding"]["code"] == Code.UNUSED_TOKENS
    assert "note: unused tokens: 65 of" in capsys.readouterr().out


def test_labeled_texts_that_are_cut() -> None:
    special = SpecialIds(1, 2, 3)
    batches = LabeledBatches([[4] * 20, [5, 6]], [0, 1], special=special, batch_size=2, block_size=8)
    assert batches.truncated == 0.5 and set(batches.ids.tolist()) == {4, 5, 6}
    cr.seed(0)
    model = make("bert-classifier", n_layer=1, n_head=2, n_embd=16, n_hidden=16, block_size=8, vocab_size=9)
    found = by_code(Trainer(model, batches, [batches.batch(0)], TrainConfig(batch_size=2)).examine())
    assert found[Code.LENGTH_CUT].level == "note" and "ln 2 " in found[Code.INITIAL_LOSS_OK].measured
