"""Multiple choice: how often a language model expects the right answer more than the wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chainrule.data.read.questions import Question
from chainrule.errors import ConfigError, DataError
from chainrule.generate.sample import Model
from chainrule.generate.score import By, compare
from chainrule.text import Tokenizer
from chainrule.text.unicode.utf8 import to_utf8


def answer(model: Model, tokenizer: Tokenizer, question: Question, between: str = " ") -> dict[By, int]:
    """The number of the choice with the highest ln P after the question: in total, per token, per byte of the choice

    Of equal ones it is the first. `between` stands between question and choice. White space at its end is scored with
    the choice, since the tokens of most tokenizers begin with it, but is none of the choice's bytes.
    """
    return {by: numbers[0] for by, numbers in likeliest(model, tokenizer, question, between).items()}


def likeliest(model: Model, tokenizer: Tokenizer, question: Question, between: str) -> dict[By, list[int]]:
    """The numbers of all choices that share the highest score."""
    before = question.text + between
    stem = before.rstrip()
    space = before[len(stem) :]
    texts = [space + choice for choice in question.choices]
    try:
        found = {each.text: each for each in compare(model, tokenizer, stem, texts, by="total")}
    except (ConfigError, DataError) as error:
        raise DataError(f"{question.where}: {error}") from error
    candidates = [found[text] for text in texts]
    scores: dict[By, list[float]] = {
        "total": [each.total for each in candidates],
        "token": [each.by("token") for each in candidates],
        "byte": [each.total / len(to_utf8(each.text[len(space) :])) for each in candidates],
    }
    return {by: [i for i, one in enumerate(each) if one == max(each)] for by, each in scores.items()}


def multiple_choice(
    model: Model,
    tokenizer: Tokenizer,
    questions: Sequence[Question],
    between: str = " ",
    *,
    tell: Callable[[int], None] = lambda done: None,
) -> dict[str, float]:
    """The fraction of questions that `answer` answers rightly by each measure, and the fraction that guessing reaches

    Of k choices with the same score each is 1/k of the answer, so that the order of the choices does not matter.
    `tell` is called with the number of questions done.

    >>> import chainrule as cr
    >>> tokenizer, ends = cr.text.CharTokenizer("abc"), cr.models.Terminals(3, None)
    >>> model = cr.models.NGram.fit([tokenizer.encode("abbbca")], order=2, vocab_size=3, ends=ends)
    >>> question = cr.data.Question("a", ("a", "bb"), answer=1)
    >>> cr.generate.multiple_choice(model, tokenizer, [question], between="")["accuracy"]
    1.0
    """
    if not questions:
        raise ConfigError("multiple choice: no questions (must be at least one)")
    right: dict[By, float] = {"total": 0.0, "token": 0.0, "byte": 0.0}
    for done, question in enumerate(questions, start=1):
        wanted = question.choices[question.answer]
        for by, numbers in likeliest(model, tokenizer, question, between).items():
            right[by] += sum(question.choices[i] == wanted for i in numbers) / len(numbers)
        tell(done)
    n = len(questions)
    found = {"questions": n, "chance": sum(1 / len(question.choices) for question in questions) / n}
    names: dict[str, By] = {"accuracy": "total", "accuracy_per_token": "token", "accuracy_per_byte": "byte"}
    return found | {name: right[by] / n for name, by in names.items()}
