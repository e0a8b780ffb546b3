"""Arguments and names that do not fit are answered by errors of this package, each in one line with what was meant."""

from __future__ import annotations

import copy
import inspect
import pickle
from abc import ABC
from collections.abc import Callable
from typing import Any

import pytest

import chainrule as cr
from chainrule import nn, optim
from chainrule.errors import UnknownName

x = cr.Tensor([[1.0, 2.0]])
w = cr.Param([1.0])
ROOMS = [
    name
    for name in cr.__all__
    if inspect.ismodule(getattr(cr, name)) and getattr(cr, name).__name__ == f"chainrule.{name}"
]


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: x.sum(dim=1, keepdim=True), r"sum: unknown argument 'keepdim'; did you mean keepdims\?"),
        (lambda: x.clip(lowest=0), r"clip: unknown argument 'lowest' \(it takes clip\(min=None, max=None\)\)"),
        (lambda: x.sum().backward(retain_graph=True), r"backward: .*did you mean retain\?"),
        (lambda: cr.Tensor([1.0], device="cpu"), "Tensor: unknown argument 'device'; here: everything runs on the CPU"),
        (lambda: cr.zeros(2, device="cpu"), "zeros: unknown argument 'device'"),
        (lambda: optim.SGD([w], lr=0.1, momentum=0.9), r"SGD: unknown argument 'momentum'; here: cr\.optim\.Momentum"),
        (lambda: optim.AdamW(), "AdamW: missing a required argument: 'params'"),
        (lambda: nn.Linear(in_features=3, out_features=2), r"Linear: .*'in_features'; did you mean n_in\?"),
        (lambda: nn.Linear(3), r"Linear: missing a required argument: 'n_out' .*init=xavier_uniform"),
        (lambda: nn.LayerNorm(normalized_shape=3), r"LayerNorm: .*did you mean dim\?"),
        (lambda: nn.Linear(3, 2).to("cpu"), "to: dtype 'cpu' .*everything runs on the CPU"),
        (lambda: nn.Linear(3, 2).to(int), "to: dtype int64"),
        (lambda: nn.Linear(3, 2).load_state_dict({}, strict=False), "load_state_dict: .*here: always: names"),
        (lambda: nn.Linear(2, 2)(x, x), r"Linear: too many positional arguments \(it takes Linear\(x\)\)"),
        (lambda: optim.SGD([w], 0.1).zero_grad(set_to_none=True), "zero_grad: .*here: not needed"),
        (lambda: optim.clip_global_norm([w], max_norm=1.0), r"clip_global_norm: .*did you mean limit\?"),
        (lambda: optim.cosine(0.1, total=9), "cosine: unknown argument 'total'"),
        (lambda: nn.Linear(-1, 2), r"parameter: shape \(2, -1\) \(each size must be an integer, at least 1\)"),
        (lambda: nn.Linear(3.0, 2), r"parameter: shape \(2, 3.0\)"),
        (lambda: nn.LayerNorm(0), r"parameter: shape \(0,\)"),
        (lambda: nn.Embedding(0, 4), r"parameter: shape \(0, 4\)"),
        (lambda: nn.BatchNorm(-1), r"parameter: shape \(-1,\)"),
        (lambda: nn.LSTM(-1, 3), "parameter: shape"),
        (lambda: cr.models.make("gpt", vocab_size=10, n_layers=2), r"'n_layers'; did you mean n_layer\?"),
        (lambda: cr.models.RecurrentConfig(hiden=3), "RecurrentConfig: unknown argument 'hiden'"),
        (lambda: cr.models.GPT({"n_layer": 1}), r"GPT: config is a dict \(must be a GPTConfig: .*make\(\"gpt\""),
        (lambda: cr.models.Llama(cr.models.GPTConfig()), "Llama: config is a GPTConfig"),
        (lambda: cr.train.TrainConfig(max_step=3), r"TrainConfig: .*did you mean max_steps\?"),
        (lambda: cr.generate.Sampling(temprature=1), r"Sampling: .*'temprature'; did you mean temperature\?"),
    ],
)  # fmt: skip
def test_a_call_that_does_not_fit_says_what_does(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(cr.ConfigError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value) and "0x" not in str(caught.value)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_answers_for_a_name_that_it_lacks(room: str) -> None:
    with pytest.raises(UnknownName, match=rf"^cr\.{room} has no 'no_such_name'$"):
        _ = getattr(cr, room).no_such_name
    assert not hasattr(getattr(cr, room), "no_such_name")


@pytest.mark.parametrize(
    "room, name, said",
    [
        (
            optim,
            "clip_grad_norm_",
            r"cr\.optim has no 'clip_grad_norm_' \(here: cr\.optim\.clip_global_norm\)",
        ),
        (optim, "lr_scheduler", r"here: a schedule such as cr\.optim\.cosine"),
        (optim, "Adamw", r"did you mean AdamW\?"),
        (cr.models, "GTP", r"did you mean GPT\?"),
        (nn, "softmax", r"here: cr\.ops\.softmax"),
        (x, "isnan", r"np\.isnan\(x\.numpy\(\)\)"),
        (nn.Linear(1, 1), "half", r"layer\.to\(np\.float32\)"),
    ],
)
def test_a_name_of_another_place_says_where_it_is(room: Any, name: str, said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        getattr(room, name)


def test_an_error_inside_a_call_that_fits_stays_what_it_is() -> None:
    class Broken(nn.Module):
        def __init__(self, size: int) -> None:
            self.size = len(size)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        Broken(3)
    with pytest.raises(cr.ConfigError, match=r"it takes Broken\(size\)"):
        Broken(3, 4)  # type: ignore[call-arg]


def test_what_answers_is_still_copied_pickled_and_inherited() -> None:
    config = cr.models.GPTConfig(n_layer=1)
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
    assert [*inspect.signature(nn.Linear).parameters] == ["n_in", "n_out", "bias", "init"]

    class Mixed(nn.Module, ABC):
        pass

    assert isinstance(Mixed(), nn.Layer)


def test_an_optimizer_shows_the_rates_of_its_groups() -> None:
    v = cr.Param([2.0])
    assert repr(optim.AdamW([{"params": [w], "lr": 0.1}])) == "<AdamW lr=0.1, 0 steps done>"
    assert repr(optim.AdamW([{"params": [w], "lr": 0.1}, v])) == "<AdamW lr=0.001 and 0.1, 0 steps done>"
    assert repr(optim.AdamW([w], lr=0.2)) == "<AdamW lr=0.2, 0 steps done>"
