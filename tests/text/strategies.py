"""Texts for the tokenizers' property tests."""

from __future__ import annotations

from hypothesis import strategies as st

any_text = st.text(st.characters(codec=None), max_size=60)  # all of Unicode, lone surrogates included
any_unicode = st.text(st.characters(codec="utf-8"), max_size=60)
words = st.sampled_from(
    ["low", "lower", "lowest", "new", "Newer", "wíder", "你好", "\N{GRINNING FACE}", "don't"]
)
gaps = st.sampled_from([" ", "  ", "\n", "\t", ", ", ". ", "-", " (", ") "])
wordy_text = st.lists(st.tuples(words, gaps), max_size=12).map(lambda ps: "".join(a + b for a, b in ps))
a_text = st.one_of(any_text, wordy_text)
