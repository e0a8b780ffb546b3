"""What a run reads: the same text to be judged by for every tokenizer, and its true length."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chainrule.data import Corpus, Shards, Split, build, load, read_documents, split
from chainrule.errors import ConfigError, DataError, FormatError
from chainrule.io import save_pretrained
from chainrule.models import make
from chainrule.models.tuning import LoRA, Method, Prefix, Prompt
from chainrule.runs import Run
from chainrule.scaling.ladder import Ladder
from chainrule.tasks.language_modeling import LanguageModelingTask
from chainrule.tasks.masked_lm import MaskedLMTask
from chainrule.text import (
    BPETokenizer,
    CharTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from chainrule.train import TrainConfig
from tests.runs.helpers import SIZE, losses

TEXT = load("pydoc").text[:40_000] + "é"
HELD_OUT = split(TEXT)[1]
CORPUS = Corpus("some", "test", TEXT)
TOKENIZERS = [
    CharTokenizer.train(TEXT),
    WordTokenizer.train(TEXT, 200, lowercase=True),  # loses white space, case and rare words
    WordPieceTokenizer.train(TEXT, 400),
    UnigramTokenizer.train(TEXT, 400),
    BPETokenizer.train(TEXT, 400),
]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.kind)
def test_bits_are_per_byte_of_the_text_itself_whatever_the_tokenizer_loses(tokenizer: Tokenizer) -> None:
    task = LanguageModelingTask.of(CORPUS, tokenizer)
    assert np.array_equal(task.validation, tokenizer.encode(HELD_OUT))
    per_token = len(HELD_OUT.encode()) / len(task.validation)
    assert task.bits_per_byte(math.log(2)) == pytest.approx(1 / per_token)
    assert Ladder(CORPUS, tokenizer=tokenizer).task.bits_per_byte(math.log(2)) == pytest.approx(1 / per_token)


def test_characters_are_cut_where_their_tokens_would_be() -> None:
    tokenizer = TOKENIZERS[0]
    for n in (15, 16, 1005, len(TEXT)):
        task = LanguageModelingTask.of(Corpus("some", "test", TEXT[:n]), tokenizer)
        training, validation = split(tokenizer.encode(TEXT[:n]))
        assert np.array_equal(task.training, training) and training.dtype == task.training.dtype
        assert np.array_equal(task.validation, validation)


SETTINGS = {"max_steps": 12, "batch_size": 4, "eval_every": 6, "save_every": 6}


def shards(
    folder: Path, tokenizer: Tokenizer = TOKENIZERS[-1], validation: float = 0.2, end: str = "\n"
) -> Shards:
    text = folder / "text.txt"
    text.write_text(TEXT, encoding="utf-8")
    documents = read_documents(str(text), by="paragraph")
    build(folder / "shards", documents, tokenizer, end=end, split=Split(validation=validation, test=0))
    return Shards(folder / "shards")


def test_shards_are_mapped_and_judged_by_the_bytes_of_their_documents(tmp_path: Path) -> None:
    made = shards(tmp_path)
    task = LanguageModelingTask.of(made)
    assert task.tokenizer == TOKENIZERS[-1]
    assert isinstance(task.training.base, np.memmap) and not task.training.flags.owndata
    assert np.array_equal(task.validation, made.parts["validation"].ids)
    text = task.tokenizer.decode(task.validation)
    documents = len(made.parts["validation"])
    assert task.validation_bytes == len(text.encode()) - documents  # a line end after each


def test_other_shards_are_judged_by_as_a_whole(tmp_path: Path) -> None:
    made = shards(tmp_path, TOKENIZERS[2], end="[SEP]")
    whole = sum(len(part.ids) for part in made.parts.values())
    documents = sum(map(len, made.parts.values()))
    task = LanguageModelingTask.of(made, eval_only=True)
    assert len(task.validation) == whole and len(task.training) == 0
    size = sum(part["bytes"] for part in made.meta["parts"].values())
    assert task.validation_bytes == size
    masked = MaskedLMTask.of(made, eval_only=True)
    assert len(masked.validation) == documents and len(masked.validation.ids) == whole
    last = made.parts["validation"][-1]
    assert np.array_equal(masked.validation[-1], last) and not len(masked.training)


@pytest.mark.parametrize("family", ["gpt", "lstm"])
def test_a_run_on_shards_learns_and_goes_on_bit_for_bit(tmp_path: Path, family: str) -> None:
    size = SIZE if family == "gpt" else {"n_hidden": 16, "block_size": 16}
    made = shards(tmp_path)

    def run(name: str) -> Run:
        return Run.new(tmp_path / name, made, TrainConfig(**SETTINGS), family, **size)  # type: ignore[arg-type]

    whole, crashed = run("whole"), run("crashed")
    first = whole.trainer.evaluate()
    assert whole.train().validation < first == pytest.approx(whole.baselines()["uniform"], abs=0.1)
    update = crashed.trainer.update

    def update_until_8(lr: float) -> tuple[float, float]:
        if crashed.trainer.steps == 8:
            raise MemoryError
        return update(lr)

    crashed.trainer.update = update_until_8  # type: ignore[method-assign]
    with pytest.raises(MemoryError):
        crashed.train()
    resumed = Run.resume(crashed.folder)
    assert resumed.corpus == made and resumed.trainer.steps == 6
    resumed.train()
    assert losses(resumed) == losses(whole)


def test_a_resume_needs_the_same_shards(tmp_path: Path) -> None:
    run = Run.new(tmp_path / "run", shards(tmp_path), TrainConfig(**SETTINGS), **SIZE)  # type: ignore[arg-type]
    run.save()
    shutil.rmtree(tmp_path / "shards")
    shards(tmp_path)
    assert Run.resume(run.folder).corpus == run.corpus  # built again, the same
    shutil.rmtree(tmp_path / "shards")
    shards(tmp_path, validation=0.3)
    with pytest.raises(DataError, match="shards has changed since the run began"):
        Run.resume(run.folder)
    shutil.rmtree(tmp_path / "shards")
    with pytest.raises(DataError, match="no such file"):
        Run.resume(run.folder)


def test_shards_that_cannot_be_trained_on_are_refused(tmp_path: Path) -> None:
    made = shards(tmp_path)
    with pytest.raises(
        ConfigError, match=r"shards: the shards were made by another tokenizer \(leave it out\)"
    ):
        LanguageModelingTask.of(made, TOKENIZERS[0])
    made.meta["parts"]["validation"]["bytes"] = 0
    with pytest.raises(FormatError, match="validation of 0 bytes"):
        LanguageModelingTask.of(made)
    shutil.rmtree(made.folder)
    with pytest.raises(
        DataError, match=r"parts train \(must have train and validation: .* --validation 0.05\)"
    ):
        LanguageModelingTask.of(shards(tmp_path, validation=0))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty: an empty directory \(must be a text file, or a directory"):
        LanguageModelingTask.find(tmp_path / "empty")


def test_the_hash_of_shards_is_that_of_their_contents(tmp_path: Path) -> None:
    made = shards(tmp_path)
    meta = json.loads((made.folder / "meta.json").read_text())
    meta["sources"] = {"elsewhere.txt": 1}
    (made.folder / "meta.json").write_text(json.dumps(meta))
    assert Shards(made.folder).sha256 == made.sha256
    meta["parts"]["train"]["files"]["train.npy"]["sha256"] = "0" * 64
    (made.folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(FormatError, match=r"train.npy: is damaged, it does not have the hash in meta.json"):
        _ = Shards(made.folder).sha256


def test_windows_to_evaluate_on_are_counted_as_they_are_cut() -> None:
    """Windows of a model from elsewhere are shorter than its context; of a short text there is one."""
    whole = LanguageModelingTask.of(Corpus("text", "file", "one two three four. " * 500))
    model = make("gpt", **SIZE, vocab_size=whole.tokenizer.vocab_size)
    for window, T in ((None, 16), (4, 4)):
        task = replace(whole, window=window)
        count = (len(task.validation) - 1) // T
        for limit in (10, 10_000):
            share = task.share(model, task.eval_batches(model, batch_size=8, limit=limit))
            assert share == (min(limit, count), count, "windows")
    short = replace(whole, validation=whole.validation[:6])
    share = short.share(model, short.eval_batches(model, batch_size=8, limit=10))
    assert str(share) == "all 1 windows"


@pytest.mark.parametrize("family", ["gpt", "llama"])
@pytest.mark.parametrize("method", [LoRA(rank=2), Prefix(length=4), Prompt(length=4)], ids=lambda m: m.name)
def test_windows_fit_the_text_and_what_a_method_leaves_of_the_context(
    family: str, method: Method, tmp_path: Path
) -> None:
    """The context of a base may be longer than the text, and a prefix takes some of it."""
    text = "abcdefghi " * 200
    tokenizer = CharTokenizer.train(text)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 128, "vocab_size": tokenizer.vocab_size}
    save_pretrained(make(family, **sizes), tokenizer, tmp_path / "base")

    def rows(length: int, **size: int) -> int:
        (tmp_path / "text.txt").write_text(text[:length], encoding="utf-8")
        data, config, start = tmp_path / "text.txt", TrainConfig(batch_size=2, max_steps=1), tmp_path / "base"
        run = Run.new(tmp_path / "run", data, config, family, start=start, method=method, draft=True, **size)
        run.trainer.evaluate()
        return int(run.trainer.batches.batch(0)[0].shape[1])

    context = method.apply(make(family, **sizes)).context
    assert rows(670) == 66  # one less than the 67 to evaluate on
    assert rows(1270) == min(126, context)
    assert rows(2000) == context
    if context < 128:  # as long as is said, but for what the method takes
        assert rows(context * 10 + 20, block_size=128) == context
    with pytest.raises(DataError, match="training text: 1 token, "):
        rows(1)
