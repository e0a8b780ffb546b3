"""Words for gaps: those that the model scores highest at each [MASK], whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.data import SpecialIds
from chainrule.errors import ConfigError, DataError
from chainrule.generate import fill_masks
from chainrule.text import BPETokenizer, CharTokenizer, WordPieceTokenizer

TOKENIZER = WordPieceTokenizer.train("the cat sat on the mat. the dog ran to the door.", 60)
SPECIAL = SpecialIds.of(TOKENIZER.special_ids)


def bert(
    *, next_sentence: bool = True, dropout: float = 0.0, vocab_size: int = TOKENIZER.vocab_size
) -> cr.models.BERTPretraining:
    size = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 16, "vocab_size": vocab_size}
    model = cr.models.make("bert", **size, next_sentence=next_sentence, dropout=dropout)
    rng = np.random.default_rng(3)
    model.load({name: rng.normal(0, 0.5, value.shape) for name, value in model.state().items()})
    return model


@pytest.mark.parametrize("next_sentence", [False, True])
def test_guesses_are_the_highest_scores_of_a_forward_pass(next_sentence: bool) -> None:
    model = bert(next_sentence=next_sentence).eval()
    texts = ["the [MASK] sat", "[MASK] dog ran to the [MASK].", "[MASK]"]
    found = fill_masks(model, TOKENIZER, texts, k=4)
    for text, filled in zip(texts, found, strict=True):
        first, *others = (TOKENIZER.encode(part).tolist() for part in text.split("[MASK]"))
        ids = [SPECIAL.cls, *first, *(id for other in others for id in (SPECIAL.mask, *other)), SPECIAL.sep]
        shares = ops.softmax(model(np.array([ids])).numpy()[0])
        places = [place for place, id in enumerate(ids) if id == SPECIAL.mask]
        assert len(filled.gaps) == len(places)
        for place, guesses in zip(places, filled.gaps, strict=True):
            best = np.sort(shares[place])[::-1][:4]
            np.testing.assert_allclose([guess.probability for guess in guesses], best, rtol=1e-4)
            np.testing.assert_allclose([shares[place, guess.id] for guess in guesses], best, rtol=1e-4)
            assert [TOKENIZER.piece(guess.id) for guess in guesses] == [guess.token for guess in guesses]
            ids[place] = guesses[0].id
        assert filled.text == TOKENIZER.decode(ids[1:-1])


def test_every_token_is_a_guess_and_they_add_up_to_one() -> None:
    (filled,) = fill_masks(bert(), TOKENIZER, ["the [MASK]"], k=TOKENIZER.vocab_size)
    assert sum(guess.probability for guess in filled.gaps[0]) == pytest.approx(1, abs=1e-5)


def test_guesses_are_without_dropout_and_leave_the_mode_alone() -> None:
    model = bert(dropout=0.5).train()
    assert fill_masks(model, TOKENIZER, ["a [MASK]"]) == fill_masks(model, TOKENIZER, ["a [MASK]"])
    assert model.training and fill_masks(model, TOKENIZER, []) == []


def test_a_gap_of_roberta_stands_for_the_space_before_it_too() -> None:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = BPETokenizer.train("the cat sat on the mat. " * 3, 275, special_tokens=special)
    model = bert(vocab_size=tokenizer.vocab_size)
    (joined,) = fill_masks(model, tokenizer, ["the<mask> sat on<mask>. ok "])
    assert len(joined.gaps) == 2
    assert fill_masks(model, tokenizer, ["the <mask> sat on [MASK]. ok "]) == [joined]
    assert fill_masks(model, tokenizer, ["the<mask> sat on<mask>. ok"]) != [joined]  # the end stays as it is
    assert fill_masks(model, tokenizer, ["the<mask>sat on<mask>. ok "]) != [joined]


def test_texts_that_cannot_be_filled() -> None:
    model = bert()
    with pytest.raises(DataError, match=r"'the cat' has no \[MASK\] \(must have one where"):
        fill_masks(model, TOKENIZER, ["the cat"])
    with pytest.raises(DataError, match=r"has 15 tokens \(must be at most 14: shorten it\)"):
        fill_masks(model, TOKENIZER, ["the " * 14 + "[MASK]"])
    assert fill_masks(model, TOKENIZER, ["the " * 13 + "[MASK]"])
    for k in (0, TOKENIZER.vocab_size + 1):
        with pytest.raises(ConfigError, match=f"k is {k}"):
            fill_masks(model, TOKENIZER, ["[MASK]"], k=k)
    with pytest.raises(DataError, match=r"no \[CLS\], \[SEP\], \[MASK\]"):
        fill_masks(model, CharTokenizer("ab[MASK]"), ["[MASK]"])
