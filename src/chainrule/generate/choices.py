"""Multiple choice: how often a language model expects the right answer more than the wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from chainrule.data.questions import Question
from chainrule.errors import ChainruleError, ConfigError, DataError
from chainrule.generate.sample import Model
from chainrule.generate.score import By, Candidate, compare
from chainrule.text import Tokenizer
from chainrule.text.utf8 import to_utf8


def answer(model: Model, tokenizer: Tokenizer, question: Question, between: str = " ") -> dict[By, int]:
    """The number of the choice with the highest ln P after the question: in total, per token, per byte of the choice

    `between` stands between question and choice. White space at its end is scored with the choice, since the tokens of
    most tokenizers begin with it, but is none of the choice's bytes.
    """
    before = question.text + between
    stem = before.rstrip()
    space = before[len(stem) :]
    texts = [space + choice for choice in question.choices]
    try:
        found = compare(model, tokenizer, stem, texts, by="total")
    except ChainruleError as error:
        raise DataError(f"{question.where}: {error}") from error

    def per_byte(candidate: Candidate) -> float:
        return candidate.total / len(to_utf8(candidate.text[len(space) :]))

    best: dict[By, Candidate] = {
        "total": found[0],
        "token": max(found, key=lambda candidate: candidate.by("token")),
        "byte": max(found, key=per_byte),
    }
    return {measure: texts.index(candidate.text) for measure, candidate in best.items()}


def multiple_choice(
    model: Model,
    tokenizer: Tokenizer,
    questions: Sequence[Question],
    between: str = " ",
    *,
    tell: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """The share of questions that `answer` answers rightly by each measure, and the share for which guessing is enough

    `tell` hears how many questions are done.

    >>> import chainrule as cr
    >>> tokenizer, ends = cr.text.CharTokenizer("abc"), cr.models.Terminals(3, None)
    >>> model = cr.models.NGram.fit([tokenizer.encode("abbbca")], order=2, vocab_size=3, ends=ends)
    >>> question = cr.data.Question("a", ("a", "bb"), answer=1)
    >>> cr.generate.multiple_choice(model, tokenizer, [question], between="")["accuracy"]
    1.0
    """
    if not questions:
        raise ConfigError("multiple choice: no questions (must be at least one)")
    right: Counter[By] = Counter()
    for done, question in enumerate(questions, start=1):
        for measure, chosen in answer(model, tokenizer, question, between).items():
            right[measure] += question.choices[chosen] == question.choices[question.answer]
        tell(done)
    n = len(questions)
    return {
        "questions": n,
        "chance": sum(1 / len(question.choices) for question in questions) / n,
        "accuracy": right["total"] / n,
        "accuracy_per_token": right["token"] / n,
        "accuracy_per_byte": right["byte"] / n,
    }
