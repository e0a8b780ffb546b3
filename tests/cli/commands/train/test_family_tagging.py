"""`chainrule train bert-tagger`: tags that depend on the words before, learned, judged and printed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from chainrule.cli import main
from chainrule.runs.load import load

SIZE = [
    "--n-layer", "1", "--n-head", "2", "--n-embd", "32", "--n-hidden", "64", "--block-size", "24", "--dropout", "0",
    "--batch-size", "32", "--lr", "5e-3", "--seed", "1",
]  # fmt: skip


def sentences(count: int, seed: int) -> str:
    """What a word such as "duck" is, "the" or "to" before it tells; "the" and "to" begin a sentence in any order."""
    rng = random.Random(seed)
    kinds = {"the": "NOUN", "to": "VERB"}
    found = []
    for number in range(count):
        lines = [f"{number}\tNUM"]
        for _ in range(rng.randint(1, 3)):
            first = rng.choice(list(kinds))
            lines += [f"{first}\tO", f"{rng.choice(['duck', 'walk', 'play', 'run'])}\t{kinds[first]}"]
        found.append("\n".join(lines))
    return "\n\n".join(found) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagging")
    (folder / "words.conll").write_text(sentences(300, seed=1))
    data, out = str(folder / "words.conll"), str(folder / "run")
    main(["train", "bert-tagger", data, *SIZE, "--max-steps", "200", "--eval-every", "100", "--out", out])
    return folder


def result(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    main([*words, "--json"])
    return dict(json.loads(capsys.readouterr().out))


def test_tags_are_learned_and_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "others.conll").write_text(sentences(60, seed=2))
    judged = result("eval", str(folder / "run"), str(folder / "others.conll"), capsys=capsys)
    assert judged["accuracy"] > 0.95 and judged["nats_per_label"] > 0 and "perplexity" not in judged
    wrong = (
        (folder / "others.conll")
        .read_text()
        .replace("NOUN", "X")
        .replace("VERB", "NOUN")
        .replace("X", "VERB")
    )
    (folder / "wrong.conll").write_text(wrong)
    assert result("eval", str(folder / "run"), str(folder / "wrong.conll"), capsys=capsys)["accuracy"] < 0.75
    assert result("eval", str(folder / "run"), capsys=capsys)["accuracy"] > 0.95  # on what was held back


def test_words_are_printed_with_their_tags(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main(["sample", str(folder / "run"), "--prompt", "123 the duck to duck"])
    assert capsys.readouterr().out == "123/NUM the/O duck/NOUN to/O duck/VERB\n"
    found = result("sample", str(folder / "run"), "--prompt", "123 to play", capsys=capsys)
    assert [word["tag"] for word in found["words"]] == ["NUM", "O", "VERB"]
    assert all(0.25 < word["probability"] <= 1 for word in found["words"])
    main(["export", str(folder / "run"), "--out", str(folder / "hub")])
    assert result("sample", str(folder / "hub"), "--prompt", "123 to play", capsys=capsys) == found


def test_tags_are_kept_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "zoo.conll").write_text(sentences(60, seed=3).replace("NOUN", "YAK"))
    with pytest.raises(SystemExit):
        main(["eval", str(folder / "run"), str(folder / "zoo.conll")])
    assert "label 'YAK', unknown to the model" in capsys.readouterr().err
    start = ["--init", str(folder / "run"), "--max-steps", "1", "--out", str(folder / "zoo")]
    main(["train", "bert-tagger", str(folder / "zoo.conll"), *start])
    assert load(folder / "zoo")[0].config.labels == ("NUM", "O", "VERB", "YAK")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "bert-tagger", "none.conll"], "none.conll: no such file (must be sentences with tags"),
        (["train", "bert-tagger", "broken.conll"], "broken.conll: line 2 is 'wrote'"),
        (["train", "bert-tagger", "one.conll"], "1 different label in "),
        (["train", "bert-tagger", "two.conll"], "1 sentences (must be enough to hold back one in ten)"),
        (["sample", "run"], "--prompt is not given for a tagger"),
        (["sample", "run", "--prompt", "the " * 23], "has 23 tokens (must be from 1 to 22)"),
        (
            ["sample", "run", "--prompt", "the", "--seed", "1"],
            "--seed is given for a tagger, which does not write",
        ),
    ],
)
def test_what_is_refused(
    folder: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    Path("broken.conll").write_text("Ada\tB-PER\nwrote\n")
    Path("one.conll").write_text("Ada\tO\n\nwrote\tO\n")
    Path("two.conll").write_text("Ada\tB-PER\nwrote\tO\n")
    with pytest.raises(SystemExit) as stop:
        main(words)
    err = capsys.readouterr().err
    assert stop.value.code == 2 and message in err and err.count("\n") == 1
