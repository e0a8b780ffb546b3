"""Texts in pairs: what is held back to evaluate on, and in which units."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import PairCorpus
from chainrule.errors import ConfigError, DataError
from chainrule.models import make
from chainrule.tasks.pairs.translation import TranslationTask
from chainrule.text import Marks

TINY = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 64}
FEW = {"batch_size": 4, "limit": 8}


def test_a_few_pairs_to_judge_by_are_from_the_whole_file_and_so_are_their_bytes() -> None:
    pairs = [(f"s{i}", "a" if i < 200 else "é") for i in range(400)]  # the second half has two bytes a token
    some = TranslationTask.of(PairCorpus("some", "test", tuple(pairs)))
    model = make("seq2seq", **TINY, **some.sizes())
    batches = some.eval_batches(model, **FEW)
    targets = np.concatenate([row for _, rows in batches for row in rows])
    assert set(some.tokenizer.encode("aé")) <= set(targets)
    assert len(some.validation) > len(targets) / 2 == 8  # each has its letter and the end
    size = sum(len(some.tokenizer.decode(rows[:, 0]).encode()) for _, rows in batches)
    measured = some.measures(math.log(2), batches)["bits_per_byte"]
    assert measured == pytest.approx(len(targets) / size)


def test_a_source_is_right_if_it_is_any_of_its_targets_even_those_beyond_the_limit() -> None:
    tokenizer = cr.text.CharTokenizer.train("abc", ("<s>", "</s>"))
    model = make("seq2seq", **TINY, vocab_size=tokenizer.vocab_size).eval()
    (answer,) = TranslationTask.answer(model, tokenizer, ["ab"])
    found = []
    for other in (answer["text"], answer["text"] + "c"):
        listed = PairCorpus("listed", "test", (("ab", answer["text"] + "b"), ("ab", other), ("ba", "b")))
        task = TranslationTask.of(listed, tokenizer, eval_only=True)
        found.append(task.scores(model, task.eval_batches(model, batch_size=1, limit=1)))
    assert [(each["pairs"], each["exact"]) for each in found] == [(1, 1.0), (1, 0.0)]


SPECIAL = cr.text.CharTokenizer.train("abcd", ("<pad>", "<s>", "</s>"))
PAD, BOS, EOS = (SPECIAL.special_ids[name] for name in ("<pad>", "<s>", "</s>"))
PAIRS = PairCorpus("few", "test", tuple((f"{a}{b}c", "d") for a in "abcd" for b in "abcd"))


@pytest.mark.parametrize(
    ("start", "first", "before", "after"),
    [("bos", BOS, [], []), ("pad", PAD, [], [EOS]), ("eos", EOS, [BOS], [EOS])],
)
@pytest.mark.parametrize("family", ["seq2seq", "t5"])
def test_texts_are_read_as_the_model_was_trained(
    family: str, start: str, first: int, before: list[int], after: list[int]
) -> None:
    """As Marian and T5 (pad) and BART (eos) do it: what stands around a source, and what a target begins with."""
    task = TranslationTask.of(PAIRS, SPECIAL, eval_only=True)
    model = make(family, **TINY | {"block_size": 5}, **task.sizes(), target_start=start).eval()
    inputs, targets = task.fitted(model).eval_batches(model, batch_size=16, limit=1)[0]
    source = [*before, *SPECIAL.encode("aac"), *after]
    assert inputs.source[0].tolist() == source and inputs.source_mask.all()
    assert inputs.target[0].tolist() == [first, *SPECIAL.encode("d")]
    assert targets[0].tolist() == [*SPECIAL.encode("d"), EOS]
    (answer,) = task.answer(model, SPECIAL, ["aac"])
    want = cr.generate.translate(model, [source], start=first, end=EOS)[0]
    assert answer["text"] == SPECIAL.decode(want[want < PAD])  # special tokens are not printed
    marks = Marks.of(SPECIAL.special_ids, start)
    long = marks.around(SPECIAL.encode("abcdabcd"), 5).tolist()  # cut, but for what stands around it
    assert len(long) == (5 if after else 8) and long[len(long) - len(after) :] == after
    if after:
        with pytest.raises(DataError, match="must be at most 5"):
            list(task.answer(model, SPECIAL, ["abcd" if before else "abcda"]))


@pytest.mark.parametrize(
    ("start", "special", "message"),
    [
        ("bos", ("<s>",), "must have <s> and </s>"),
        ("pad", ("</s>",), "</s> and <pad>"),
        ("eos", ("</s>",), "<s> and </s>"),
    ],
)
def test_marks_that_are_missing_are_named(start: str, special: tuple[str, ...], message: str) -> None:
    tokenizer = cr.text.CharTokenizer.train("abcd", special)
    task = TranslationTask.of(PAIRS, tokenizer, eval_only=True)
    model = make("seq2seq", **TINY, **task.sizes(), target_start=start)
    with pytest.raises(DataError, match=message):
        task.fitted(model)


def test_two_vocabularies_need_two_tokenizers() -> None:
    task = TranslationTask.of(PAIRS, SPECIAL, eval_only=True)
    with pytest.raises(ConfigError, match="source_vocab_size is 9"):
        task.fitted(make("seq2seq", **TINY, **task.sizes(), source_vocab_size=9))
