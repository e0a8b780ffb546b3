"""`chainrule embed`, and what a model without a head can do."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.io import save_pretrained
from chainrule.models import make

LINES = ["the cat sat on the mat.", "a dog ran.", "", "the cat."]
SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_hidden": 24, "block_size": 16}


@pytest.fixture
def body(tmp_path: Path) -> Path:
    """A directory with a BERT and no head."""
    return saved(tmp_path / "body", None)


def saved(folder: Path, family: str | None, **more: Any) -> Path:
    tokenizer = cr.text.WordPieceTokenizer.train("the cat sat on the mat. a dog ran. " * 9, 60)
    cr.seed(0)
    sizes = {**SIZES, "vocab_size": tokenizer.vocab_size}
    model = cr.models.BERT(cr.models.BERTConfig(**sizes)) if family is None else make(family, **sizes, **more)
    save_pretrained(model, tokenizer, folder)
    return folder


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("error: ")
    return err


def test_a_vector_for_each_line(body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n")
    out = tmp_path / "v.npy"
    main(["embed", str(body), str(tmp_path / "lines.txt"), "--out", str(out)])
    assert "4 vectors of 16 numbers" in capsys.readouterr().out
    vectors = np.load(out)
    assert vectors.shape == (4, 16) and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, cr.generate.embed(*cr.load(body), LINES))
    main(
        [
            "embed",
            str(body),
            str(tmp_path / "lines.txt"),
            "--out",
            str(out),
            "--no-normalize",
            "--pooling",
            "max",
        ]
    )
    want = cr.generate.embed(*cr.load(body), LINES, pooling="max", normalize=False)
    np.testing.assert_array_equal(np.load(out), want)


def test_a_vector_for_each_row_of_a_table(
    body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"id": i, "said": text} for i, text in enumerate(LINES)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--text-column", "said", "--out", str(tmp_path / "v.npy"), "--json"]
    main(["embed", str(body), str(tmp_path / "rows.jsonl"), *options])
    assert json.loads(capsys.readouterr().out) == {"out": str(tmp_path / "v.npy"), "texts": 4, "width": 16}


def test_neighbors_as_text(
    body: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = type("", (), {"buffer": io.BytesIO("\n".join(["the cat.", "a dog", "the cat."]).encode())})()
    monkeypatch.setattr(sys, "stdin", given)
    main(["embed", str(body), "-", "--n", "1"])
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "the cat." and out[1] == "   1.000  the cat."
    given.buffer.seek(0)
    main(["embed", str(body), "-", "--json"])
    first, *_ = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["text"] == "the cat." and first["neighbors"][0]["cosine"] == pytest.approx(1, abs=1e-5)


def test_misuse_is_one_line(body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.txt").write_text("the cat.\n")
    (tmp_path / "none.txt").write_text("")
    one = str(tmp_path / "one.txt")
    assert "no such file" in refused(capsys, "embed", str(body), str(tmp_path / "no.txt"))
    assert "is empty" in refused(capsys, "embed", str(body), str(tmp_path / "none.txt"))
    assert "holds one text" in refused(capsys, "embed", str(body), one)
    assert "must end in .npy" in refused(capsys, "embed", str(body), one, "--out", "v.csv")
    assert "--batch-size is 0" in refused(
        capsys, "embed", str(body), one, "--batch-size", "0", "--out", "v.npy"
    )
    assert "must be one of cls, max, mean" in refused(capsys, "embed", str(body), one, "--pooling", "min")
    save_pretrained(
        make("gpt", n_layer=1, n_head=1, n_embd=4, vocab_size=3),
        cr.text.CharTokenizer("abc"),
        tmp_path / "gpt",
    )
    assert "embed: GPT (must be" in refused(capsys, "embed", str(tmp_path / "gpt"), one, "--out", "v.npy")


@pytest.mark.parametrize("family", [None, "bert-embedder"])
def test_a_model_without_a_head_says_what_it_can_do(
    family: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(saved(tmp_path / "x", family))
    asked = [["sample", folder, "--prompt", "the [MASK]"]]
    asked += [["eval", folder, "docstrings"]] if family is None else []
    for words in asked:
        said = refused(capsys, *words)
        assert "chainrule embed turns texts into vectors" in said and "train bert-classifier" in said
    said = refused(capsys, "train", "gpt", "pydoc", "--init", folder, "--out", str(tmp_path / "run"))
    assert "say train bert or bert-classifier or bert-tagger or bert-embedder" in said


@pytest.mark.parametrize(
    ("family", "more", "use"),
    [
        (None, {}, "embed {} FILE"),
        ("bert-embedder", {}, "embed {} FILE"),
        ("bert", {"next_sentence": False}, 'sample {} --prompt "The [MASK] is here."'),
        ("bert-classifier", {"classes": 2}, 'sample {} --prompt "TEXT"'),
    ],
)
def test_import_names_a_command_that_works(
    family: str | None, more: dict[str, Any], use: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path / "x", family, **more)
    main(["import", str(folder), "--out", str(tmp_path / "y")])
    assert use.format(tmp_path / "y") in capsys.readouterr().out


def test_an_embedder_learns_from_pairs(
    body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each text has one word of its partner: after training it is nearer to it than the others are."""
    words = ["the", "cat", "sat", "on", "mat", "a", "dog", "ran"]
    rows = [(f"{a} {b} {a}", f"{b} {a} {b} .") for a in words for b in words]
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    pairs, run = str(tmp_path / "pairs.tsv"), str(tmp_path / "run")
    options = [
        "--init",
        str(body),
        "--max-steps",
        "60",
        "--lr",
        "3e-3",
        "--batch-size",
        "32",
        "--dropout",
        "0",
    ]
    main(["train", "bert-embedder", pairs, *options, "--out", run])
    capsys.readouterr()
    main(["eval", run, pairs, "--json"])
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.5  # by chance 1/32
    main(["embed", run, pairs, "--text-column", "1", "--out", str(tmp_path / "v.npy")])
    assert np.load(tmp_path / "v.npy").shape == (64, 16)


@pytest.mark.parametrize("family", ["bert-classifier", "bert"])
def test_a_head_is_trained_on_a_body(
    family: str, body: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labeled = tmp_path / "labeled.csv"
    labeled.write_text("text,label\n" + "".join(f"good day {i},yes\nbad night {i},no\n" for i in range(20)))
    data = str(labeled) if family == "bert-classifier" else "pydoc"
    options = ["--init", str(body), "--max-steps", "2", "--batch-size", "4", "--out", str(tmp_path / "run")]
    main(["train", family, data, *options])
    trained, _ = cr.load(tmp_path / "run")
    start, _ = cr.load(body)
    assert type(trained) is cr.models.family(family).model
    before = start.state()["embeddings.word_embeddings.weight"]
    assert np.abs(trained.state()["bert.embeddings.word_embeddings.weight"] - before).max() < 0.01
    assert trained.config.n_embd == 16
