"""Special tokens by their names and roles."""

from __future__ import annotations

import pytest

from chainrule.errors import DataError
from chainrule.text import Marks, SpecialIds
from chainrule.text.special_tokens import ids_by_role


def test_the_first_usual_name_of_a_role_counts() -> None:
    special = {"<|endoftext|>": 0, "[PAD]": 1, "<pad>": 2, "<other>": 3, "<mask>": 4}
    assert ids_by_role(special) == {"eos": 0, "pad": 2, "mask": 4}


def test_an_encoder_has_the_names_of_bert_or_of_roberta() -> None:
    roberta = {"<s>": 0, "<pad>": 1, "</s>": 2, "<mask>": 3}
    assert SpecialIds.of(roberta) == SpecialIds(cls=0, sep=2, mask=3, pad=1)
    both = roberta | {"[CLS]": 4, "[SEP]": 5, "[MASK]": 6, "[PAD]": 7}
    assert SpecialIds.of(both) == SpecialIds(cls=4, sep=5, mask=6, pad=7)
    with pytest.raises(DataError, match=r"no \[MASK\], \[PAD\]"):
        SpecialIds.of({"[CLS]": 0, "[SEP]": 1})


def test_a_target_begins_with_bos_by_any_of_its_names() -> None:
    assert Marks.of({"[CLS]": 3, "[SEP]": 4, "<s>": 5}, "bos") == Marks((), (), start=3, end=4)
    assert Marks.of({"<|endoftext|>": 7}, "bos") == Marks((), (), start=7, end=7)
