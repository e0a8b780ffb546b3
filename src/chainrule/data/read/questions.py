"""Multiple-choice questions: a text, its choices, and the right one.

.jsonl .csv .tsv .parquet, with fields by the names that published sets have (ARC, HellaSwag, MMLU, OpenBookQA, PIQA):

question   question, prompt, ctx, question_stem, stem, goal
choices    a list of texts: choices, endings, options; texts with labels, as {"text": [...], "label": [...]} or
           [{"text", "label"}, ...]; or a field for each: A, B, C; ending0, ending1; choice1, choice2; sol1, sol2
answer     answer, answerKey, label, gold: the label of a choice, its number from 0, its letter, or its text

If the fields begin with choice1, some sets count answers from 0 and some from 1: a number is then accepted only if
another answer of the file is 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from chainrule.data.read.tabular.records import Record, records, some, unit
from chainrule.errors import ChainruleError, DataError, kind_of

QUESTIONS = ("question", "prompt", "ctx", "question_stem", "stem", "goal")
LISTS = ("choices", "endings", "options")
NUMBERED = ("choice", "ending", "option", "sol")
FIRST = rf"({'|'.join(NUMBERED)})0*1"  # the first field, in sets whose fields count from 1
ANSWERS = ("answer", "answerKey", "label", "gold")


class Question(NamedTuple):
    """A question, its choices, and the index of the right one."""

    text: str
    choices: tuple[str, ...]
    answer: int
    where: str = "question"
    """The file and the line, for messages."""


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, in order."""
    rows = list(records(path))
    from_0 = any(str(record.get(name)).strip() == "0" for _, record in rows for name in ANSWERS)
    found = [_question(record, f"{path}: {unit(path)} {number}", from_0) for number, record in rows]
    if not found:
        raise DataError(f"{path}: no questions (must have a header, and a question per row)")
    return found


def are_questions(path: Path) -> bool:
    """Is the first record of a file a multiple-choice question?"""
    try:
        for _, record in records(path):
            _question(record, str(path), True)
            return True
    except ChainruleError:
        pass
    return False


def _question(record: Record, where: str, from_0: bool) -> Question:
    if isinstance(inner := record.get("question"), dict):  # as in ARC's own files
        record = {name: value for name, value in record.items() if name != "question"} | inner
    name = _first(record, QUESTIONS, "question", where)
    text = _text(record[name], f"{where}: {name!r}")
    choices, labels = _choices(record, where)
    if len(choices) < 2:
        raise DataError(f"{where}: {len(choices)} choices (must be at least two)")
    name = _first(record, ANSWERS, "answer", where)
    number = _answer(record[name], choices, labels, f"{where}: {name!r}")
    said = str(record[name]).strip()
    if said == str(number) and re.fullmatch(FIRST, labels[0] if labels else "") and not from_0:
        both = " or ".join(labels[number - 1 : number + 1])
        rule = "give the field's name; no answer of the file is 0, which would show that they count from 0"
        raise DataError(f"{where}: {name!r} is {said!r}, which may be {both} ({rule})")
    return Question(text, choices, number, where)


def _first(record: Record, names: Sequence[str], what: str, where: str) -> str:
    """The first of these names in the record."""
    for name in names:
        if name in record:
            return name
    rule = f"must be one of {', '.join(names)}; there are {some(record)}"
    raise DataError(f"{where} has no field for the {what} ({rule})")


def _choices(record: Record, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts and their labels, if any; the name of a field per choice is a label."""
    for name in LISTS:
        if name in record:
            return _listed(record[name], f"{where}: {name!r}")
    names = _columns(record)
    while names and record[names[-1]] in ("", None):  # rows with fewer choices leave the last columns empty
        names.pop()
    if not names:
        rule = f"must be {', '.join(LISTS)}, or A, B, C, or choice1, choice2; there are {some(record)}"
        raise DataError(f"{where} has no field for the choices ({rule})")
    return tuple(_text(record[name], f"{where}: {name!r}") for name in names), tuple(names)


def _columns(record: Record) -> list[str]:
    """The names of the fields that hold one choice each, in order."""
    for stem in NUMBERED:
        numbers = {int(name[len(stem) :]): name for name in record if re.fullmatch(stem + "[0-9]{1,3}", name)}
        if numbers:
            return [numbers[number] for number in sorted(numbers)]
    return [letter for letter in ascii_uppercase if letter in record]


def _listed(value: Any, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(value, str):  # a list in a cell of a table
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise DataError(f'{where} is {value[:40]!r} (must be a list, in a table as ["a", "b"])') from None
    if isinstance(value, dict) and {"text", "label"} <= value.keys():
        texts, labels = value["text"], value["label"]
    elif isinstance(value, list) and all(isinstance(each, dict) for each in value):
        texts, labels = ([each.get(key) for each in value] for key in ("text", "label"))
    else:
        texts, labels = value, []
    if not isinstance(texts, list) or not isinstance(labels, list) or len(labels) not in (0, len(texts)):
        raise DataError(f"{where} is {str(value)[:40]!r} (must be a list of texts, or texts with labels)")
    return tuple(_text(text, where) for text in texts), tuple(_text(label, where) for label in labels)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where} holds {kind_of(value)} (must be text)")
    if not value.strip():
        raise DataError(f"{where} is empty (must be text)")
    return value.strip()


def _answer(value: Any, choices: Sequence[str], labels: Sequence[str], where: str) -> int:
    """The index of the right choice; an ambiguous answer is refused."""
    said, n = str(value).strip(), len(choices)
    if said in labels:
        return labels.index(said)
    if isinstance(value, int) and not isinstance(value, bool):  # a number in JSON is never a text
        meant = {value} & set(range(n))
    else:
        meant = {i for i, choice in enumerate(choices) if choice == said}
        meant |= {i for i in range(n) if said.upper() == ascii_uppercase[i : i + 1] or said == str(i)}
    if len(meant) == 1:
        return meant.pop()
    if meant:
        other = "letter" if said.isdecimal() else "number"
        both = " or ".join(str(i) for i in sorted(meant))
        raise DataError(f"{where} is {said!r}, which may be choice {both}, counted from 0 (give its {other})")
    rule = f"must be from 0 to {n - 1}, a letter from A, or the text of a choice"
    raise DataError(f"{where} is {said[:40]!r}, which is none of the {n} choices ({rule})")
