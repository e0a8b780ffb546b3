"""Tokenizers by name: which are learned, of which size, and what is refused."""

from __future__ import annotations

import pytest

from chainrule.errors import ConfigError
from chainrule.text import BPETokenizer, CharTokenizer, UnigramTokenizer, WordPieceTokenizer
from chainrule.text.training.recipe import Recipe, suitable_size

TEXTS = ["low lower lowest", "new newer newest"] * 5


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("char", CharTokenizer),
        ("bpe:265", BPETokenizer),
        ("unigram:290", UnigramTokenizer),
        ("wordpiece:30", WordPieceTokenizer),
    ],
)
def test_a_name_is_a_kind_and_a_size(name: str, kind: type) -> None:
    recipe = Recipe.of(name)
    assert recipe and str(recipe) == name
    tokenizer = recipe.learn(TEXTS, ("[PAD]", "[UNK]"))
    assert type(tokenizer) is kind and {"[PAD]", "[UNK]"} <= tokenizer.special_ids.keys()
    assert recipe.vocab_size is None or tokenizer.vocab_size <= recipe.vocab_size
    assert tokenizer.decode(tokenizer.encode("newest low")) == "newest low"


def test_without_a_size_it_grows_with_the_text() -> None:
    recipe = Recipe.of("bpe")
    assert recipe == Recipe("bpe", None)
    assert recipe.learn(["low " * 50]).vocab_size < suitable_size(1) == 500
    assert suitable_size(1_000_000) == 5000 and suitable_size(10**9) == 8000


@pytest.mark.parametrize("name", [None, "bpe.json", "book", "./bpe", "", "word"])
def test_other_names_are_files(name: str | None) -> None:
    assert Recipe.of(name) is None


@pytest.mark.parametrize(
    "name", ["bpe:x", "bpe:", "bpe:-3", "unigram:1.5", "bpe:99999999999", "char:4", "bpe:٣"]
)
def test_what_is_no_size_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^tokenizer is .* \(must be "):
        Recipe.of(name)


@pytest.mark.parametrize("name", ["bpe:0", "bpe:255", "unigram:3", "wordpiece:2"])
def test_a_vocabulary_that_is_too_small_names_the_flag_and_the_least(name: str) -> None:
    recipe = Recipe.of(name)
    assert recipe
    with pytest.raises(ConfigError, match=rf"^tokenizer is {name} \(must be at least \d+"):
        recipe.learn(TEXTS)


def test_what_was_learned_fits_its_name() -> None:
    tokenizer = Recipe("bpe", 265).learn(TEXTS)
    assert Recipe("bpe").fits(tokenizer) and Recipe("bpe", 265).fits(tokenizer)
    assert not Recipe("bpe", 270).fits(tokenizer) and not Recipe("unigram").fits(tokenizer)
