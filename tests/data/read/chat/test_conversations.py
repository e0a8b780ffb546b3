"""Files of conversations: their formats, their lines, copies, and what is held back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chainrule.data import Columns, Conversation, load_conversations
from chainrule.data.read.chat.conversations import ConversationCorpus
from chainrule.errors import DataError

PAIRS = [(f"What is {n} + 1?", f"It is {n + 1}.") for n in range(60)]
WANT = tuple(Conversation.of(*pair) for pair in PAIRS)


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


def as_lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def test_formats_of_files(tmp_path: Path) -> None:
    records = [{"prompt": ask, "completion": say} for ask, say in PAIRS]
    rows = "".join(f"{ask}\t{say}\n" for ask, say in PAIRS)
    files = [
        written(tmp_path / "a.jsonl", as_lines(records)),
        written(tmp_path / "a.json", records),
        written(tmp_path / "named.csv", "prompt,completion\n" + rows.replace("\t", ",")),
        written(tmp_path / "bare.tsv", rows),
        written(tmp_path / "other.tsv", "src\ttgt\n" + rows),
    ]
    found = [load_conversations(path) for path in files]
    assert all(corpus.conversations == WANT for corpus in found)
    assert len({corpus.sha256 for corpus in found}) == 1
    assert found[0].name == str(files[0]) and found[0].version == "file"
    again = load_conversations(files[3], Columns(**found[3].reading.columns))  # type: ignore[union-attr]
    assert again.conversations == WANT


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "".join(f"{ask}\tnoun\t{say}\n" for ask, say in PAIRS))
    with pytest.raises(DataError, match="3 columns without names: which is the source and which the target"):
        load_conversations(path)
    assert load_conversations(path, Columns(source_column="1", target_column="3")).conversations == WANT


def test_columns_of_a_layout_are_read_as_its_fields(tmp_path: Path) -> None:
    """Two of the three columns alone would teach answers to questions that are cut short."""
    path = written(tmp_path / "a.csv", "instruction,input,output\nAdd.,1 1,2\nAdd.,2 2,4\n")
    assert [each.question for each in load_conversations(path).conversations] == [
        "Add.\n\n1 1",
        "Add.\n\n2 2",
    ]


def test_copies_are_left_out_and_counted(tmp_path: Path) -> None:
    records = [{"question": ask, "answer": say} for ask, say in PAIRS[:3]]
    corpus = load_conversations(written(tmp_path / "a.jsonl", as_lines([*records, *records])))
    assert (corpus.conversations, corpus.copies) == (WANT[:3], 3)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", '{"prompt": "a", "completion": "b"}\n{"prompt": "a"}\n', "a.jsonl: line 2 has 'prompt'"),
        (
            "a.json",
            '[\n{"prompt": "a", "completion": "b"},\n\n {"prompt": "a"}]',
            "a.json: line 4 has 'prompt'",
        ),
        ("a.json", '[{"prompt": "a"', "the record in line 1 is not JSON"),
        ("a.json", '[{"prompt": "a", "completion": "b"} 3]', "line 1 is not followed by a comma or ]"),
        ("a.json", "[3]", "line 1 holds a int (must be an object)"),
        ("a.json", '{"prompt": "a"}', "does not begin with [ (must be a list of objects"),
        ("a.json", "[]", "no conversations (must have at least two)"),
        ("a.tsv", "a\tb\nc\t\nd\te\n", "line 2 has nothing in column 2, its target (must be a text"),
        ("a.csv", "prompt,completion\na,b\n,c\n", "line 3 has an empty 'prompt'"),
        (
            "a.txt",
            "a b",
            "not a file of conversations (must be .json, .jsonl, .csv, .tsv or .parquet, or docst",
        ),
    ],
)
def test_broken_files_are_refused_by_line(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        load_conversations(written(tmp_path / name, content))
    assert said in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_conversations(tmp_path / "a.jsonl")


def test_a_twentieth_is_held_back_by_the_question() -> None:
    talks = [Conversation.of(f"question {n % 800}", f"answer {n}") for n in range(1600)]
    training, held_out = ConversationCorpus("x", "1", tuple(talks)).parts()
    assert len(training) + len(held_out) == 1600 and 40 < len(held_out) < 130
    assert not {each.question for each in training} & {each.question for each in held_out}
    more = [*talks, Conversation.of("one more", "yes")]
    assert set(held_out) <= set(ConversationCorpus("x", "1", tuple(more)).parts()[1])


def test_of_a_few_conversations_one_is_held_back() -> None:
    for count in (2, 3, 5):
        training, held_out = ConversationCorpus("x", "1", WANT[:count]).parts()
        assert len(training) + len(held_out) == count and training and held_out
    with pytest.raises(DataError, match=r"1 question .must be at least two"):
        ConversationCorpus("x", "1", WANT[:1]).parts()


@pytest.mark.requirement("R-377")
def test_the_built_in_conversations_are_about_functions() -> None:
    corpus = load_conversations()
    assert (corpus.name, len(corpus.conversations) > 1000) == ("docstrings", True)
    assert all(
        each.question.startswith("What does this Python function do?\n\ndef ")
        for each in corpus.conversations
    )
    assert all(each.answer for each in corpus.conversations)


@pytest.mark.parametrize("name", ["pydoc", "stdlib"])
def test_a_built_in_text_is_not_called_unknown(name: str) -> None:
    with pytest.raises(
        DataError, match=rf"^{name}: a built-in text, .* \(must be a file of what this model learns"
    ):
        load_conversations(name)
