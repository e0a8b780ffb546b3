"""Tables with any columns by command: train, resume, eval, replay, doctor and the others on one odd table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.runs import Run
from tests.cli.commands.train.test_family_tasks import refused, result

SPORT, WORLD = ["goal", "match", "team", "cup"], ["vote", "law", "city", "war"]
TINY = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16"]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id, a headline, a constant, and a topic."""
    monkeypatch.chdir(tmp_path)
    rows = ["key,kicker,part,desk\n"]
    for n in range(240):
        words = SPORT if n % 2 else WORLD
        rows.append(
            f"{n},{words[n // 2 % 4]} {words[n // 8 % 4]} number {n},train,{'sport' if n % 2 else 'world'}\n"
        )
    rows += ["240,,train,sport\n", "241,war,train,\n", "242" + rows[1].removeprefix("0")]
    Path("odd.csv").write_text("".join(rows))


def test_a_classifier_reads_the_columns_it_is_told_or_asks(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("train", "bow-classifier", "odd.csv", capsys=capsys)
    assert (
        "columns 'key', 'kicker', 'part', 'desk': which is the text and which the label? (say it with "
        in said
    )
    assert "--text-column and --label-column, such as --label-column desk --text-column kicker)" in said
    for column, message in (("key", "242 different labels in 242"), ("part", "1 different label in 241")):
        wrong = ["train", "bow-classifier", "odd.csv", "--text-column", "kicker", "--label-column", column]
        assert message in refused(*wrong, capsys=capsys)
    main(["train", "bow-classifier", "odd.csv", "--text-column", "kicker", "--label-column", "desk",
          "--max-steps", "8", "--out", "run"])  # fmt: skip
    out = capsys.readouterr().out
    assert (
        "odd.csv: text is 'kicker', label is 'desk'; the first row names the columns; 243 rows, 240 kept, 3 dropped "
        "(1 without a text, 1 without a label, 1 copies of another row)"
    ) in out
    assert re.search(r"validation loss \d\.\d{4}   accuracy [\d.]+ %   F1 [\d.]+ %", out)


def test_a_run_keeps_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--text-column", "2", "--label-column", "4"]
    main(["train", "bow-classifier", "odd.csv", *options, "--max-steps", "4", "--out", "run"])
    facts = json.loads(Path("run/checkpoints/step_000004/training.json").read_text())["data"]
    assert facts["columns"] == {"text_column": ["kicker"], "label_column": "desk", "header": True}
    assert (
        'text_column = "kicker"\nlabel_column = "desk"\nheader = true\n'
        in Path("run/config.toml").read_text()
    )
    capsys.readouterr()
    main(["train", "bow-classifier", "odd.csv", "--resume", "run", "--max-steps", "6"])
    assert "text is 'kicker'" in capsys.readouterr().out
    other = ["train", "bow-classifier", "--resume", "run", "--text-column", "key", "--label-column", "desk"]
    assert "resume: the columns are others, in the run odd.csv: text is 'kicker'" in refused(
        *other, capsys=capsys
    )
    main(["replay", "run", "--step", "5"])
    assert "bit for bit" in capsys.readouterr().out
    main(["train", "bow-classifier", "--config", "run/config.toml", "--max-steps", "4", "--out", "again"])
    assert Run.resume("again").corpus == Run.resume("run").corpus


def test_eval_reads_other_tables_like_that_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--text-column", "kicker", "--label-column", "desk"]
    main(["train", "bow-classifier", "odd.csv", *options, "--max-steps", "8", "--out", "run"])
    Path("others.csv").write_text(
        "desk;more;kicker\n" + "sport;1;goal team cup\nworld;2;law war\nsport;3;law\n"
    )
    judged = result("eval", "run", "others.csv", capsys=capsys)
    assert (judged["evaluated"], judged["available"], judged["unit"]) == (3, 3, "texts")
    assert judged["confusion"] == [[1, 1], [0, 1]] and judged["accuracy"] == pytest.approx(2 / 3)
    assert judged["labels"]["sport"]["recall"] == 0.5 and judged["f1"] == pytest.approx(2 / 3)
    main(["eval", "run", "others.csv"])
    shown = capsys.readouterr()
    assert "text is 'kicker', label is 'desk'" in shown.err and "evaluated       all 3 texts" in shown.out
    assert "confusion: rows are right" in shown.out and re.search(
        r"sport +100.0% +50.0% +66.7% +2", shown.out
    )
    Path("named.csv").write_text("id,review,stars\n1,goal team,sport\n2,law,world\n")
    assert "which is the label?" in refused("eval", "run", "named.csv", capsys=capsys)
    swapped = ["eval", "run", "named.csv", "--text-column", "review", "--label-column", "stars"]
    assert result(*swapped, capsys=capsys)["accuracy"] == 1.0
    assert "--label-column is given without DATA" in refused(
        "eval", "run", "--label-column", "desk", capsys=capsys
    )


def german(*rows: str) -> Path:
    """A table with a comma in a name and one at the end of each row, which reads as data to begin with."""
    path = Path("deutsch.csv")
    names = 'Kennung,Überschrift,"Beschreibung, lang",Rubrik,'
    texts = ['{n},Kopf {n},"Tor {n}, Sieg",Sport,', "{n},Kopf {n},Wahl {n} Recht,Welt,"]
    path.write_text(
        "\n".join([*rows, names, *(texts[n % 2].format(n=n) for n in range(60))]), encoding="utf-8"
    )
    return path


def test_a_header_with_commas_and_an_empty_name(capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "bow-classifier", str(german()), "--max-steps=4", "--out=run"]
    hint = refused(*train, capsys=capsys)
    assert "which is the text and which the label?" in hint
    assert "--label-column Rubrik --text-column 'Beschreibung, lang'" in hint
    main([*train, "--label-column", "Rubrik", "--text-column", "Überschrift,beschreibung, lang"])
    out = capsys.readouterr().out
    assert "text is 'Überschrift' + 'Beschreibung, lang', label is 'Rubrik'; the first row names" in out
    assert "labels: " not in out
    main(["train", "bow-classifier", "--config=run/config.toml", "--out=again"])
    assert Run.resume("again").corpus == Run.resume("run").corpus


def test_a_header_that_is_read_as_data_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "bow-classifier", str(german("1,2,3,4,")), "--max-steps=4", "--out=run"]
    assert "if the first row, '1', '2', '3', '4', '', names the columns, say --header" in refused(
        *train, capsys=capsys
    )
    options = ["--text-column=3", "--label-column=4"]
    main([*train, *options])
    assert "labels: 2 of 4 with fewer than 2 examples to train on: 'Rubrik' (" in capsys.readouterr().out
    found = result("doctor", "deutsch.csv", "--family=bow-classifier", *options, capsys=capsys)["findings"]
    assert {"labels_few"} == {each["code"] for each in found if each["about"] == "labels"}


