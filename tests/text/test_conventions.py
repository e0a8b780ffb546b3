"""What a model expects around a text, as its tokenizer carries it."""

from __future__ import annotations

import copy
import pickle

from chainrule.text import BPETokenizer, CharTokenizer, Conventions


def tokenizer() -> BPETokenizer:
    return BPETokenizer.train("", 260, special_tokens=["<s>", "</s>", "<unk>", "<|end|>"])


def test_special_tokens_are_known_by_their_usual_names() -> None:
    assert tokenizer().conventions == Conventions(bos=256, eos=(257,), unk=258)
    assert CharTokenizer("ab").conventions == Conventions()


def test_a_tokenizer_carries_what_it_was_given() -> None:
    one = tokenizer()
    one.conventions = given = Conventions(bos=256, eos=(259, 257), chat_template="{{ messages }}")
    assert one.conventions == given
    assert pickle.loads(pickle.dumps(one)).conventions == given == copy.deepcopy(one).conventions
    assert one == tokenizer()  # the ids of a text are the same


def test_ids_outside_the_vocabulary_are_left_out() -> None:
    one = tokenizer()
    one.conventions = Conventions(bos=-1, eos=(257, 260, 257), pad=-1, unk=10**6, add_bos=True)
    assert one.conventions == Conventions(eos=(257,))


def test_the_unknown_token_stands_for_text_unless_it_is_a_mark_too() -> None:
    special = {"<s>": 1, "<unk>": 2}
    assert Conventions(bos=1, unk=2).hidden(special) == {1}
    assert Conventions(bos=1, unk=1).hidden(special) == {1, 2}
