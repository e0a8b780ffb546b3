"""The rule that scores answers in place of people: stated, so that a result can be checked against it.

    score = 2 if the answer begins with "Return" + 1 if it ends by itself + the fraction of letters and spaces in it,
            0 if it is empty

Docstrings often begin with "Return": a model can learn it, and it is not what the pretraining was about. Of two answers
to one prompt the one with the higher score is preferred. The rule says nothing of length: judges who prefer short
answers teach a reward model that the empty one is best, and PPO finds out.
"""

from __future__ import annotations

RULE = (
    'score = 2 if it begins with "Return", plus 1 if it ends by itself, plus the fraction of letters and spaces in it; '
    "0 if it is empty"
)


def score(answer: str, *, ended: bool) -> float:
    """How good an answer is

    >>> score("Return it.", ended=True), score("A b", ended=False), score("", ended=True)
    (3.9, 1.0, 0.0)
    """
    text = answer.strip()
    if not text:
        return 0.0
    letters = sum(each.isalpha() or each == " " for each in text) / len(text)
    return 2.0 * text.startswith("Return") + 1.0 * ended + letters
