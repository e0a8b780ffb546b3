"""Other tasks than going on with a text: pairs, hidden words, labels; and how well they are done."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from chainrule.cli import main
from chainrule.runs import Run
from chainrule.runs.load import load, load_vectors
from chainrule.tasks.pairs.translation import translate_texts

TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "32", "--block-size", "16", "--batch-size", "32"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def result(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    main([*words, "--json"])
    return dict(json.loads(capsys.readouterr().out))


def refused(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    assert stop.value.code == 2
    return capsys.readouterr().err


def write_pairs(path: str, count: int, seed: int) -> None:
    """Words and the same words in capitals."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdef", k=rng.randint(2, 5))) for _ in range(count)]
    Path(path).write_text("".join(f"{word}\t{word.upper()}\n" for word in words))


@pytest.mark.requirement("R-338")
def test_pairs_are_learned_and_judged(capsys: pytest.CaptureFixture[str]) -> None:
    write_pairs("pairs.tsv", 900, seed=1)
    write_pairs("others.tsv", 60, seed=2)
    options = [*TINY, "--max-steps", "350", "--lr", "5e-3", "--dropout", "0", "--eval-every", "100"]
    options += ["--tokenizer", "char"]  # words of random letters
    found = result(
        "train", "seq2seq", "pairs.tsv", *options, "--sample-every", "300", "--out", "s", capsys=capsys
    )
    assert found["nats_per_token"] < 0.3 and found["bits_per_byte"] > 0
    judged = result("eval", "s", "others.tsv", capsys=capsys)
    assert judged["exact"] > 0.8 and judged["data"] == "others.tsv"
    assert judged["perplexity"] == pytest.approx(np.exp(judged["nats_per_token"]))
    others = len(set(Path("others.tsv").read_text().splitlines()))
    assert (judged["pairs"], judged["cut"]) == (others, 0)
    held_back = result("eval", "s", capsys=capsys)
    assert held_back["nats_per_token"] == pytest.approx(found["nats_per_token"], rel=1e-3)
    model, tokenizer = load("s")
    assert translate_texts(model, tokenizer, ["fade", "cab"]) == ["FADE", "CAB"]
    samples = [
        json.loads(line) for line in Path("s/log.jsonl").read_text().splitlines() if '"sample"' in line
    ]
    assert [record["step"] for record in samples] == [300] and " -> " in samples[0]["sample"]


