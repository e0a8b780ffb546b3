"""Layer: names, the flat block, modes, state, captures, copies."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.autograd import Param, Tensor
from chainrule.errors import CheckpointError, ConfigError, ShapeError
from chainrule.optim import SGD


class Cell(nn.Layer):
    def __init__(self) -> None:
        self.ln_1 = nn.LayerNorm(4)
        self.fc = nn.Linear(4, 4, bias=False)

    def forward(self, x: Any) -> Tensor:
        return x + self.fc(self.ln_1(x))


class Model(nn.Layer):
    """Every kind of attribute: Param, Layer, list, dict, tuple, a tied Param, and what is none of them."""

    def __init__(self) -> None:
        self.scale = Param(np.ones(4))
        self.h = [Cell(), Cell()]
        self.heads = {"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)}
        self.pair = (nn.BatchNorm(2), cr.ops.relu)
        self.tied = self.h[0].fc.weight
        self.size = 4

    def forward(self, x: Any) -> Tensor:
        hidden = x * self.scale
        for cell in self.h:
            hidden = cell(hidden)
        return self.pair[0](self.heads["a"](hidden))


NAMES = [
    "scale",
    "h.0.ln_1.weight",
    "h.0.ln_1.bias",
    "h.0.fc.weight",
    "h.1.ln_1.weight",
    "h.1.ln_1.bias",
    "h.1.fc.weight",
    "heads.a.weight",
    "heads.a.bias",
    "heads.b.weight",
    "heads.b.bias",
    "pair.0.weight",
    "pair.0.bias",
    "tied",
]
X = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)


class TestNames:
    def test_parameters_follow_the_attributes(self) -> None:
        assert [name for name, _ in Model().named_parameters()] == NAMES

    def test_layers_and_buffers(self) -> None:
        model = Model()
        layers = [name for name, _ in model.named_layers()]
        assert layers[:4] == ["", "h.0", "h.0.ln_1", "h.0.fc"]
        assert [name for name, _ in model.named_buffers()] == ["pair.0.running_mean", "pair.0.running_var"]

    def test_tied_parameters_count_once(self) -> None:
        assert Model().count() == 4 + 2 * (8 + 16) + (8 + 2) + (12 + 3) + 4

    def test_captures_carry_the_paths(self) -> None:
        with cr.capture() as seen:
            Model()(X)
        assert {
            "h.0.ln_1.layernorm",
            "h.1.fc.linear",
            "h.1.add",
            "heads.a.linear",
            "pair.0.batchnorm",
        } <= set(seen)

    def test_a_layer_added_to_a_list_is_named_by_the_next_walk(self) -> None:
        model = Model()
        model.h.append(Cell())
        model.eval()
        with cr.capture("h.2.*") as seen:
            model(X)
        assert list(seen) == ["h.2.ln_1.layernorm", "h.2.fc.linear", "h.2.add"]

    def test_a_replaced_layer_takes_the_name_of_its_place(self) -> None:
        model = Model()
        model.h[1].fc = nn.Linear(4, 4)
        with cr.capture() as seen:
            model(X)
        assert "h.1.fc.linear" in seen

    def test_repr_is_a_tree(self) -> None:
        assert repr(Model()).splitlines() == [
            "Model(scale (4,), tied (4, 4)), 81 parameters",
            "  h.0 .. h.1: Cell",
            "    ln_1: LayerNorm(weight (4,), bias (4,))",
            "    fc: Linear(weight (4, 4))",
            "  heads.a: Linear(weight (2, 4), bias (2,))",
            "  heads.b: Linear(weight (3, 4), bias (3,))",
            "  pair.0: BatchNorm(weight (2,), bias (2,))",
        ]


class TestBlock:
    def test_is_built_once_and_holds_views(self) -> None:
        model = Model()
        params = model.parameters()
        assert model.parameters() is params
        assert list(params.keys()) == NAMES and all(isinstance(p, cr.Param) for p in params)
        params.data[...] = 7.0
        assert (model.h[1].ln_1.weight.data == 7.0).all()
        model(X).sum().backward()
        assert model.scale.grad is not None and np.shares_memory(model.scale.grad, params.grad)

    def test_is_rebuilt_when_something_is_frozen_added_or_replaced(self) -> None:
        model = Model()
        changes = [
            lambda: model.h[0].freeze(),
            lambda: model.h[0].unfreeze(),
            lambda: model.h.append(Cell()),
            lambda: setattr(model, "scale", Param(np.ones(4))),
        ]
        for change in changes:
            before = model.parameters()
            assert model.parameters() is before
            change()
            after = model.parameters()
            assert after is not before
            assert all(p.block is after for p in after.values())

    def test_frozen_parameters_come_last_and_do_not_train(self) -> None:
        model = Model()
        model.h[0].freeze()
        params = model.parameters()
        stop = max(span.stop for span, _ in params.ranges())
        assert params.offsets[id(model.h[0].fc.weight)] >= stop
        assert model.count(trainable=True) == model.count() - model.h[0].count()
        before = model.h[0].state()
        optimizer = SGD(params, 0.1)
        model(X).sum().backward()
        optimizer.step()
        for name, value in model.h[0].state().items():
            np.testing.assert_array_equal(value, before[name])

    def test_counting_and_saving_a_part_leave_the_whole_block_alone(self) -> None:
        model = Model()
        params = model.parameters()
        model.h[0].count(), model.h[0].state(), model.h[0].load(model.h[1].state()), repr(model.h[0])
        assert model.parameters() is params
        np.testing.assert_array_equal(model.h[0].fc.weight.data, model.h[1].fc.weight.data)


class TestModes:
    def test_train_and_eval_reach_every_layer(self) -> None:
        model = Model()
        assert model.eval() is model
        assert not any(layer.training for _, layer in model.named_layers())
        model.h[0].train()
        assert model.h[0].fc.training and not model.h[1].training

    def test_to_converts_parameters_and_buffers(self) -> None:
        model = Model()
        before = model.parameters()
        model.to(np.float64)
        assert {p.dtype for p in model.parameters().values()} == {np.dtype(np.float64)}
        assert {b.dtype for _, b in model.named_buffers()} == {np.dtype(np.float64)}
        assert model.parameters() is not before
        assert model.tied is model.h[0].fc.weight
        assert model(X.astype(np.float64)).dtype == np.float64
        with pytest.raises(ConfigError, match=r"to: dtype int64 \(must be a float dtype\)"):
            model.to(np.int64)

    def test_the_mode_of_one_layer_is_not_the_mode_of_the_class(self) -> None:
        nn.Linear(1, 1).eval()
        assert nn.Linear(1, 1).training


class TestState:
    def test_round_trip_includes_buffers(self) -> None:
        cr.seed(1)
        model, other = Model(), Model()
        model(X)
        state = model.state()
        assert set(state) == {*NAMES, "pair.0.running_mean", "pair.0.running_var"}
        assert state["pair.0.running_mean"].any()
        other.load(state)
        np.testing.assert_array_equal(other.eval()(X).numpy(), model.eval()(X).numpy())

    def test_is_a_copy(self) -> None:
        model = Model()
        state = model.state()
        state["scale"][...] = 9
        state["pair.0.running_var"][...] = 9
        assert (model.scale.data == 1).all() and (model.pair[0].running_var == 1).all()

    def test_loading_keeps_the_flat_block(self) -> None:
        model = Model()
        params = model.parameters()
        model.load(Model().state())
        assert model.parameters() is params
        np.testing.assert_array_equal(params["scale"].data, model.scale.data)

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            (lambda s: s.pop("scale"), CheckpointError, r"load: state does not fit Model \(missing scale\)"),
            (lambda s: s.update(other=np.ones(1)), CheckpointError, r"\(unknown other\)"),
            (
                lambda s: [s.pop(n) for n in NAMES[:5]],
                CheckpointError,
                r"missing scale, h\.0\.ln_1\.weight, h\.0\.ln_1\.bias \.\.\.",
            ),
            (
                lambda s: s.update(scale=np.ones(5)),
                ShapeError,
                r"load: scale has shape \(4,\), state has \(5,\)",
            ),
            (lambda s: s.update({"pair.0.running_var": np.ones(1)}), ShapeError, "running_var has shape"),
        ],
    )
    def test_a_state_that_does_not_fit_changes_nothing(self, change: Any, error: Any, message: str) -> None:
        model = Model()
        before = model.state()
        state = {name: value + 1 for name, value in before.items()}
        change(state)
        with pytest.raises(error, match=message):
            model.load(state)
        for name, value in model.state().items():
            np.testing.assert_array_equal(value, before[name])

    def test_loading_between_forward_and_backward_is_noticed(self) -> None:
        model = Model()
        loss = model(X).sum()
        model.load(Model().state())
        with pytest.raises(cr.GraphError, match="changed in place"):
            loss.backward()


class TestCopy:
    def test_a_copy_is_a_model_of_its_own(self) -> None:
        model = Model()
        model.h[1].freeze()
        params = model.parameters()
        other = copy.deepcopy(model)
        assert other.tied is other.h[0].fc.weight is not model.tied
        assert not other.h[1].fc.weight.requires_grad
        optimizer = SGD(other.parameters(), 0.1)
        other(X)[
            0
        ].sum().backward()  # of one row: over the whole batch, what batch norm gives sums to a constant
        optimizer.step()
        assert (other.h[0].fc.weight.data != model.h[0].fc.weight.data).any()
        assert model.parameters() is params
        assert not params.grad.any()

    def test_a_copied_part_forgets_its_place(self) -> None:
        part = copy.deepcopy(Model().h[1])
        with cr.capture() as seen:
            part(X)
        assert list(seen) == ["ln_1.layernorm", "fc.linear", "add"]


class TestSeed:
    def test_the_same_seed_gives_the_same_model(self) -> None:
        states = []
        for seed in (4, 4, 5):
            cr.seed(seed)
            states.append(nn.MLP([3, 4, 2]).state())
        np.testing.assert_array_equal(states[0]["layers.0.weight"], states[1]["layers.0.weight"])
        assert (states[0]["layers.0.weight"] != states[2]["layers.0.weight"]).all()

    def test_two_models_of_one_seed_differ(self) -> None:
        assert (nn.Linear(3, 2).weight.data != nn.Linear(3, 2).weight.data).all()

    def test_the_size_of_one_layer_does_not_shift_the_draws_of_another(self) -> None:
        weights = []
        for width in (3, 30):
            cr.seed(0)
            nn.Linear(2, width)
            weights.append(nn.Linear(4, 4).weight.data)
        np.testing.assert_array_equal(*weights)


def test_shared_parameters_are_those_of_the_other_layer() -> None:
    cr.seed(0)
    one, other = Model(), Model()
    other.pair[0].running_mean[...] = 5.0
    kept = one.heads["a"].weight
    one.scale.requires_grad = False  # as a layer is made
    other.h[1].fc.weight.requires_grad = other.heads["a"].weight.requires_grad = False  # as it was tuned
    one.share(other, but=["heads.a.weight"])
    theirs = dict(other.named_parameters())
    assert [name for name, param in one.named_parameters() if not param.requires_grad] == ["scale"]
    assert not theirs["heads.a.weight"].requires_grad  # nobody has taken it over
    for name, param in one.named_parameters():
        assert (param is kept) if name == "heads.a.weight" else (param is theirs[name]), name
    assert one.tied is one.h[0].fc.weight is other.tied
    assert (one.pair[0].running_mean == 5.0).all() and one.pair[0].running_mean is not other.pair[
        0
    ].running_mean
    block = one.parameters()  # moves them all: the other layer goes with them
    block["scale"].array[...] = 7.0
    assert (other.scale.array == 7.0).all() and other.scale.block is block
    with pytest.raises(CheckpointError, match="does not fit Model"):
        one.share(Cell())