@pytest.mark.parametrize("column", ["Beschreibung, lang", "3", "überschrift"])
def test_eval_keeps_the_columns_of_the_run(column: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--header", "--text-column", column, "--label-column", "rubrik"]
    train = ["train", "bow-classifier", str(german()), "--max-steps=4", "--out=run"]
    main([*train, *options])
    wanted = "Überschrift" if column == "überschrift" else "Beschreibung, lang"
    for more in ([], ["--header"], ["--text-column", column]):
        main(["eval", "run", "deutsch.csv", *more])
        error = capsys.readouterr().err
        assert f"text is '{wanted}', label is 'Rubrik'" in error
        assert "note: the model was trained on deutsch.csv: it knows most of it" in error
    main([*train[:-1], "--resume=run", "--header"])
    assert f"text is '{wanted}', label is 'Rubrik'" in capsys.readouterr().out


def test_translators_and_language_models_ask_for_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert "which is the source and which the target?" in refused(
        "train", "seq2seq", "odd.csv", capsys=capsys
    )
    pairs = ["train", "seq2seq", "odd.csv", "--source-column", "kicker", "--target-column", "desk"]
    main([*pairs, *TINY, "--max-steps", "1", "--out", "pairs"])
    assert "source is 'kicker', target is 'desk'" in capsys.readouterr().out
    assert "unknown option" in refused("train", "gpt", "odd.csv", "--label-column", "desk", capsys=capsys)
    asked = refused("train", "gpt", "odd.csv", capsys=capsys)
    assert "which is the text?" in asked and "give it the ending .txt" in asked
    main(
        [
            "train",
            "gpt",
            "odd.csv",
            "--text-column",
            "kicker,desk",
            *TINY,
            "--max-steps",
            "1",
            "--out",
            "text",
        ]
    )
    assert "text is 'kicker' + 'desk'" in capsys.readouterr().out
    found = Run.resume("text").corpus
    assert found.text.startswith("vote vote number 0\nworld\n\ngoal goal number 1\nsport\n\n")  # type: ignore[attr-defined]


def test_a_tagger_reads_other_columns_of_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"Ada NN B-PER\nruns{n} VB O\n\n" for n in range(60))
    Path("names.conll").write_text(lines)
    options = ["names.conll", *TINY, "--max-steps", "1"]
    main(["train", "bert-tagger", *options, "--label-column", "2", "--out", "parts"])
    assert "text is the first column, label is column 2; 120 rows" in capsys.readouterr().out
    assert Run.resume("parts").model.config.labels == ("NN", "VB")
    named = ["train", "bert-tagger", *options, "--label-column", "tag"]
    assert "--label-column is 'tag' (must be a number from 1" in refused(*named, capsys=capsys)


