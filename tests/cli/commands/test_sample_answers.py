"""`chainrule sample` of models that do not write: hidden words and labels, and the flags that mean nothing to them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.data import IGNORE, Masked, SpecialIds, segmented
from chainrule.io import save_pretrained
from chainrule.models import BERTPretraining, make
from chainrule.text import WordPieceTokenizer

COLORS = {"grass": "green", "snow": "white", "coal": "black", "blood": "red", "gold": "yellow"}
TEXT = "".join(f"{thing} is {color}.\n" for thing, color in COLORS.items())
SIZES = {"n_layer": 1, "n_head": 2, "n_embd": 16, "n_hidden": 16, "block_size": 12}


def colors_learned(tokenizer: WordPieceTokenizer) -> BERTPretraining:
    cr.seed(1)
    model = make("bert", **SIZES, vocab_size=tokenizer.vocab_size, next_sentence=False, dropout=0.0)
    special = SpecialIds.of(tokenizer.special_ids)
    rows = [tokenizer.encode(line) for line in TEXT.splitlines()]  # thing, is, color, full stop
    ids, mask, segments = segmented(rows, [None] * len(rows), special)
    targets = np.full_like(ids, IGNORE)
    targets[:, 3], ids[:, 3] = ids[:, 3], special.mask
    batch = Masked(ids, mask, segments, np.full(len(rows), IGNORE))
    optimizer = cr.optim.AdamW(model.parameters(), 1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        model.loss(batch, targets).backward()
        optimizer.step()
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT that has learned five colors, and a classifier that has learned nothing."""
    folder = tmp_path_factory.mktemp("answering")
    tokenizer = WordPieceTokenizer.train(TEXT * 9, 120)
    save_pretrained(colors_learned(tokenizer), tokenizer, folder / "bert")
    classifier = make("bert-classifier", **SIZES, vocab_size=tokenizer.vocab_size, classes=3)
    save_pretrained(classifier, tokenizer, folder / "classifier")
    return folder


def test_hidden_words_are_guessed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = [f"{thing} is [MASK]." for thing in COLORS]
    (folder / "prompts.txt").write_text("\n".join([*prompts, "[MASK] is [MASK]."]))
    many = ["sample", str(folder / "bert"), "--prompts-file", str(folder / "prompts.txt")]
    capsys.readouterr()
    main([*many, "--json", "--top-k", "3"])
    *found, last = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [answer["masks"][0][0]["token"] for answer in found] == list(COLORS.values())
    assert [answer["text"] for answer in found] == TEXT.splitlines()
    assert all(answer["masks"][0][0]["probability"] > 0.5 for answer in found)
    assert [len(gap) for gap in last["masks"]] == [3, 3]
    main(many)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7 and len(lines[0].split("  ")) == 5  # a line for each gap, five words on it
    word, share = lines[1].split("  ")[0].split()
    assert word == "white" and float(share) == pytest.approx(found[1]["masks"][0][0]["probability"], abs=1e-4)


@pytest.mark.parametrize(
    "flags",
    [
        "--temperature 0.5", "--max-new-tokens 3", "--top-p 0.5", "--stop a", "--stop-tokens 3", "--seed 7",
        "--repetition-penalty 1.1", "--logit-bias 3 2", "--num-samples 2", "--beam 2", "--length-penalty 1",
        "--weights int8", "--logprobs",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("kind", "who"), [("bert", "a BERT"), ("classifier", "a classifier")])
def test_flags_that_would_be_ignored_are_refused(
    folder: Path, kind: str, who: str, flags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sample", str(folder / kind), "--prompt", "snow is [MASK]", *flags.split()])
    out, err = capsys.readouterr()
    message = f"{flags.split()[0]} is given for {who}, which does not write (leave it out)"
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1 and message in err


@pytest.mark.parametrize(
    ("kind", "flags", "message"),
    [
        ("classifier", ["--prompt", "snow", "--top-k", "3"], "--top-k is given for a classifier"),
        ("bert", ["--prompt", "snow is white"], "'snow is white' has no [MASK]"),
        ("bert", [], "sample: --prompt is not given for a BERT (must be a text for it to read)"),
        ("bert", ["--prompt", ""], "'' has no [MASK]"),
        ("bert", ["--prompt", "[MASK]", "--top-k", "0"], "--top-k is 0"),
    ],
)
def test_prompts_without_an_answer(
    folder: Path, kind: str, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sample", str(folder / kind), *flags])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and err.count("\n") == 1 and message in err
