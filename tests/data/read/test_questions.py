"""Multiple-choice questions: the layouts of published sets, and what is broken named with line and field."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.data import Question, read_questions
from chainrule.errors import DataError

WANTED = ("Which is a fish?", ("an oak", "a trout", "a crow"), 1)
TEXTS = list(WANTED[1])


def written(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def labeled(*labels: str) -> list[dict[str, str]]:
    return [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=True)]


@pytest.mark.parametrize(
    "record",
    [
        {"question": WANTED[0], "choices": TEXTS, "answer": 1},  # MMLU
        {"question": WANTED[0], "choices": TEXTS, "answer": "B"},
        {"prompt": WANTED[0], "options": TEXTS, "answer": "a trout"},
        {"ctx": WANTED[0], "endings": TEXTS, "label": "1", "ctx_a": "Which", "ind": 4},  # HellaSwag
        {
            "question": WANTED[0],
            "choices": {"text": TEXTS, "label": ["A", "B", "C"]},
            "answerKey": "B",
        },  # ARC
        {"question_stem": WANTED[0], "choices": {"text": TEXTS, "label": ["1", "2", "3"]}, "answerKey": "2"},
        {"question": {"stem": WANTED[0], "choices": labeled("x", "y", "z")}, "answerKey": "y", "id": "q7"},
        {
            "question": WANTED[0],
            "choice1": TEXTS[0],
            "choice2": TEXTS[1],
            "choice3": TEXTS[2],
            "answer": "choice2",
        },
        {"question": WANTED[0], "A": TEXTS[0], "B": TEXTS[1], "C": TEXTS[2], "answer": "b"},
        {
            "question": WANTED[0],
            "A": TEXTS[0],
            "C": TEXTS[1],
            "D": TEXTS[2],
            "answer": "C",
        },  # the name of a field
    ],
)
def test_layouts_of_published_sets(tmp_path: Path, record: dict[str, Any]) -> None:
    (found,) = read_questions(written(tmp_path / "q.jsonl", record))
    assert found[:3] == WANTED and found.where.endswith("q.jsonl: line 1")


def test_tables(tmp_path: Path) -> None:
    file = io.StringIO(newline="")
    columns = ["ending10", "sent1", "ending2", "prompt", "ending0", "label"]
    rows = [
        columns,
        ["a crow", "?", "a trout", WANTED[0], "an oak", "1"],
        ["", "?", "no", "True?", "yes", "A"],
    ]
    csv.writer(file).writerows(rows)
    (tmp_path / "q.csv").write_text(file.getvalue())
    first, second = read_questions(tmp_path / "q.csv")
    assert first[:3] == WANTED  # the columns by number, not by place
    assert second[:3] == ("True?", ("yes", "no"), 0)  # fewer choices leave cells empty
    (tmp_path / "q.tsv").write_text(f"question\tchoices\tanswer\n{WANTED[0]}\t{json.dumps(TEXTS)}\ta trout\n")
    assert read_questions(tmp_path / "q.tsv")[0][:3] == WANTED
    record = {"question": WANTED[0], "choices": {"text": TEXTS, "label": ["A", "B", "C"]}, "answerKey": "B"}
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "q.parquet")
    assert read_questions(tmp_path / "q.parquet")[0] == Question(
        *WANTED, f"{tmp_path / 'q.parquet'}: record 1"
    )


plain = st.text("aAbB01 é鱼", min_size=1).filter(lambda text: text.strip() == text)


@settings(max_examples=40)
@given(plain, st.lists(plain, min_size=2, max_size=5), st.data())
def test_a_number_in_json_is_a_place_and_a_label_comes_first(
    tmp_path_factory: pytest.TempPathFactory, text: str, choices: list[str], data: st.DataObject
) -> None:
    right = data.draw(st.integers(0, len(choices) - 1))
    labels = data.draw(st.permutations(ascii_uppercase[: len(choices)]))
    path = tmp_path_factory.mktemp("q") / "q.jsonl"
    by_place = {"question": text, "choices": choices, "answer": right}
    by_label = {"question": text, "choices": {"text": choices, "label": labels}, "answer": labels[right]}
    for found in read_questions(written(path, by_place, by_label)):
        assert found[:3] == (text, tuple(choices), right)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": None}, "line 2: 'question' holds None (must be text)"),
        ({"question": " "}, "line 2: 'question' is empty"),
        ({"question": ...}, "has no field for the question (must be one of question, prompt, ctx"),
        ({"choices": ...}, "has no field for the choices (must be choices, endings, options, or A, B, C"),
        ({"choices": ["one"]}, "line 2: 1 choices (must be at least two)"),
        ({"choices": []}, "line 2: 0 choices (must be at least two)"),
        ({"choices": ["one", 2]}, "line 2: 'choices' holds an int (must be text)"),
        ({"choices": "one two"}, "line 2: 'choices' is 'one two' (must be a list, in a table as"),
        ({"choices": {"text": ["a", "b"], "label": ["A"]}}, "must be a list of texts, or texts with labels"),
        ({"choices": [{"text": "a"}, {"text": "b"}]}, "line 2: 'choices' holds None"),
        (
            {"answer": ...},
            "has no field for the answer (must be one of answer, answerKey, label, gold; there",
        ),
        ({"answer": 2}, "line 2: 'answer' is '2', which is none of the 2 choices (must be from 0 to 1"),
        ({"answer": -1}, "line 2: 'answer' is '-1', which is none"),
        ({"answer": "C"}, "line 2: 'answer' is 'C', which is none"),
        ({"answer": True}, "line 2: 'answer' is 'True', which is none"),
        ({"answer": None}, "line 2: 'answer' is 'None', which is none"),
        (
            {"choices": ["1", "0"], "answer": "1"},
            "is '1', which may be choice 0 or 1, counted from 0 (give its l",
        ),
        (
            {"choices": ["B", "A"], "answer": "A"},
            "is 'A', which may be choice 0 or 1, counted from 0 (give its n",
        ),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = {"question": "one or two?", "choices": ["one", "two"], "answer": 0}
    bad = {name: value for name, value in (good | change).items() if value is not ...}
    with pytest.raises(DataError) as caught:
        read_questions(written(tmp_path / "q.jsonl", good, bad))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_files_without_questions(tmp_path: Path) -> None:
    for name, content, message in (
        (
            "q.txt",
            "a question\n",
            "q.txt: not a known format of records (must be .jsonl, .json, .csv, .tsv or .parquet)",
        ),
        ("q.csv", "question,A,B,answer\n", "q.csv: no questions"),
        ("q.tsv", "\t\t\n", "q.tsv: no"),
        ("q.jsonl", '{"question": \n', "q.jsonl: line 1 is not JSON"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError) as caught:
            read_questions(tmp_path / name)
        assert message in str(caught.value)
    with pytest.raises(DataError, match="no such file"):
        read_questions(tmp_path / "none.jsonl")


@pytest.mark.parametrize("name", ["choice", "sol", "option", "ending0"])
def test_fields_that_count_from_1_leave_a_number_open_unless_the_file_has_a_0(
    tmp_path: Path, name: str
) -> None:
    def record(answer: int | str) -> dict[str, Any]:
        return {"goal": WANTED[0], "label": answer} | {f"{name}{i + 1}": TEXTS[i] for i in range(3)}

    for answer in (1, 2, "1"):
        with pytest.raises(DataError, match=rf"'{answer}', which may be {name}{answer} or {name}.* is 0"):
            read_questions(written(tmp_path / "q.jsonl", record("A"), record(answer)))
    for zero in (0, "0"):  # as in PIQA
        found = read_questions(written(tmp_path / "q.jsonl", record(1), record(zero), record("1")))
        assert [question.answer for question in found] == [1, 0, 1]