def test_columns_of_what_is_no_table_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("labels.txt").write_text("good a film\nbad no film\n" * 9)
    for words in (
        ["train", "bow-classifier", "labels.txt", "--text-column", "2"],
        ["train", "bow-classifier", "--text-column", "2"],
        ["train", "gpt", "pydoc", "--text-column", "2"],
        ["train", "gpt", "labels.txt", "--text-column", "2"],
    ):
        assert "no table, but --text-column is given (leave it out)" in refused(*words, capsys=capsys)


def test_prompts_come_from_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--text-column", "kicker", "--label-column", "desk"]
    main(["train", "bow-classifier", "odd.csv", *options, "--max-steps", "8", "--out", "run"])
    capsys.readouterr()
    Path("new.csv").write_text("n,kicker\n1,goal cup team\n2,law war vote\n")
    main(["sample", "run", "--prompts-file", "new.csv", "--text-column", "kicker"])
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()] == ["sport", "world"]
    assert "new.csv: text is 'kicker'" in shown.err


def test_other_commands_read_the_same_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["data", "build", "odd.csv", "--out", "shards"],
        ["data", "stats", "odd.csv"],
        ["tokenize", "train", "odd.csv", "--vocab-size", "300", "--out", "t.json"],
        ["ngram", "odd.csv", "--samples", "0"],
        ["train", "word2vec", "odd.csv", "--dim", "4", "--epochs", "1", "--out", "words"],
    ):
        assert "which is the text?" in refused(*words, capsys=capsys)
        main([*words, "--text-column", "kicker"])
        said = capsys.readouterr()
        assert "odd.csv: text is 'kicker'; the first row names the columns; 243 rows" in said.err + said.out


def test_the_doctor_shows_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "odd.csv", "--family", "bow-classifier"])
    said = capsys.readouterr().err
    for line in ("1  key +243 of 243 .* numbers of rows", "3 .* part .* constant", "4 .* desk .* labels"):
        assert re.search(line, said), said
    assert "which is the text and which the label?" in said
    words = ["doctor", "odd.csv", "--family", "bow-classifier", "--text-column", "kicker", "--label-column"]
    assert "different labels" in refused(*words, "key", capsys=capsys)
    main([*words, "desk", "--json"])
    assert json.loads(capsys.readouterr().out)["findings"]
