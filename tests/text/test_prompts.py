"""Prompts with examples, and without."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.text import few_shot

words = st.text("abc ", min_size=1, max_size=5)


@pytest.mark.requirement("R-374")
@given(st.lists(st.tuples(words, words), max_size=5), words)
def test_k_examples_and_an_open_end(examples: list[tuple[str, str]], query: str) -> None:
    prompt = few_shot(query, examples, instruction="Do it.")
    assert prompt.startswith("Do it.\n\n")
    found = re.findall(r"^Input: (.*)\nOutput: (.+)$", prompt, flags=re.MULTILINE)
    assert found == examples
    assert prompt.endswith(f"Input: {query}\nOutput:")
    assert prompt.count("Output:") == len(examples) + 1


@pytest.mark.requirement("R-374")
def test_zero_shot_and_other_shapes() -> None:
    assert few_shot("2 + 2 =", shape="{input} {output}") == "2 + 2 ="
    prompt = few_shot(
        "sea", [("sun", "Sonne"), ("{output}", "{input}")], shape="{input} => {output}", between="\n"
    )
    assert prompt == "sun => Sonne\n{output} => {input}\nsea =>"
    for shape in ("{input}", "{output}: {input}", "{input}{input}{output}", ""):
        with pytest.raises(ConfigError, match=r"must have \{input\} once and end with \{output\}"):
            few_shot("x", shape=shape)
