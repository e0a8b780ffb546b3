"""`chainrule ngram` as a person and a script meet it, and the figures of count models and of training."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.cli.commands.ngram import Source, is_list
from chainrule.cli.render.plots import ngram as figures
from chainrule.data import load
from chainrule.models import Additive

NAMES = "emma\nolivia\nava\nisabella\nsophia\nmia\namelia\nharper\nella\nanna\n"
PNG = b"\x89PNG"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    Path("names.txt").write_text(NAMES, encoding="utf-8")
    Path("prose.txt").write_text(load("pydoc").text[:20_000], encoding="utf-8")


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*args: str) -> dict[str, Any]:
        main(["ngram", *args, "--json"])
        return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)

    return run


def test_a_list_of_names_is_counted_by_line(report: Any) -> None:
    r = report("names.txt", "--order", "2", "--smoothing", "0")
    words = NAMES.split()
    pairs = [p for w in words for p in zip("." + w, w + ".", strict=True)]
    counts = {p: pairs.count(p) for p in pairs}
    rows = {a: sum(n for (x, _), n in counts.items() if x == a) for a, _ in pairs}
    want = -sum(n * math.log(n / rows[a]) for (a, _), n in counts.items()) / len(pairs)
    assert r["nll"] == pytest.approx(want, rel=1e-12)
    assert (r["documents"], r["transitions"], r["method"], r["order"]) == (10, len(pairs), "mle", 2)
    assert r["vocab_size"] == 1 + len(set(NAMES) - {"\n"}) and r["stored"] == len(counts)
    assert r["perplexity"] == pytest.approx(math.exp(want)) and r["bits"] == pytest.approx(want / math.log(2))
    assert r["bits_per_byte"] == pytest.approx(want * len(pairs) / math.log(2) / len(NAMES))
    assert r["learned"] is True and r["held_out_nll"] is None and len(r["samples"]) == 10


@pytest.mark.requirement("R-189")
def test_which_letters_end_a_name_most_often(report: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert report("names.txt")["ends"] == [["a", 9], ["r", 1]]
    assert report("names.txt")["starts"][0] == ["a", 3]
    main(["ngram", "names.txt"])
    out = capsys.readouterr().out
    assert "ends       'a' 9, 'r' 1" in out and "doubles    'l' 2" in out
    assert "infinite: a tenth has new grams" in out


@pytest.mark.requirement("R-184")
def test_the_names_of_a_seed_follow_the_counts(report: Any) -> None:
    options = ("names.txt", "--order", "2", "--smoothing", "0", "--samples", "2000")
    names = report(*options, "--seed", "3")["samples"]
    assert report(*options, "--seed", "3")["samples"] == names != report(*options, "--seed", "4")["samples"]
    words = NAMES.split()
    assert {pair for n in names for pair in zip("." + n, n + ".", strict=True)} <= {
        pair for w in words for pair in zip("." + w, w + ".", strict=True)
    }
    for letter in {w[0] for w in words}:
        p, got = (sum(n.startswith(letter) for n in each) / len(each) for each in (words, names))
        assert abs(got - p) <= 3 * math.sqrt(p * (1 - p) / len(names))


@pytest.mark.parametrize("method", ["mle", "add", "good-turing", "kneser-ney"])
@pytest.mark.parametrize("order", [1, 3])
def test_every_method_on_lines_and_on_text(report: Any, method: str, order: int) -> None:
    for data in ("names.txt", "prose.txt"):
        r = report(data, "--method", method, "--order", str(order))
        assert 0 < r["nll"] < r["uniform_nll"] and r["method"] == method
        assert method == "mle" or r["held_out_nll"] > 0


def test_a_long_text_is_one_document(report: Any) -> None:
    r = report("prose.txt", "--order", "4", "--smoothing", "0.1", "--samples", "1")
    assert (r["documents"], r["transitions"]) == (1, 20_000) and r["method"] == "add"
    assert "ends" not in r and len(r["samples"][0]) == 200
    assert r["held_out_nll"] > r["nll"]


def test_the_look_of_a_file_can_be_overruled(report: Any) -> None:
    assert is_list(NAMES) and not is_list(Path("prose.txt").read_text()) and not is_list("one line")
    assert not is_list("日本語の文章は空白を含まない。" * 20 + "\nそして行が長い。\n")
    assert report("names.txt", "--text")["documents"] == 1
    assert report("prose.txt", "--lines")["documents"] > 100


def test_two_terminals(report: Any) -> None:
    one, two = report("names.txt"), report("names.txt", "--paired")
    assert two["vocab_size"] == one["vocab_size"] + 1
    assert two["nll"] == pytest.approx(one["nll"]) and two["ends"] == one["ends"]


def test_the_same_seed_writes_the_same_names(report: Any) -> None:
    first = report("names.txt", "--seed", "3")["samples"]
    assert first == report("names.txt", "--seed", "3")["samples"] != report("names.txt")["samples"]
    assert report("names.txt", "--samples", "0")["samples"] == []


def test_built_in_names_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    main(["ngram"])
    out, err = capsys.readouterr()
    assert out.startswith("identifiers: ") and "learned    yes" in out and err == ""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.txt"], "missing.txt: no such file"),
        (["names.txt", "--order", "0"], "order is 0"),
        (["names.txt", "--order", "5000"], "order is 5000 (must be from 1 to 100)"),
        (["names.txt", "--smoothing", "-1"], "--smoothing is -1.0"),
        (
            ["names.txt", "--smoothing", "1", "--method", "kneser-ney"],
            "smoothing is 1.0, --method 'kneser-ney'",
        ),
        (["names.txt", "--lines", "--text"], "must be at most one of them"),
        (["names.txt", "--samples", "-1"], "samples is -1"),
        (["names.txt", "--order", "1", "--plot", "figures"], "order is 1"),
        (["names.txt", "--plot", "names.txt/figures"], "names.txt/figures: cannot be written"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["ngram", *args])
    out, err = capsys.readouterr()
    assert exit_.value.code == 2 and out == "" and message in err and err.count("\n") == 1


def test_figures_by_command(report: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    r = report("names.txt", "--plot", "figures/names")
    assert [Path(file).read_bytes()[:4] for file in r["plots"]] == [PNG, PNG]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SystemExit):
        main(["ngram", "names.txt", "--plot", "figures"])
    assert "matplotlib is not installed" in capsys.readouterr().err


def test_the_graph_of_a_list_is_darker_where_pairs_are_frequent() -> None:
    source = Source.of(NAMES, None)
    matrix = source.fit(source.documents, 2, Additive(0)).adjacency()
    graph = figures.graph_of(matrix, source.tokens)
    assert len(graph.edges) == (matrix > 0).sum()
    for one in graph.edges:
        for other in graph.edges:
            assert (one.times < other.times) == (one.darkness < other.darkness)
    assert [e.source for e in reversed(graph.edges) if e.target == "."] == ["a", "r"]
    few = figures.graph_of(matrix, source.tokens, most=4)
    assert len(few.vertices) == 4 and {".", "a"} < set(few.vertices)


def test_the_heat_map_shows_the_counts() -> None:
    matrix = np.array([[0, 3, 0], [2, 1, 0], [0, 0, 0]])
    ax = figures.heat_map(matrix, [" ", "\n", "b"]).axes[0]
    np.testing.assert_allclose(np.expm1(ax.images[0].get_array()), [[0, 3], [2, 1]])  # b never occurs
    assert [label.get_text() for label in ax.get_xticklabels()] == ["␣", "↵"]


def test_a_text_of_one_letter_is_certain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("a" * 500)
    main(["ngram", str(tmp_path / "a.txt")])
    assert "held out   0.0000 nats" in capsys.readouterr().out
