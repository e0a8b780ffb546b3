"""The expressions that split text into words in the published byte-level BPE tokenizers.

A pattern is one expression or several, applied in turn: each cuts the pieces that the one before it left, and what it
does not match stays a piece. The C++ extension runs all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chainrule.errors import ConfigError
from chainrule.text.unicode import expressions

Pattern = str | tuple[str, ...]  # the name of a known pattern, or expressions

_WORDS = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"[\s]+(?![^\s])|[\s]+"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|" + _SPACES
# tiktoken's cl100k_base takes white space at the end of a text as one word; Llama 3 splits it after a new line.
GPT4 = _WORDS + r"|[\s]+\z|[\s]*[\r\n]+|" + _SPACES
LLAMA3 = _WORDS + r"|[\s]*[\r\n]+|" + _SPACES

# Newer spellings of the same parts.
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE = r"[^\r\n\p{L}\p{N}]?"
_MARKS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|"


def _qwen(letters: str, numbers: str, others: str = r"\p{L}\p{N}") -> str:
    return rf"{_ENDINGS}|{_BEFORE}{letters}+|{numbers}| ?[^\s{others}]+[\r\n]*|{_LINES}"


QWEN2 = _qwen(r"\p{L}", r"\p{N}")
QWEN35 = _qwen(r"[\p{L}\p{M}]", r"\p{N}", r"\p{L}\p{M}\p{N}")
O200K = rf"{_BEFORE}{_UPPER}*{_LOWER}+{_ENDINGS}?|{_BEFORE}{_UPPER}+{_LOWER}*{_ENDINGS}?|\p{{N}}{{1,3}}{_MARKS}{_LINES}"
TEKKEN = rf"{_BEFORE}{_UPPER}*{_LOWER}+|{_BEFORE}{_UPPER}+{_LOWER}*|\p{{N}}{_MARKS}{_LINES}"
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"

DIGIT, DIGITS, THREE = r"\p{N}", r"\p{N}+", r"[0-9][0-9][0-9]"
LINE_END = "[\r\n]"
_ALPHABETS = (
    r"A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώ"
    r"ᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏"
    r"𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_IDEOGRAPHS = r"[一-龥ࠀ-一가-퟿]+"
_DEEPSEEK3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"""
    "\r\n"
    r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
    "[\r\n]*|"
    r"\s*"
    "[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
PATTERNS: dict[str, tuple[str, ...]] = {
    "gpt2": (GPT2,),
    "gpt4": (GPT4,),
    "llama3": (LLAMA3,),
    "o200k": (O200K,),
    "qwen2": (QWEN2,),
    "qwen35": (QWEN35,),
    "tekken": (TEKKEN,),
    "smollm": (DIGIT, GPT2),
    "falcon": (r"[\p{P}\$\+<=>\^~\|`]+", GPT2, THREE),
    "bloom": (BLOOM,),
    "viking": (BLOOM, DIGIT),
    "deepseek-llm": (
        LINE_END, rf"\s?[{_ALPHABETS}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", _IDEOGRAPHS, DIGITS
    ),
    "deepseek-coder": (LINE_END, r"\s?\p{L}+", r"\s?\p{P}+", _IDEOGRAPHS, DIGIT),
    "deepseek-v3": (r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", _DEEPSEEK3),
    "gguf-default": (r"[\p{P}\$\+<=>\^~\|]+", GPT2, DIGITS, THREE),
}  # fmt: skip
NATIVE = ("gpt2", "gpt4", "llama3")  # in the order of pretokenize.hpp

# Other spellings of the same expressions.
_WORDS_3 = rf"{_BEFORE}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_LINES}"
SPELLINGS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": GPT2,
    rf"{_ENDINGS}|{_WORDS_3}": LLAMA3,
    _DEEPSEEK3.replace("\r", r"\r").replace("\n", r"\n"): _DEEPSEEK3,
    r" ?[^(\s|[.,!?…。，、।۔،])]+": BLOOM,
    r"[\r\n]": LINE_END,
    r"[0-9]{3}": THREE,
}

expressions.know(*(expression for steps in PATTERNS.values() for expression in steps), *SPELLINGS)
_NAMES = {steps: name for name, steps in PATTERNS.items()}
_NAME = re.compile(r"[\w.-]+")


def check_pattern(pattern: str | Sequence[str]) -> Pattern:
    r"""The name of a known pattern, or its expressions, each of which must be valid.

    >>> check_pattern("llama3")
    'llama3'
    >>> check_pattern([r"\p{N}", GPT2])
    'smollm'
    """
    if isinstance(pattern, str):
        if pattern in PATTERNS:
            return pattern
        if _NAME.fullmatch(pattern):
            names = ", ".join(PATTERNS)
            raise ConfigError(f"pattern: got {pattern!r} (must be one of {names}, or a regular expression)")
        pattern = (pattern,)
    if isinstance(pattern, dict) or not all(
        isinstance(expression, str) and expression for expression in pattern
    ):
        said = "''" if pattern == ("",) else repr(pattern)
        raise ConfigError(f"pattern: got {said} (must be a name, or a list of regular expressions)")
    steps = tuple(SPELLINGS.get(expression, expression) for expression in pattern)
    for expression in steps:
        expressions.spans(expression)
    return _NAMES.get(steps, steps)


def steps_of(pattern: Pattern) -> tuple[str, ...]:
    """The expressions of a pattern."""
    return PATTERNS[pattern] if isinstance(pattern, str) else pattern
