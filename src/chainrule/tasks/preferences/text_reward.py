"""A reward that is a function of texts, written by the user."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chainrule.align.advantages import Rows
from chainrule.align.policy_gradient import Reward
from chainrule.align.rollouts import Rollout
from chainrule.errors import ChainruleError, Setting
from chainrule.text import Tokenizer
from chainrule.text.chat.answers import AnswerCoder

TextReward = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Prompts and answers to scores."""


def of_texts(tokenizer: Tokenizer, function: TextReward) -> Reward:
    """A function of texts as the reward of a rollout; the token that ends an answer is not part of its text."""
    end = AnswerCoder(tokenizer).end

    def score(rollout: Rollout) -> Rows:
        answers = [answer[:-1] if answer[-1] == end else answer for answer in rollout.answers]
        texts = [list(map(tokenizer.decode, rows)) for rows in (rollout.prompts, answers)]
        try:
            return np.asarray(function(*texts), np.float64)
        except Exception as error:  # it is not ours: anything may go wrong in it
            rule = "must take lists of prompts and answers and return a number for each"
            said = f" {named(function)}: {where(error)}{type(error).__name__}: {error} ({rule})"
            raise ChainruleError("ppo: ", Setting("reward_function"), said) from error

    return score


def where(error: Exception) -> str:
    """The place in the code that was called from here; nothing if the call itself was refused."""
    places = traceback.extract_tb(error.__traceback__)[1:]
    return f"{Path(places[-1].filename).name}, line {places[-1].lineno}: " if places else ""


def named(function: Any) -> str:
    """module:name of a function."""
    return (
        f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__name__)}"
    )
