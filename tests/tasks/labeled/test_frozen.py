"""A head on a frozen body learns from texts that the body has read once."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.models import BERT, make
from chainrule.runs import Run
from chainrule.tasks.labeled.classification import ClassificationTask
from chainrule.train import TrainConfig

TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
PASSES, BATCH = 5, 8


def reviews(folder: Path) -> Path:
    rows = [f"{mood} {i} film\t{mood}" for i in range(40) for mood in ("good", "bad")]
    (path := folder / "reviews.tsv").write_text("text\tlabel\n" + "".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize("size", [{}, {"pooling": "mean"}, {"pooling": "max", "buckets": 64}])
def test_the_body_reads_each_text_once_and_the_head_sees_what_it_would_read(
    size: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ClassificationTask.of(ClassificationTask.find(reviews(tmp_path)))
    body = make("bert", **TINY, vocab_size=task.tokenizer.vocab_size, dropout=0.5)
    texts, steps = len(task.training), PASSES * len(task.training) // BATCH
    config = TrainConfig(
        max_steps=steps, batch_size=BATCH, eval_every=steps, warmup=0, lr=0.05, freeze="body"
    )
    read: list[np.ndarray] = []
    forward = BERT.forward

    def counted(self: BERT, ids: np.ndarray, *more: Any) -> Any:
        read.extend(np.asarray(ids))
        return forward(self, ids, *more)

    monkeypatch.setattr(BERT, "forward", counted)
    run = Run.new(
        tmp_path / "run", task.corpus, config, "bert-classifier", task.tokenizer, body, dropout=0.0, **size
    )
    assert len(read) == texts + len(task.validation)
    run.train()
    assert len(read) < texts + 2 * len(task.validation)  # and a few tokens that the doctor tries
    monkeypatch.undo()
    model = run.model.eval()
    for inputs, _ in run.trainer.eval_batches:
        assert np.array_equal(model(*inputs).numpy(), model(*inputs[:3]).numpy())
    assert model.mean_loss(run.trainer.eval_batches) < math.log(2)


def test_training_goes_on_after_a_stop_with_the_same_bits(tmp_path: Path) -> None:
    corpus = ClassificationTask.find(reviews(tmp_path))
    tokenizer = ClassificationTask.of(corpus).tokenizer
    body = make("bert", **TINY, vocab_size=tokenizer.vocab_size)
    config = TrainConfig(max_steps=6, batch_size=BATCH, eval_every=3, save_every=3, warmup=0, freeze="body")
    run = Run.new(tmp_path / "run", corpus, config, "bert-classifier", tokenizer, body)
    run.train()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step_000006")
    again = Run.resume(tmp_path / "run")
    assert again.trainer.steps == 3 and again.model.frozen
    again.train()
    assert all(np.array_equal(value, again.model.state()[name]) for name, value in run.model.state().items())


def test_all_of_the_body_is_frozen_but_what_makes_a_vector_of_cls(tmp_path: Path) -> None:
    corpus = ClassificationTask.find(reviews(tmp_path))
    tokenizer = ClassificationTask.of(corpus).tokenizer
    body = make("bert", **TINY, vocab_size=tokenizer.vocab_size, variant="electra", embedding_size=8)
    config = TrainConfig(max_steps=1, batch_size=BATCH, warmup=0, freeze="body")
    run = Run.new(tmp_path / "run", corpus, config, "bert-classifier", tokenizer, body, draft=True)
    learn = {name for name, param in run.model.named_parameters() if param.requires_grad}
    head = {f"{part}.{name}" for part in ("bert.pooler.dense", "classifier") for name in ("weight", "bias")}
    assert learn == head and any("embeddings_project" in name for name, _ in run.model.named_parameters())
