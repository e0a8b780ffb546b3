"""The rule that judges answers in place of people: stated, so that a result can be checked against it.

    score = 2 if the answer begins with "Return" + 1 if it ends by itself - characters / 100

Docstrings often begin with "Return", and short ones are better: a model can learn both, and neither is what the
pretraining was about. Of two answers to one prompt the one with the higher score is preferred.
"""

from __future__ import annotations

RULE = (
    'score = 2 if it begins with "Return", plus 1 if it ends by itself, minus a hundredth of its characters'
)


def score(answer: str, *, ended: bool) -> float:
    """How good an answer is

    >>> score("Return the sum.", ended=True), score("The", ended=False)
    (2.85, -0.03)
    """
    text = answer.strip()
    return round(2.0 * text.startswith("Return") + 1.0 * ended - len(text) / 100, 6)
