"""`chainrule diagnose`, on a run and on nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.models import GPTConfig

SMALL = ["--n-layer", "3", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--batch-size", "4"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("text.txt").write_text(load("pydoc").text[:20_000], encoding="utf-8")
    main(["train", "text.txt", *SMALL, "--max-steps", "20", "--out", "run"])
    capsys.readouterr()
    return "run"


def test_a_run_is_examined(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in Path(run).rglob("*") if path.is_file()}
    main(["diagnose", run, "--plot", "figures"])
    out = capsys.readouterr().out
    for expected in (
        "after 20 steps",
        "loss: ",
        "updates: ",
        "splits: ",
        "loss curve: ",
        "h.2.mlp.gelu",
        "wte.weight",
    ):
        assert expected in out
    for name in ("layers", "parameters"):
        assert Path("figures", f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert before == {path: path.read_bytes() for path in Path(run).rglob("*") if path.is_file()}

    main(["diagnose", run, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["step"] == 20 and {"splits", "loss curve"} <= {f["about"] for f in found["findings"]}
    assert sum(found["layers"][0]["value"]["histogram"]["counts"]) == 4 * 16 * 16
    assert all(p["update_norm"] > 0 for p in found["parameters"])


def test_columns_stay_in_line_beside_long_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"{n} a\t{n} b\n" for n in range(200)))
    main(["train", "seq2seq", "pairs.tsv", *SMALL, "--max-steps", "2", "--out", "run"])
    capsys.readouterr()
    main(["diagnose", "run"])
    out = capsys.readouterr().out
    for table in out[out.index("layer ") :].split("\n\n"):
        ends = {len(line.rstrip()) for line in table.splitlines()}
        assert len(ends) == 1 and "model.decoder.layers.2" in table, table


def test_without_a_run_a_new_model_is_examined(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16}
    monkeypatch.setattr("chainrule.models.GPTConfig", lambda **options: GPTConfig(**size, **options))
    main(["diagnose"])
    out = capsys.readouterr().out
    assert "before its first step" in out and "ok       initial loss" in out and "PROBLEM" not in out


def test_no_such_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["diagnose", "nowhere"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("error: nowhere: no such directory")
