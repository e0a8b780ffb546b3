"""Every number that is not finite is traced to its op, layer, row and token."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Tensor
from chainrule.data import PairBatches
from chainrule.data.batches.padded import IGNORE
from chainrule.doctor.nonfinite import search
from chainrule.errors import ChainruleError
from chainrule.models import GPT, make
from chainrule.models.gradient import backward
from chainrule.models.microbatch import Batch
from chainrule.train import Trainer
from tests.doctor.helpers import TOKENIZER, id_of, trainer_of, weight
from tests.train.test_trainer import Told


def said(trainer: Trainer) -> str:
    told = Told()
    before = trainer.model.state()
    with pytest.raises(ChainruleError) as error:
        trainer.run(told)
    after = trainer.model.state()
    assert all(
        np.array_equal(before[name], after[name], equal_nan=True) for name in before
    )  # nothing has changed
    assert told.notes[-1]["finding"]["code"].startswith("not_finite") and told.notes[-1]["step"] == 1
    return str(error.value)


class Untied(GPT):
    """The embedding is read by the input alone, so that a bad row of it shows only where its token stands."""

    def loss(self, inputs: Any, targets: Any) -> Tensor:
        hidden = self.hidden(inputs)
        return cr.ops.cross_entropy(
            cr.ops.linear(hidden, np.ones((TOKENIZER.vocab_size, 16), np.float32)), targets=targets
        )


@pytest.mark.parametrize("letter", ["q", "z"])
def test_a_nan_in_a_row_of_the_embedding(letter: str) -> None:
    trainer = trainer_of()
    trainer.model = trainer.step.model = Untied(trainer.model.config)
    trainer.step.prepare()
    weight(trainer, "wte.weight")[id_of(letter), 3] = math.nan
    while letter not in TOKENIZER.decode(trainer.batches.batch(trainer.steps)[0].reshape(-1)):
        trainer.steps += 1
    inputs, targets = trainer.batches.batch(trainer.steps)
    origin = search(trainer.model, Batch(inputs, targets))
    row, position = (int(i) for i in np.argwhere(inputs == id_of(letter))[0])
    assert origin is not None and origin.weight is not None
    assert (origin.weight.name, origin.weight.index) == ("wte.weight", (id_of(letter), 3))
    assert (origin.entry.name, origin.row, origin.position) == ("wte.embedding", row, position)
    with pytest.raises(ChainruleError) as error:
        trainer.update(1e-3)
    for expected in (
        f"wte.weight[{id_of(letter)}, 3] is nan (the row of token {letter!r})",
        f"first met in wte.embedding, in row {row}, position {position}, token {letter!r}",
        "the step was not taken",
    ):
        assert expected in str(error.value)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_infinite_weight_in_a_layer(recompute: bool, accumulate: int) -> None:
    trainer = trainer_of(recompute=recompute, accumulate=accumulate)
    weight(trainer, "h.1.mlp.c_fc.weight")[5, 2] = math.inf
    message = said(trainer)
    assert "h.1.mlp.c_fc.weight[5, 2] is inf" in message
    assert "first met in h.1.mlp.c_fc.linear, in row 0, position 0" in message


@pytest.mark.parametrize("accumulate", [1, 2])
def test_an_overflow_is_blamed_on_the_op_the_row_and_the_token(accumulate: int) -> None:
    """A token whose embedding is finite, but too long for the first norm."""
    trainer = trainer_of(accumulate=accumulate)
    weight(trainer, "wte.weight")[id_of("j")] = 3e38
    inputs, _ = trainer.batches.batch(0)
    row, position = (int(i) for i in np.argwhere(inputs == id_of("j"))[0])
    message = said(trainer)
    assert "h.0.ln_1.layernorm is the first op that makes nan of finite numbers" in message
    assert f"in row {row}, position {position}, token 'j'" in message
    assert "jump" in message or "fox j" in message  # the text around it


@pytest.mark.parametrize(("rows", "accumulate"), [(16, 1), (16, None), (5, None), (16, 4)])
def test_a_large_batch_is_searched_in_the_microbatches_of_its_step(rows: int, accumulate: int | None) -> None:
    """More than 2,048 tokens; in backward, where the row is read off the shape of a microbatch alone."""
    tokens = 256 if rows == 16 else 800
    cr.seed(0)
    model = Hot(cr.models.GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=tokens, vocab_size=17))
    ids = np.random.default_rng(0).integers(0, 16, (rows, tokens))
    ids[-1, 7] = 16
    origin = search(model, Batch(ids, ids % 16), accumulate=accumulate)
    assert origin is not None
    assert (origin.phase, origin.row, origin.position) == ("backward", rows - 1, 7)


class Hot(GPT):
    """Of the last token the loss is finite, but the slope is not."""

    def hidden(self, ids: Any, segments: Any = None) -> Tensor:
        hot = (np.asarray(ids) == 16)[..., None]
        small, large = (np.where(hot, x, 1).astype(np.float32) for x in (1e-30, 1e30))
        return super().hidden(ids, segments) * small * small * large * large


@pytest.mark.parametrize("accumulate", [1, None, 4])
def test_dropout_is_that_of_the_step(accumulate: int | None) -> None:
    """A model that fails wherever its dropout has dropped a certain number, in whichever microbatch."""
    cr.seed(0)
    model = Unlucky(
        cr.models.GPTConfig(n_layer=1, n_head=1, n_embd=8, block_size=256, vocab_size=17, dropout=0.1)
    )
    ids = np.random.default_rng(0).integers(0, 17, (16, 256))
    failed = set()
    for step in range(12):
        with cr.random.step(step), np.errstate(all="ignore"):
            loss, _ = backward(model.train(), Batch(ids, ids), accumulate=accumulate)
        with cr.random.step(step):
            origin = search(model, Batch(ids, ids), accumulate=accumulate)
        assert (origin is None) == math.isfinite(loss)
        failed.add(origin is None)
    assert failed == {True, False}


class Unlucky(GPT):
    """It has NaN where dropout has dropped the first number of its last row."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.unlucky = cr.nn.Dropout(0.1)

    def hidden(self, ids: Any, segments: Any = None) -> Tensor:
        hidden = self.unlucky(super().hidden(ids, segments))
        dropped = hidden.numpy()[-1, -1, :1] == 0
        return hidden * np.where(dropped, np.nan, 1).astype(np.float32)


