"""Prompts: the ids of a text as its model expects it, and few-shot prompts of an instruction, examples and a query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from chainrule.errors import ConfigError
from chainrule.text.pipeline import PipelineTokenizer
from chainrule.text.tokenizer import Tokenizer
from chainrule.types import Ids

SHAPE = "Input: {input}\nOutput: {output}"
SHIELD = "\ufdd0"  # a noncharacter, which no text may contain: what stands before it is ordinary text


def prompt_ids(tokenizer: Tokenizer, text: str, *, special: bool = False) -> Ids:
    """ids (n,) of a text for a model to continue or to be evaluated on, with bos first where the model expects it.

    With `special` the names of special tokens in the text become these tokens; otherwise they are ordinary text.

    >>> from chainrule.text import BPETokenizer, Conventions
    >>> tokenizer = BPETokenizer.train("", 258, special_tokens=["<s>", "<|end|>"])
    >>> tokenizer.conventions = Conventions(bos=256, add_bos=True)
    >>> prompt_ids(tokenizer, "a<|end|>", special=True).tolist() == [256, *tokenizer.encode("a"), 257]
    True
    """
    ids = marked_ids(tokenizer, text) if special else tokenizer.encode(text)
    c = tokenizer.conventions
    first = np.array([c.bos], np.int32) if c.add_bos and c.bos is not None else tokenizer.encode("")
    begun = np.array_equal(ids[: len(first)], first)  # the text may name bos itself, as chat templates do
    return ids if begun else np.concatenate([first, ids])


def marked_ids(tokenizer: Tokenizer, text: str, *, inside: bool = False) -> Ids:
    """Names of special tokens become these tokens, the longest name first; a text `inside` continues another."""
    if isinstance(tokenizer, PipelineTokenizer) and SHIELD not in text:  # it knows the spaces beside them
        encode = tokenizer.encode_inside if inside else tokenizer.encode
        return encode(text, special="all")
    special, first = tokenizer.special_ids, len(tokenizer.encode(""))
    parts = names_in(tokenizer).split(text)  # text and names in turn
    ids: list[Ids] = []
    for place, part in enumerate(parts):
        plain = part.replace(SHIELD, "")
        if place % 2:
            ids.append(np.array([special[part]], np.int32))
        elif plain:
            ids.append(
                tokenizer.encode_inside(plain) if inside and not place else tokenizer.encode(plain)[first:]
            )
    return np.concatenate(ids) if ids else np.empty(0, np.int32)


def names_in(tokenizer: Tokenizer) -> re.Pattern[str]:
    """An expression that finds the names of special tokens."""
    return _finder(tuple(tokenizer.special_ids))


@lru_cache(maxsize=8)  # every message needs it
def _finder(known: tuple[str, ...]) -> re.Pattern[str]:
    names = sorted(known, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, names))})(?!{SHIELD})" if names else "((?!))")


def shielded(tokenizer: Tokenizer, text: str) -> str:
    """The text with names of special tokens changed, so that `prompt_ids` reads them as ordinary text."""
    plain = text.replace(SHIELD, "")
    return names_in(tokenizer).sub(lambda found: "".join(character + SHIELD for character in found[0]), plain)


def few_shot(
    query: str,
    examples: Sequence[tuple[str, str]] = (),
    *,
    instruction: str = "",
    shape: str = SHAPE,
    between: str = "\n\n",
) -> str:
    """A prompt of an instruction, examples (input, output) and `query`; it ends where the answer begins.

    Without examples it is a zero-shot prompt. `shape` is the format of an example and must end with {output}. The model
    writes the space before the answer, since tokens of words carry it.

    >>> print(few_shot("sea", [("sun", "Sonne"), ("moon", "Mond")], instruction="Translate to German."))
    Translate to German.
    <BLANKLINE>
    Input: sun
    Output: Sonne
    <BLANKLINE>
    Input: moon
    Output: Mond
    <BLANKLINE>
    Input: sea
    Output:
    """
    if shape.count("{input}") != 1 or shape.count("{output}") != 1 or not shape.endswith("{output}"):
        raise ConfigError(f"few_shot: shape is {shape!r} (must have {{input}} once and end with {{output}})")
    before, after = shape.removesuffix("{output}").split("{input}")
    shown = [before + given + after + wanted for given, wanted in examples]
    parts = [instruction] if instruction else []
    return between.join([*parts, *shown, (before + query + after).rstrip(" ")])
