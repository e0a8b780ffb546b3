"""Classifiers by command: settings that suit the data, the baseline to beat, the best step, a frozen body."""

from __future__ import annotations

import random
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.data import LabelCorpus
from chainrule.distributed import communicator
from chainrule.models.suited import for_bag_of_words, for_bert
from chainrule.runs import Run, load, replay
from chainrule.tasks.labeled.classification import ClassificationTask, training_texts
from chainrule.train import Result, Trainer
from chainrule.train.log import read
from tests.cli.commands.train.test_family_tasks import refused, result

TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--n-hidden", "16", "--block-size", "16"]


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts whose label is the order of two words."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    rows = ["text\tlabel\n"]
    for number in range(400):
        words = rng.choices(["the", "film", "was", "a", f"n{number}"], k=4)
        pair = ("not", "dull") if number % 2 else ("dull", "not")
        words[2:2] = pair
        rows.append(f"{' '.join(words)}\t{'good' if number % 2 else 'bad'}\n")
    Path("reviews.tsv").write_text("".join(rows))


def test_a_bag_of_words_labels_texts(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "bow-classifier", "reviews.tsv", "--out", "bow"])
    out = capsys.readouterr().out
    assert "chosen for 338 texts to train on: l2 0.000147929, max_steps " in out
    assert "accuracy 100.0 % at step" in out and "baseline" not in out
    assert result("eval", "bow", capsys=capsys)["accuracy"] == 1.0
    said = result("sample", "bow", "--prompt", "a film was dull not new", capsys=capsys)
    assert said["label"] == "bad" and said["labels"]["bad"] == said["probability"] > 0.5
    main(["sample", "bow", "--prompt", ""])  # no word that it knows: the bias decides
    assert capsys.readouterr().out.split()[0] in ("good", "bad")
    before = Path("bow/log.jsonl").read_bytes()
    main(["train", "bow-classifier", "--resume", "bow"])
    assert "the run is finished" in capsys.readouterr().out and Path("bow/log.jsonl").read_bytes() == before
    kept = load("bow")[0]
    assert kept.state()["bag.idf"].max() > kept.state()["bag.idf"].min() >= 1
    assert "Hugging Face has no model like this BagOfWords" in refused(
        "export", "bow", "--out", "hub", capsys=capsys
    )
    assert "--tokenizer is char, which has no words" in refused(
        "train", "bow-classifier", "reviews.tsv", "--tokenizer", "char", capsys=capsys
    )


def test_single_words_do_not_tell_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    found = result("train", "bow-classifier", "reviews.tsv", "--ngrams", "1", "--out", "bow", capsys=capsys)
    assert found["best_score"] < 0.8


def test_every_classifier_is_told_its_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "bert-classifier", "reviews.tsv", *TINY, "--max-steps", "3", "--out", "bert"])
    out = capsys.readouterr().out
    assert "step      0   baseline to beat, bow-classifier: accuracy 100.0 %, F1 100.0 %, loss 0." in out
    assert (
        "; bow-classifier: accuracy 100.0 %, which is better: train bow-classifier, or begin with a body"
        in out
    )
    (record,) = (r["baseline"] for r in read(Path("bert/log.jsonl")) if "baseline" in r)
    assert record["accuracy"] == 1.0 and record["nats_per_label"] < 0.3