def test_bleu_is_that_of_sacrebleu(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a translator that knows its sentences, and of the same one examined on other answers."""
    rng = random.Random(1)
    words = dict(zip("abcdef", "uvwxyz", strict=True))
    sources = sorted({" ".join(rng.choices("abcdef", k=rng.randint(4, 6))) for _ in range(200)})
    targets = [" ".join(words[word] for word in source.split()) for source in sources]
    shorter = [target.rpartition(" ")[0] if i % 3 else target for i, target in enumerate(targets)]
    for name, answers in (("pairs.tsv", targets), ("others.tsv", shorter)):
        Path(name).write_text("".join(f"{s}\t{t}\n" for s, t in zip(sources, answers, strict=True)))
    options = [*TINY, "--max-steps", "150", "--lr", "5e-3", "--dropout", "0", "--eval-every", "150"]
    options += ["--norm", "post", "--out", "s"]  # which one layer learns faster with
    main(["train", "seq2seq", "pairs.tsv", *options])
    model, tokenizer = load("s")
    written = translate_texts(model, tokenizer, sources)
    found = []
    for name, answers in (("pairs.tsv", targets), ("others.tsv", shorter)):
        found.append(result("eval", "s", name, capsys=capsys)["bleu"])
        assert found[-1] == pytest.approx(sacrebleu.corpus_bleu(written, [answers]).score, abs=1e-9)
    assert abs(found[1] - sacrebleu.corpus_bleu(shorter, [written]).score) > 1  # which is which matters
    assert found[0] > 60 and 10 < found[1] < found[0] - 1
    main(["eval", "s", "pairs.tsv"])
    assert re.search(rf"bleu +{found[0]:.4g}\n", capsys.readouterr().out)
    searched = translate_texts(model, tokenizer, sources, beam=4)
    assert searched != written
    bleu = result("eval", "s", "pairs.tsv", "--beam", "4", capsys=capsys)["bleu"]
    assert bleu == pytest.approx(sacrebleu.corpus_bleu(searched, [targets]).score, abs=1e-9)
    assert "--beam is 0 (must be" in refused("eval", "s", "--beam", "0", capsys=capsys)


def test_only_what_writes_answers_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.txt").write_text("abc " * 200)
    main(["train", "gpt", "text.txt", *TINY, "--max-steps", "1", "--out", "g"])
    said = refused("eval", "g", "--beam", "4", capsys=capsys)
    assert "--beam is given for a language model (must be an encoder-decoder: leave it out)" in said


def test_eval_says_what_it_could_not_judge(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pairs("pairs.tsv", 200, seed=1)
    main(["train", "seq2seq", "pairs.tsv", *TINY, "--tokenizer", "char", "--max-steps", "1", "--out", "s"])
    sides = ("ab", "AB"), ("a" * 16, "B" * 15), ("a" * 17, "B"), ("a", "B" * 16)  # the last two do not fit
    Path("long.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in sides))
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    found = result("eval", "s", "long.tsv", capsys=capsys)
    assert (found["pairs"], found["cut"], found["bleu"]) == (4, 2, None)
    main(["eval", "s", "long.tsv"])
    out = capsys.readouterr().out
    assert "2: a side is longer than the context" in out and "pip install 'chainrule[eval]'" in out


def write_labels(path: str, count: int) -> None:
    rng = random.Random(3)
    good, bad = ["lovely", "great", "warm"], ["awful", "dull", "cold"]
    rows = []
    for number in range(count):
        words = rng.choices(["the", "film", "was", "a", str(number)], k=5)
        words.insert(rng.randrange(6), rng.choice(good if number % 2 else bad))
        rows.append(f"{' '.join(words)}\t{number % 2}\n")
    Path(path).write_text("".join(rows))


WORDS = ["the", "film", "was", "lovely", "great", "warm", "awful", "dull", "cold"]


def test_an_encoder_begins_with_word_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    """They take the mean and the spread of new embeddings, and keep their places to each other."""
    write_labels("labels.tsv", 300)
    Path("text.txt").write_text(Path("labels.tsv").read_text() * 3)
    main(["train", "word2vec", "text.txt", "--dim", "32", "--epochs", "1", "--out", "words"])
    begin, some = ["--init-embeddings", "words"], [*TINY, "--max-steps", "1", "--lr", "1e-9", "--warmup", "0"]
    capsys.readouterr()
    main(["train", "bert", "text.txt", *some, *begin, "--out", "b"])
    assert " tokens begin with the vectors of words" in capsys.readouterr().out
    main(["train", "bert", "text.txt", *some, "--out", "new"])
    (model, tokenizer), (new, _) = load("b"), load("new")
    rows, drawn = (each.bert.embeddings.word_embeddings.weight.array for each in (model, new))
    known, vectors = load_vectors("words")
    ids = [int(tokenizer.encode(word)[0]) for word in WORDS]
    found, wanted = rows[ids], vectors[[known.index(word) for word in WORDS]]
    whole = np.corrcoef((found - found.mean(0)).ravel(), (wanted - wanted.mean(0)).ravel())[0, 1]
    assert whole > 0.999
    assert rows.std() == pytest.approx(drawn.std(), rel=0.2)
    mask = tokenizer.special_ids["[MASK]"]
    np.testing.assert_allclose(rows[mask], drawn[mask], atol=1e-7)
    assert not Run.resume("b").from_seed and "init_embeddings" in Path("b", "config.toml").read_text()
    main(["train", "bert-classifier", "labels.tsv", *some, *begin, "--out", "c"])


def test_of_words_that_are_one_token_the_first_counts() -> None:
    """Files of vectors list the frequent word first: a tokenizer without case reads "The" and "the" alike."""
    write_labels("labels.tsv", 300)
    numbers = {"the": "1 0 0 0", "film": "0 1 0 0", "was": "0 0 1 0", "The": "0 0 0 9"}
    lines = [f"{word} {' '.join([four] * 8)}\n" for word, four in numbers.items()]
    Path("vectors.txt").write_text(f"4 32\n{''.join(lines)}")
    some = [*TINY, "--max-steps", "1", "--lr", "1e-9", "--warmup", "0", "--init-embeddings", "vectors.txt"]
    main(["train", "bert", "labels.tsv", *some, "--text-column", "1", "--out", "b"])
    model, tokenizer = load("b")
    rows = model.bert.embeddings.word_embeddings.weight.array
    the, film = (rows[int(tokenizer.encode(word)[0])][:4] for word in ("the", "film"))
    assert the.argmax() == 0 and film.argmax() == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--n-embd", "16"],
            "has vectors of 8 numbers, the embeddings 16 (must be equal: train word2vec with --dim 16)",
        ),
        (["--n-embd", "8", "--init", "b"], "--init-embeddings is v.txt (must be left out with init"),
        (["--n-embd", "8", "--init-embeddings", "o.txt"], "o.txt: none of 1 words is a token"),
        (["--n-embd", "8", "--init-embeddings", "none"], "none: no such"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_labels("labels.tsv", 100)
    Path("v.txt").write_text("1 8\nfilm 1 2 3 4 5 6 7 8\n")
    Path("o.txt").write_text("1 8\nzebra 1 2 3 4 5 6 7 8\n")
    some = ["--n-layer", "1", "--n-head", "2", "--block-size", "16", "--max-steps", "1", "--text-column", "1"]
    if "--init" in words:
        main(["train", "bert", "labels.tsv", *some, "--n-embd", "8", "--out", "b"])
    err = refused(
        "train",
        "bert",
        "labels.tsv",
        *some,
        "--init-embeddings",
        "v.txt",
        *words,
        "--out",
        "x",
        capsys=capsys,
    )
    assert said in err and not Path("x").exists()


def test_a_bert_is_pretrained_then_labels_texts(capsys: pytest.CaptureFixture[str]) -> None:
    write_labels("labels.tsv", 600)
    Path("text.txt").write_text(Path("labels.tsv").read_text() * 3)
    options = [
        *TINY,
        "--n-hidden",
        "64",
        "--max-steps",
        "30",
        "--lr",
        "2e-3",
        "--eval-every",
        "30",
        "--next-sentence",
    ]
    main(["train", "bert", "text.txt", *options, "--out", "b"])
    judged = result("eval", "b", capsys=capsys)
    assert 0 < judged["accuracy"] <= 1
    with_next = np.log(judged["perplexity"]) + 0.4  # a fair coin costs ln 2
    assert "nats_per_token" not in judged and judged["nats"] > with_next
    tune = ["--max-steps", "60", "--lr", "2e-3", "--eval-every", "60", "--batch-size", "32"]
    main(["train", "bert-classifier", "labels.tsv", "--init", "b", *tune, "--out", "c"])
    assert result("eval", "c", capsys=capsys)["accuracy"] > 0.9
    assert Run.resume("c").finished
    body = {k: v for k, v in load("b")[0].state().items() if "word_embeddings" in k}
    ((name, before),) = body.items()
    assert load("c")[0].state()[name].shape == before.shape
    assert load("c")[1] == load("b")[1]
    err = refused(
        "train", "bert-classifier", "labels.tsv", "--init", "b", "--n-embd", "64", "--out", "d", capsys=capsys
    )
    assert "--n-embd is 64, in the model to begin with 32 (must be the same: leave it out)" in err
    assert not Path("d").exists()


def test_a_classifier_keeps_its_labels_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    write_labels("labels.tsv", 600)
    text = Path("labels.tsv").read_text()
    Path("named.tsv").write_text(text.replace("\t0", "\tbad").replace("\t1", "\tgood"))
    options = [*TINY, "--n-hidden", "64", "--max-steps", "60", "--lr", "2e-3", "--eval-every", "60"]
    main(["train", "bert-classifier", "named.tsv", *options, "--out", "c"])
    capsys.readouterr()
    main(["sample", "c", "--prompt", "the film was lovely"])
    label, share = capsys.readouterr().out.split()
    assert label == "good" and 0.5 < float(share) <= 1
    main(["export", "c", "--out", "hub"])
    said = result("sample", "hub", "--prompt", "a dull film", capsys=capsys)
    assert said["label"] == "bad" and sum(said["labels"].values()) == pytest.approx(1)
    Path("one.tsv").write_text("text\tlabel\na great warm film\tgood\n")
    judged = result("eval", "c", "one.tsv", capsys=capsys)
    assert judged["accuracy"] == 1.0 and judged["nats_per_label"] > 0 and "perplexity" not in judged
    Path("zoo.tsv").write_text(text.replace("\t0", "\tyak").replace("\t1", "\tzebra"))
    assert "label 'yak', unknown to the model" in refused("eval", "c", "zoo.tsv", capsys=capsys)
    main(
        [
            "train",
            "bert-classifier",
            "zoo.tsv",
            "--init",
            "c",
            "--max-steps",
            "1",
            "--lr",
            "1e-9",
            "--out",
            "z",
        ]
    )
    first, new = load("c")[0], load("z")[0]
    assert new.config.labels == ("yak", "zebra")
    assert not np.allclose(new.state()["classifier.weight"], first.state()["classifier.weight"], atol=1e-3)
    main(
        [
            "train",
            "bert-classifier",
            "named.tsv",
            "--init",
            "c",
            "--max-steps",
            "1",
            "--lr",
            "1e-9",
            "--out",
            "n",
        ]
    )
    kept = load("n")[0].state()["classifier.weight"]
    np.testing.assert_allclose(kept, first.state()["classifier.weight"], atol=1e-6)


def test_a_language_model_goes_on_with_other_data(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("all work and no play makes jack a dull boy. " * 40)
    Path("b.txt").write_text("a dull boy makes no play. " * 60)
    main(["train", "gpt", "a.txt", *TINY, "--max-steps", "5", "--out", "a"])
    first = load("a")[0].state()
    main(["train", "gpt", "b.txt", "--init", "a", "--max-steps", "1", "--lr", "1e-9", "--out", "b"])
    for name, value in load("b")[0].state().items():
        np.testing.assert_allclose(value, first[name], atol=1e-6)
    again = ["train", "gpt", "b.txt", "--init", "a", "--max-steps", "1", "--lr", "1e-9"]
    main([*again, "--dropout", "0.3", "--out", "flag"])  # how it learns may differ
    Path("d.toml").write_text("dropout = 0.2\n")
    main([*again, "--config", "d.toml", "--out", "file"])
    assert [load(run)[0].config.dropout for run in ("a", "flag", "file")] == [0.0, 0.3, 0.2]
    assert load("flag")[0].h[0].mlp.dropout.p == 0.3
    for name, value in load("flag")[0].state().items():
        np.testing.assert_allclose(value, first[name], atol=1e-6)
    err = refused(*again, "--n-head", "4", capsys=capsys)  # it would fit, and mean something else
    assert "--n-head is 4, in the model to begin with 2 (must be the same: leave it out)" in err
    whole = result("eval", "b", "a.txt", "--limit", "3", capsys=capsys)
    assert whole["bits_per_byte"] > 0
    Path("c.txt").write_text("quite another vocabulary! " * 20)
    assert "unknown character" in refused("eval", "b", "c.txt", capsys=capsys)
    Path("b.txt").write_text("a dull play makes no boy. " * 60)
    assert "b.txt has changed since the run began" in refused("eval", "b", capsys=capsys)


def test_the_context_may_be_another_where_no_weight_belongs_to_a_position(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.txt").write_text("all work and no play makes jack a dull boy. " * 40)
    for family in ("gpt", "llama"):
        main(["train", family, "a.txt", *TINY, "--max-steps", "1", "--out", family])
    other = ["a.txt", "--block-size", "24", "--max-steps", "1", "--init"]
    main(["train", "llama", *other, "llama", "--out", "longer"])
    assert load("longer")[0].config.block_size == 24
    assert "--block-size is 24, in the model to begin with 16" in refused(
        "train", "gpt", *other, "gpt", capsys=capsys
    )


def test_the_help_names_the_tokenizer_of_the_family(capsys: pytest.CaptureFixture[str]) -> None:
    for family, default in (
        ("gpt", "Default: char"),
        ("seq2seq", "Default: bpe, of a size that suits the amount of text"),
        ("bert", "Default: word pieces"),
    ):
        with pytest.raises(SystemExit):
            main(["train", family, "--help"])
        assert default in " ".join(capsys.readouterr().out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "seq2seq", "none.tsv"], "none.tsv: no such file"),
        (["train", "bert-classifier", "none.tsv"], "none.tsv: no such file"),
        (["train", "seq2seq", "three.tsv"], "3 pairs, 0 to evaluate on"),
        (
            ["train", "bert-classifier", "same.tsv"],
            "1 different label in 2 rows (must be at least two; label",
        ),
        (["train", "bert", "--tokenizer", "char"], "--tokenizer is char, which has no [CLS]"),
        (
            ["train", "bert-classifier", "--tokenizer", "char"],
            "must be word pieces for a bert-classifier: leave it",
        ),
        (["eval", "nowhere"], "nowhere: no such directory"),
        (["eval", "nowhere", "--limit", "0"], "--limit is 0 (must be at least 1)"),
    ],
)
def test_data_that_do_not_fit_the_task(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("three.tsv").write_text("a\tb\nc\td\ne\tf\n")
    Path("same.tsv").write_text("text\tlabel\na\tx\nb\tx\n")
    err = refused(*words, capsys=capsys)
    assert message in err and err.count("\n") == 1


def test_a_bert_with_its_norms_first(capsys: pytest.CaptureFixture[str]) -> None:
    """It is trained, saved in our own form, loaded, and continues."""
    Path("text.txt").write_text("the cat sat on the mat . " * 400)
    sizes = [*TINY, "--n-hidden", "64", "--norm", "pre", "--relative-buckets", "8"]
    main(["train", "bert", "text.txt", *sizes, "--max-steps", "3", "--out", "b"])
    model, _ = load("b")
    assert model.config.norm == "pre" and model.config.relative_buckets == 8
    main(["sample", "b", "--prompt", "the [MASK] sat"])
    rows = (f"the cat {i},yes\nthe mat {i},no\n" for i in range(20))
    Path("labeled.csv").write_text("text,label\n" + "".join(rows))
    main(["train", "bert-classifier", "labeled.csv", "--init", "b", "--max-steps", "2", "--out", "c"])
    assert load("c")[0].config.norm == "pre"
    with pytest.raises(SystemExit):
        main(["export", "b", "--out", "x"])
    assert "Hugging Face has no model like this BERTPretraining" in capsys.readouterr().err
