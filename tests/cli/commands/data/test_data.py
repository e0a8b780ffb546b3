"""`chainrule data`: build, stats, dedup and get as a person and as a program meet them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chainrule.cli import main
from chainrule.data import Shards, downloads, read_documents
from tests.distributed.test_communicator import needs_mpi
from tests.distributed.together import together

TEXTS = [f"document {i} of many, each a little different from the others" for i in range(60)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    main([*args, "--json"])
    out, err = capsys.readouterr()
    assert all(
        re.fullmatch(r"\S+: text is '\w+'; [\d,]+ rows, .*dropped.*", line) for line in err.splitlines()
    )
    found: dict[str, Any] = json.loads(out)
    return found


def test_build_writes_shards(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "data", "build", "texts.jsonl", "--validation", "0.2", "--out", "shards/mine")
    shards = Shards(Path("shards/mine"), verify=True)
    assert {name: len(part) for name, part in shards.parts.items()} == {
        name: told[name]["documents"] for name in ("train", "validation")
    }
    assert told["train"]["documents"] + told["validation"]["documents"] == 60
    assert told["vocab_size"] == shards.tokenizer.vocab_size
    assert shards.tokenizer.decode(shards.parts["train"][0]).endswith("\n")


@needs_mpi
def test_ranks_are_workers(folder: Path) -> None:
    build = ("data", "build", str(folder / "texts.jsonl"), "--tokenizer", "bpe:300", "--validation", "0.2")
    dedup = ("data", "dedup", str(folder / "texts.jsonl"), "--near", "0.9")
    for name, words in (("shards", build), ("kept.jsonl", dedup)):
        main([*words, "--out", str(folder / "one" / name)])
        done = together(3, "-m", "chainrule.cli", *words, "--out", str(folder / "ranks" / name))
        assert done.returncode == 0, done.stderr
    found = [sorted(path for path in (folder / way).rglob("*") if path.is_file()) for way in ("one", "ranks")]
    assert len(found[0]) == 7
    assert [a.read_bytes() for a in found[0]] == [b.read_bytes() for b in found[1]]


@pytest.mark.parametrize("command", ["build", "stats", "dedup"])
def test_every_command_runs_without_arguments(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", command])
    out, err = capsys.readouterr()
    assert out and err == ""
    assert Path("shards/data/meta.json").exists() == (command == "build")


def test_end_can_be_another_token_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "build", "texts.jsonl", "--end", "", "--out", "none"])
    main(["data", "build", "texts.jsonl", "--end", "|", "--out", "bar"])
    none, bar = (Shards(Path(name)) for name in ("none", "bar"))
    assert none.tokenizer.decode(none.parts["train"][0]) == TEXTS[0]
    assert bar.tokenizer.decode(bar.parts["train"][0]) == TEXTS[0] + "|"


def test_stats_count(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("naïve\nnaïve\nsome other line of text\nsome  other line of text\n")
    told = answer(capsys, "data", "stats", "a.txt", "--by", "line")
    assert (told["documents"], told["characters"], told["bytes"], told["tokens"]) == (4, 57, 59, 57)
    assert (told["copies"], told["near_copies"]) == (1, 1)
    assert told["tokens_per_document"]["min"] == 5 and told["tokens_per_document"]["max"] == 24
    main(["data", "stats", "a.txt", "--by", "line"])
    assert "near_copies          1" in capsys.readouterr().out


def test_dedup_writes_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    copies = [*TEXTS, TEXTS[3], "short"]
    Path("copies.txt").write_text("\n".join(copies))
    flags = ["copies.txt", "--by", "line", "--near", "1", "--quality"]
    told = answer(capsys, "data", "dedup", *flags, "--out", "clean.jsonl")
    assert told["read"] == 62 and told["dropped"]["copy"] == 1
    assert told["examples"]["copy"] == "copies.txt:61"
    kept = list(read_documents("clean.jsonl"))
    assert len(kept) == told["kept"] and {d.text for d in kept} <= set(TEXTS)
    assert json.loads(Path("clean.jsonl").read_text().splitlines()[0])["source"].startswith("copies.txt:")


def test_get_fetches_into_the_cache(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"emma\n"
    Path("served.txt").write_bytes(content)
    wrong = downloads.Download("a name", "MIT", Path("served.txt").absolute().as_uri(), 5, 64 * "0", "few")
    monkeypatch.setitem(downloads.NAMED, "names", wrong)
    with pytest.raises(SystemExit):
        main(["data", "get", "names"])
    assert "has SHA-256" in capsys.readouterr().err and not Path("cache").exists()
    right = replace(wrong, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(downloads.NAMED, "names", right)
    told = answer(capsys, "data", "get")
    assert Path(told["path"]).read_bytes() == content and told["licence"] == "MIT"
    assert answer(capsys, "data", "stats", "names")["documents"] == 1


BAD = {
    "missing": (["data", "stats", "none.jsonl"], "none.jsonl: no such file"),
    "line 17": (["data", "build", "bad.jsonl", "--out", "o"], "bad.jsonl: line 17 is not JSON"),
    "dedup line 17": (["data", "dedup", "bad.jsonl", "--out", "o.jsonl"], "bad.jsonl: line 17 is not JSON"),
    "empty": (["data", "stats", "empty.txt"], "empty.txt: no text in 0 bytes"),
    "field": (
        ["data", "stats", "texts.jsonl", "--text-column", "body"],
        "no column 'body' (there are 'text'; or a number from 1 to 1)",
    ),
    "by": (["data", "stats", "--by", "word"], "--by"),
    "shares": (["data", "build", "--validation", "1"], "must leave some for training"),
    "one document": (
        ["data", "build", "one.txt", "--validation", "0.1", "--out", "o"],
        "got none of 1 documents",
    ),
    "end": (["data", "build", "--end", "two"], "end 'two' is 3 tokens"),
    "there": (["data", "build", "--out", "."], "exists already"),
    "not jsonl": (["data", "dedup", "--out", "o.txt"], "must end in .jsonl"),
    "there too": (["data", "dedup", "--out", "texts.jsonl"], "texts.jsonl: exists already"),
    "near": (["data", "dedup", "--near", "0.1"], "near is 0.1 (must be from 0.5 to 1"),
    "unwritable": (["data", "build", "--out", "one.txt/o"], "one.txt/o: cannot be written"),
    "unknown": (["data", "get", "nmaes"], "did you mean names?"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing(
    folder: Path, case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("bad.jsonl").write_text('{"text": "fine"}\n' * 16 + '{"text": \n')
    Path("empty.txt").write_text("")
    Path("one.txt").write_text("a single document")
    before = sorted(os.listdir(folder))
    args, message = BAD[case]
    with pytest.raises(SystemExit) as stop:
        main(args)
    out, err = capfd.readouterr()
    assert stop.value.code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert message in err
    assert sorted(p for p in os.listdir(folder) if p != "shards") == before
    assert not list(folder.glob("shards/*")) and not list(folder.glob("shards/.*"))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_leaves_nothing(folder: Path, workers: str) -> None:
    """Ctrl-C while the shards are being written."""
    Path("slow.py").write_text(
        "import time\nfrom chainrule.cli import main\nfrom chainrule.cli.args.documents import Sources\n"
        "from chainrule.data import Document\n"
        "def read(self, quiet=False):\n"
        "    yield Document('text', 'slow')\n"
        "    print('reading', flush=True)\n"
        "    time.sleep(PAUSE)\n"
        "PAUSE = 0\n"
        "Sources.read = read\n"
        "import chainrule.data as command\n"
        "build = command.build\n"
        "def late(*args, **options):\n"
        "    global PAUSE\n"
        "    PAUSE = 60\n"
        "    return build(*args, **options)\n"
        "command.build = late\n"
        f"if __name__ == '__main__':\n    main(['data', 'build', '--out', 'out', '--workers', '{workers}'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "slow.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    for _ in ("characters", "tokens"):
        assert process.stdout.readline() == "reading\n"
    assert [p.name for p in folder.glob(".out.*.partial")]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err == "interrupted\n"
    assert not list(folder.glob("out")) and not list(folder.glob(".out*"))