def test_the_baseline_is_what_its_own_command_gives_at_its_best_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(0)  # a third of the labels are wrong: a bag that learns them too gets worse
    rows = (f"{('good', 'bad')[i % 2]} {rng.integers(200)}\t{(i + (i % 3 == 0)) % 2}" for i in range(300))
    Path("noisy.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    main(["train", "bert-classifier", "noisy.tsv", *TINY, "--max-steps", "1", "--out", "bert"])
    capsys.readouterr()
    (record,) = (r["baseline"] for r in read(Path("bert/log.jsonl")) if "baseline" in r)
    bow = result("train", "bow-classifier", "noisy.tsv", "--out", "bow", capsys=capsys)
    assert (
        bow["best_step"] < bow["steps"]
    )  # the same texts are held back, and the command gives the same model
    assert record["nats_per_label"] == pytest.approx(bow["best_loss"], rel=1e-5)
    assert record["accuracy"] == bow["best_score"]


def test_the_first_rank_trains_the_baseline_apart_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not train it, so a sum over ranks would wait for them forever."""
    alone, run = [], Trainer.run

    def watched(self: Trainer, *args: Any) -> Result:
        alone.append(bool(communicator._sharing_out))
        return run(self, *args)

    monkeypatch.setattr(Trainer, "run", watched)
    main(["train", "bert-classifier", "reviews.tsv", *TINY, "--max-steps", "1", "--out", "bert"])
    assert alone == [True, False]  # the baseline, then the run itself


def test_the_baseline_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    short = ["train", "bert-classifier", "reviews.tsv", *TINY, "--max-steps", "3", "--seed", "5", "--out"]
    main([*short, "with"])
    monkeypatch.setattr(ClassificationTask, "baseline", "")
    main([*short, "without"])
    one, other = (load(run)[0].state() for run in ("with", "without"))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_is_given_is_not_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--dropout", "0.2", "--max-steps", "2", "--batch-size", "8"]
    main(["train", "bert-classifier", "reviews.tsv", *TINY, *given, "--out", "bert"])
    out = capsys.readouterr().out
    chosen = next(line for line in out.splitlines() if line.startswith("chosen for 338 texts"))
    assert "lr 0.0005" in chosen and not any(name in chosen for name in ("n_layer", "dropout", "max_steps"))
    settings = tomllib.loads(Path("bert/config.toml").read_text())
    assert (settings["dropout"], settings["max_steps"], settings["batch_size"], settings["n_embd"]) == (
        0.2,
        2,
        8,
        16,
    )
    main(["train", "bert-classifier", "--config", "bert/config.toml", "--out", "again"])
    assert "chosen" not in capsys.readouterr().out
    one, other = (load(run)[0].state() for run in ("bert", "again"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    main(["train", "bert-classifier", "--print-config", "--dropout", "0.2"])
    printed = tomllib.loads(capsys.readouterr().out)
    assert printed["dropout"] == 0.2 and not {"max_steps", "lr", "n_layer"} & printed.keys()


def test_a_classifier_from_scratch_has_a_bag_of_words_unless_its_shape_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = ["--max-steps", "2", "--eval-every", "2"]  # the checkpoint before the first step stays
    main(["train", "bert-classifier", "reviews.tsv", *steps, "--out", "new"])
    assert (
        "n_layer 1, n_head 4, n_embd 128, n_hidden 512, dropout 0.3, buckets 65,536"
        in capsys.readouterr().out
    )
    model, tokenizer = load("new")
    assert model.bag.weight.numpy().any() and model.bag.idf.max() > 5  # learned, and counted
    assert tokenizer.decode(tokenizer.encode("the zebra film")) == "the [UNK] film"
    said = result("sample", "new", "--prompt", "a dull film", capsys=capsys)
    assert said["label"] in ("good", "bad")
    again = Run.resume("new")
    assert np.array_equal(again.model.bag.idf, model.bag.idf)
    shutil.rmtree("new/checkpoints/step_000000")
    assert replay("new", 2).same  # what was counted is counted again
    main(["train", "bert-classifier", "reviews.tsv", "--max-steps", "1", "--buckets", "0", "--out", "plain"])
    main(["export", "plain", "--out", "hub"])  # as Hugging Face's
    assert not hasattr(load("hub")[0], "bag")


def test_settings_follow_the_number_of_texts(tmp_path: Path) -> None:
    few, many = for_bert(1_000), for_bert(100_000)
    assert few.sizes["dropout"] > many.sizes["dropout"]
    assert few.sizes["n_layer"] < many.sizes["n_layer"]
    assert few.training["max_steps"] * 32 / 1_000 > many.training["max_steps"] * 32 / 100_000
    tuned = for_bert(1_000, trained=True)
    assert tuned.sizes == {} and tuned.training["lr"] < few.training["lr"]
    assert for_bag_of_words(1_000).sizes["l2"] > for_bag_of_words(100_000).sizes["l2"]
    corpus = ClassificationTask.find(tmp_path / "reviews.tsv")
    run = Run.new(tmp_path / "run", corpus, model="bow-classifier", draft=True)  # from Python too
    assert run.trainer.config.max_steps == for_bag_of_words(training_texts(corpus)).training["max_steps"]
    assert isinstance(corpus, LabelCorpus) and not (tmp_path / "run").exists()


def test_the_best_is_that_of_the_highest_accuracy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found() -> Iterator[float]:
        yield from (0.5, 0.9, 0.9, 0.7)

    for keep, used in (("best", 2), ("last", 4)):
        accuracies = found()
        with monkeypatch.context() as patch:
            patch.setattr(ClassificationTask, "scores", lambda *_, a=accuracies: {"accuracy": next(a)})
            patch.setattr(ClassificationTask, "baseline", "")
            steps = ["--max-steps", "4", "--eval-every", "1", "--keep", keep, "--lr", "0.01", "--warmup", "0"]
            main(["train", "bert-classifier", "reviews.tsv", *TINY, *steps, "--out", keep])
        said = capsys.readouterr().out
        validations = [r["validation"] for r in read(Path(keep, "log.jsonl")) if "validation" in r]
        best = 2 if validations[1] < validations[2] else 3  # equal accuracies: the lower loss
        used = best if keep == "best" else 4
        assert ("best by accuracy at step" in said) == (keep == "best") and "accuracy 90.0 % at step" in said
        main(["sample", keep, "--prompt", "film"])
        told = capsys.readouterr().err
        assert (f"{keep}: step {used} of 4, the best by its validation data" in told) == (keep == "best")
        of_step = load(Path(keep, "checkpoints", f"step_{used:06d}"))[0].state()
        assert all(np.array_equal(value, of_step[name]) for name, value in load(keep)[0].state().items())
        assert Run.resume(keep).trainer.steps == 4


def test_a_frozen_body_stays_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text(Path("reviews.tsv").read_text())
    main(["train", "bert", "text.txt", *TINY, "--max-steps", "2", "--out", "body"])
    frozen = ["train", "bert-classifier", "reviews.tsv", "--init", "body", "--freeze", "body"]
    short = ["--max-steps", "4", "--eval-every", "2", "--precision", "bf16", "--keep", "last"]
    main([*frozen, "--pooling", "mean", *short, "--out", "head"])
    assert "a tenth of" not in capsys.readouterr().out
    validations = [r["validation"] for r in read(Path("head/log.jsonl")) if "validation" in r]
    assert result("eval", "head", capsys=capsys)["nats_per_label"] == validations[-1]  # read once, or again
    before, after = load("body")[0].state(), load("head")[0].state()
    body = [name for name in after if name.startswith("bert.")]
    assert body and all(np.array_equal(before[name], after[name]) for name in body)
    assert after["classifier.bias"].any() and not any("pooler" in name for name in after)
    again = Run.resume("head")
    again.extend(6)
    again.train()
    assert all(np.array_equal(before[name], again.model.state()[name]) for name in body)
    tuned = [*frozen[:5], "--max-steps", "1", "--out", "tuned"]
    main(tuned)
    assert any(not np.array_equal(before[name], load("tuned")[0].state()[name]) for name in body)
    for start, buckets in (
        ("head", 1 << 16),
        ("tuned", 0),
    ):  # a new head has a bag of words, one that is there what it has
        more = ["--init", start, "--freeze", "body", "--max-steps", "1", "--out", f"{start}-more"]
        main(["train", "bert-classifier", "reviews.tsv", *more])
        assert load(f"{start}-more")[0].config.buckets == buckets
    assert "Hugging Face has no model like this BERTClassifier" in refused(
        "export", "head", "--out", "hub", capsys=capsys
    )
    assert "--freeze is 'body' (must be none for a new body, which knows nothing; or begin with" in refused(
        "train", "bert-classifier", "reviews.tsv", "--freeze", "body", capsys=capsys
    )
    main(["train", "gpt", "text.txt", *TINY[:4], "--n-embd", "16", "--max-steps", "1", "--out", "gpt"])
    assert "--freeze is 'body' (must be none for a GPT: only a head on a BERT has a body)" in refused(
        "train", "gpt", "text.txt", "--init", "gpt", "--freeze", "body", capsys=capsys
    )


def test_a_new_head_on_a_trained_body_counts_its_words_too(tmp_path: Path) -> None:
    corpus = ClassificationTask.find(tmp_path / "reviews.tsv")
    fresh = Run.new(tmp_path / "run", corpus, model="bert-classifier", draft=True)
    start, size = fresh.model.bert, {"buckets": fresh.model.config.buckets}
    tuned = Run.new(
        tmp_path / "x", corpus, None, "bert-classifier", fresh.tokenizer, start, draft=True, **size
    )
    assert len(np.unique(tuned.model.bag.idf)) > 1
