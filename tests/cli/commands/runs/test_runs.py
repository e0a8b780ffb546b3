"""`chainrule runs` and `chainrule replay`: what is said of runs, whatever state they are in."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.files import alone
from chainrule.runs import checkpoint, load_language_model
from chainrule.runs.records.history import History
from chainrule.train import Trainer
from chainrule.train.log import read

SMALL = ["--n-layer=1", "--n-head=2", "--n-embd=16", "--block-size=16", "--batch-size=4", "--eval-windows=8"]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with a GPT, an LSTM and word vectors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("text.txt").write_text(load("pydoc").text[:30_000], encoding="utf-8")
    often = ["--max-steps=6", "--save-every=2", "--eval-every=2", "--sample-every=3", "--watch-every=2"]
    main(["train", "gpt", "text.txt", *SMALL, *often, "--out", "runs/one"])
    lstm = ["--n-hidden=16", "--block-size=16", "--batch-size=4", "--max-steps=3", "--out", "runs/deep/two"]
    main(["train", "lstm", "text.txt", *lstm])
    main(["train", "word2vec", "text.txt", "--dim", "8", "--epochs", "2", "--out", "runs/words"])
    capsys.readouterr()
    return tmp_path / "runs"


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    main(["runs", "list", "--json"])
    return {run["run"]: run for run in json.loads(capsys.readouterr().out)}


def test_every_run_is_listed_with_its_results(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys)
    assert list(found) == ["runs/deep/two", "runs/one", "runs/words"]
    assert [run["family"] for run in found.values()] == ["lstm", "gpt", "skip-gram"]
    assert {run["state"] for run in found.values()} == {"finished"}
    one = found["runs/one"]
    judged = [(r["validation"], r["step"]) for r in read(runs / "one/log.jsonl") if "validation" in r]
    best, at = min(judged)
    assert (one["steps"], one["best_validation"]) == (6, best)
    main(["train", "gpt", "--resume", "runs/one", "--json"])  # is finished: says the same of itself
    said = json.loads(capsys.readouterr().out)
    assert said["parameters"] == one["parameters"]
    assert (said["best_step"], said["best_loss"]) == (at, best)
    if best == said["nats_per_token"]:
        assert one["bits_per_byte"] == pytest.approx(said["bits_per_byte"])
    main(["runs", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["run", "family", "parameters", "steps"] and len(lines) == 4
    assert f"{best:.4f}" in lines[2] and lines[3].split()[4] == "-"


def test_states(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = runs / "one/environment.json"
    text = environment.read_text()
    for how, state in [
        ("stopped", "interrupted"),
        ("KeyboardInterrupt", "interrupted"),
        ("ConfigError: log.jsonl: cannot be written", "failed"),
    ]:
        environment.write_text(text.replace('"finished"', json.dumps(how)))
        found = listed(capsys)["runs/one"]
        assert found["state"] == state and (found["problem"] == how) == (state == "failed")
    environment.write_text(text.replace('"how": "finished"', '"x": 0'))  # killed
    assert listed(capsys)["runs/one"]["state"] == "interrupted"
    environment.unlink()  # a run from before this file was written: the checkpoint knows
    found = listed(capsys)["runs/one"]
    assert (found["state"], found["family"]) == ("finished", "gpt") and found["bits_per_byte"] is None
    environment.write_text(text)
    with alone(runs / "one"):
        assert listed(capsys)["runs/one"]["state"] == "running"
    (checkpoint.find(runs / "one") / "model.safetensors").write_bytes(b"")
    main(["runs", "list"])
    out = capsys.readouterr().out
    assert "damaged" in out and "model.safetensors: is damaged" in out and "step_000004 instead" in out
    (runs / "new").mkdir()
    (runs / "new/log.jsonl").touch()
    assert listed(capsys)["runs/new"]["state"] == "empty"
    main(["runs", "report", "runs/new"])


def test_an_interrupted_run_is_listed_with_the_loss_it_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(load("pydoc").text[:30_000], encoding="utf-8")
    update = Trainer.update

    def interrupted(self: Trainer, lr: float) -> tuple[float, float]:
        if self.steps == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return update(self, lr)

    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        patch.setattr(Trainer, "update", interrupted)
        main(["train", "gpt", "text.txt", *SMALL, "--max-steps=9", "--out=runs/one", "--json"])
    assert stop.value.code == 130
    said = json.loads(capsys.readouterr().out)
    found = listed(capsys)["runs/one"]
    assert (found["state"], found["at_step"], found["steps"]) == ("interrupted", 3, 3)
    assert found["best_validation"] == said["nats_per_token"]
    assert found["bits_per_byte"] == pytest.approx(said["bits_per_byte"])
    main(["train", "gpt", "--resume=runs/one", "--json"])
    said = json.loads(capsys.readouterr().out)
    found = listed(capsys)["runs/one"]
    assert (found["at_step"], found["best_validation"]) == (said["best_step"], said["best_loss"])


def test_a_report_of_a_damaged_run_says_so(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkpoint.find(runs / "one") / "model.safetensors").write_bytes(b"")
    main(["runs", "report", "runs/one", "--out", "pages/one.html"])
    out, err = capsys.readouterr()
    assert out == "pages/one.html\n" and err.startswith("damaged: ") and err.count("\n") == 1
    (runs / "one/log.jsonl").write_text("garbage\n")
    with pytest.raises(SystemExit) as stop:
        main(["runs", "report", "runs/one"])
    err = capsys.readouterr().err
    assert stop.value.code == 2 and "runs/one/log.jsonl: no line of it can be read" in err
    assert not Path("runs/one/report.html").exists()


def test_runs_are_compared(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["runs", "compare", "runs/one", "runs/deep/two"])
    out = capsys.readouterr().out
    assert re.search(r"^max_steps +6 +3$", out, re.M) and re.search(r"^family +gpt +lstm$", out, re.M)
    assert "batch_size" not in out  # the same in both
    assert re.search(r"^best validation +\d\.\d{4} +\d\.\d{4}$", out, re.M)
    assert re.search(r"^runs/deep/two +[▁-█]", out, re.M)
    main(["runs", "compare", "runs/one", "runs/words", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["n_embd"] == [16, None] and found["machine"] == {}
    assert found["results"]["runs/words"]["family"] == "skip-gram"
    shutil.copytree("runs/one", "runs/copy")
    main(["runs", "compare", "runs/one", "runs/copy"])
    out = capsys.readouterr().out
    assert out.startswith("the settings are the same\n") and "±" not in out  # one seed is not two


def test_an_extended_run_shows_the_settings_it_has_now(runs: Path) -> None:
    main(["train", "gpt", "--resume", "runs/one", "--max-steps", "8"])
    history = History.of(runs / "one")
    assert history.settings["max_steps"] == 8 and history.settings["n_layer"] == 1
    assert [stretch["from"] for stretch in history.environment["stretches"]] == [0, 6]


class Checked(HTMLParser):
    """Every tag is closed in its order, and nothing is fetched or run."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe", "object")
        assert not {"src", "href", "onload", "onclick", "style"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_report_stands_alone_and_holds_everything(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "</pre><script>alert('&\ud800')</script>"
    finding = {
        "level": "problem",
        "about": "loss spike",
        "measured": "z = 9 <b>",
        "meaning": "m",
        "advice": "a",
    }
    with (runs / "one/log.jsonl").open("a") as log:
        for record in ({"sample": nasty}, {"finding": finding}, {"skipped": "loss nan"}, {"loss": None}):
            log.write(json.dumps({"step": 6} | record) + "\n")
    main(["runs", "report", "runs/one"])
    assert capsys.readouterr().out == "runs/one/report.html\n"
    page = Path("runs/one/report.html").read_text(encoding="utf-8")
    assert "http" not in page and "url(" not in page and "@import" not in page
    assert "grid-column" not in page  # a small chart that were wider than the others would have larger labels
    seen = Checked()
    seen.feed(page)
    assert not seen.open
    for text in (
        "alert(",
        "loss spike",
        "Try:",
        "skipped step",
        "best validation loss",
        "n_layer",
        "cpu_level",
    ):
        assert text in seen.text, text
    sample = next(record["sample"] for record in read(runs / "one/log.jsonl") if record.get("sample"))
    assert sample in seen.text
    drawn = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]
    assert len(drawn) >= 4  # loss, gradient norm, learning rate, updates; the pace of so few steps may be 0
    numbers = [
        float(n)
        for svg in drawn
        for path in svg.iter("path")
        for n in re.findall(r"[\d.]+", path.get("d", ""))
    ]
    assert all(0 <= n <= 720 for n in numbers)
    for run in ("runs/words", "runs/deep/two"):
        main(["runs", "report", run, "--out", "page.html"])
        seen = Checked()
        seen.feed(Path("page.html").read_text(encoding="utf-8"))
        assert not seen.open


def test_what_is_no_run_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args, message in [
        (["runs", "list", "none"], "none: no such directory"),
        (["runs", "list", "text.txt"], "text.txt: is a file (must be a directory with runs in it)"),
        (["runs", "report", "none"], "none: no such directory (must be the directory of a run"),
        (["runs", "report", "text.txt"], "text.txt: is a file"),
        (["runs", "compare", "runs/one"], "got 1 run (must be at least two)"),
        (["runs", "compare", "runs/one", "runs/one"], "runs/one is given twice (must be different runs)"),
        (["runs", "compare", "runs/one", "runs/deep/../one"], "is given twice, as runs/one (must be"),
        (["runs", "lst"], "did you mean runs list?"),
        (["replay", "runs/one", "--step", "9"], "--step is 9, runs/one has the steps 1 to 6 (choose"),
        (["replay", "runs/one", "--step", "7", "--save", "new/a.npz"], "has the steps 1 to 6 (choose"),
        (["replay", "runs/one", "--step", "0"], "has the steps 1 to 6 (choose"),
        (["replay", "runs/one/checkpoints/step_000006", "--step", "9"], "is a checkpoint"),
        (["replay", "runs/words", "--step", "1"], "holds word vectors"),
    ]:
        with pytest.raises(SystemExit) as stop:
            main(args)
        err = capsys.readouterr().err
        assert stop.value.code == 2 and message in err and err.count("\n") == 1
    assert not Path("new").exists()
    Path("empty").mkdir()
    main(["runs", "list", "empty"])
    assert "no runs in empty" in capsys.readouterr().out


def test_replay_by_command(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", "runs/one", "--step", "6", "--save", "arrays/of/step.npz"])
    out = capsys.readouterr().out
    assert "the same as in log.jsonl, bit for bit (replayed from the checkpoint of step 4)" in out
    assert "h.0.mlp.gelu" in out and "h.0.attn.c_attn.weight" in out and "wanted:" in out
    arrays = np.load("arrays/of/step.npz")
    assert {name.split("/")[0] for name in arrays} == {
        "batch", "activation", "activation_gradient", "weight", "gradient", "update",
    }  # fmt: skip
    moved = arrays["weight/wte.weight"] + arrays["update/wte.weight"]
    saved = load_language_model("runs/one/checkpoints/step_000006")[0].state()["wte.weight"]
    np.testing.assert_allclose(moved, saved, rtol=0, atol=1e-7)
    main(["replay", "runs/one", "--step", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["same"] and found["since"] == 0 and found["layers"] and found["parameters"]
    with pytest.raises(SystemExit):
        main(["replay", "runs/one", "--step", "6", "--save", "arrays/of/step.npz"])
    assert "step.npz: exists already" in capsys.readouterr().err