def test_a_loss_that_is_one_number_is_searched_by_halves() -> None:
    """Of a fused loss there is no row to read off; one target is made impossible."""
    trainer = trainer_of()

    class Fussy(GPT):
        def loss(self, inputs: Any, targets: Any) -> Tensor:
            logits = cr.ops.linear(self.hidden(inputs), self.wte.weight)
            asked = np.where(np.asarray(targets) == id_of("z"), -np.inf, 0.0).astype(np.float32)
            return cr.ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE) + asked.sum()

    model = Fussy(trainer.model.config)
    inputs, targets = next(b for b in map(trainer.batches.batch, range(50)) if (b[1] == id_of("z")).any())
    asked = np.argwhere(targets == id_of("z"))[0]
    # The sum is an argument that is not finite itself: no op is to blame, but the loss of the row is.
    assert search(model, Batch(inputs, targets)) is None
    overflow = np.float32(3e38)

    class Overflowing(GPT):
        def loss(self, inputs: Any, targets: Any) -> Tensor:
            loss = cr.ops.cross_entropy(
                cr.ops.linear(self.hidden(inputs), self.wte.weight), targets=targets, ignore_index=IGNORE
            )
            return loss * (overflow if (np.asarray(targets) == id_of("z")).any() else 1.0)

    origin = search(Overflowing(trainer.model.config), Batch(inputs, targets))
    assert origin is not None and origin.entry.name == "mul"
    assert (origin.row, origin.position) == (int(asked[0]), int(asked[1]))


def test_a_gradient_that_is_not_finite_while_the_loss_is() -> None:
    trainer = trainer_of()

    class Steep(GPT):
        def hidden(self, ids: Any) -> Tensor:
            return cr.ops.sqrt(super().hidden(ids) * 0.0) + super().hidden(ids)  # the slope of a root at 0

    trainer.model = trainer.step.model = Steep(trainer.model.config)
    inputs, targets = trainer.batches.batch(0)
    origin = search(trainer.model, Batch(inputs, targets))
    assert origin is not None and (origin.phase, origin.entry.name) == ("backward", "mul")
    assert (origin.row, origin.position) == (0, 0)


def test_a_search_changes_nothing_and_finds_nothing_in_a_sound_model() -> None:
    trainer = trainer_of()
    trainer.update(1e-3)
    data, grad = (
        block.copy() for block in (trainer.step.optimizer.params.data, trainer.step.optimizer.params.grad)
    )
    assert search(trainer.model, Batch(*trainer.batches.batch(1))) is None
    assert (trainer.step.optimizer.params.data == data).all() and (
        trainer.step.optimizer.params.grad == grad
    ).all()


def test_pairs_name_the_side() -> None:
    cr.seed(0)
    model = make("seq2seq", n_layer=1, n_head=2, n_embd=16, block_size=8, vocab_size=12)
    batches = PairBatches([[4, 5, 6], [7, 8]], [[9, 10], [11, 4]], start=1, end=2, batch_size=2, block_size=8)
    work = Batch(*batches.batch(0))
    for name, param in model.named_parameters():
        if "decoder" in name and name.endswith("weight") and param.array.ndim == 2 and "embed" not in name:
            param.array[0, 0] = math.inf
            break
    origin = search(model, work)
    assert origin is not None and origin.weight is not None and origin.weight.name == name
    assert "decoder" in origin.entry.name and origin.row == 0
    assert list(origin.ids) == work.inputs.target[0].tolist()
