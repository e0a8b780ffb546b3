"""Labeled texts and translations as instructions: templates that make a question of each text.

>>> from chainrule.data.read.chat.templates import TEMPLATES, of_labels
>>> (talk,) = of_labels([("A joy.", "positive")], TEMPLATES["sentiment"], ["positive", "negative"])
>>> talk.question, talk.answer
('Classify the sentiment of this review as positive or negative: A joy.', 'positive')
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence

from chainrule.data.read.chat.layouts import Conversation
from chainrule.errors import ConfigError

TEMPLATES = {
    "sentiment": "Classify the sentiment of this review as {labels}: {text}",
    "classify": "Classify this text as {labels}: {text}",
    "translate": "Translate to {language}: {text}",
    "summarize": "Summarize this text in one sentence: {text}",
}
FIELDS = ("text", "labels", "language")


def of_labels(
    rows: Iterable[tuple[str, str]],
    template: str,
    labels: Sequence[str],
    names: Mapping[str, str] | None = None,
) -> list[Conversation]:
    """Texts with labels: the question names all `labels`, the answer is the text's own.

    `names` are words for labels that are numbers or codes.
    """
    names = names or {}
    spoken = {label: names.get(label, label) for label in labels}
    choices = either(list(spoken.values()))
    check_template(template, "labels", bool(spoken))
    found = []
    for text, label in rows:
        if label not in spoken:
            raise ConfigError(f"template: label {label!r} is not among {choices} (must be one of them)")
        found.append(Conversation.of(_filled(template, text=text, labels=choices), spoken[label]))
    return found


def of_pairs(rows: Iterable[tuple[str, str]], template: str, language: str = "") -> list[Conversation]:
    """Texts and what is to be made of them, such as translations into a language."""
    check_template(template, "language", bool(language))
    return [Conversation.of(_filled(template, text=text, language=language), target) for text, target in rows]


def either(words: Sequence[str]) -> str:
    """positive, negative or neutral"""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def check_template(template: str, field: str, given: bool) -> None:
    """A template has a {text}, and of the other fields only what is known."""
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise ConfigError(f"template: {template!r} ({error}: write {{{{ for a brace)") from error
    if "text" not in names or names - {*FIELDS}:
        rule = f"must have {{text}}, and may have {{labels}} or {{language}}; or be {', '.join(TEMPLATES)}"
        raise ConfigError(f"template: {template!r} ({rule})")
    for name in sorted(names - {"text"}):
        if name != field or not given:
            raise ConfigError(
                f"template: {template!r} has {{{name}}}, which is not known (give it, or leave it out)"
            )


def _filled(template: str, **fields: str) -> str:
    return template.format(**fields)
