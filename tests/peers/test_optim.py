"""Optimizers, clipping and schedules against torch.optim and torch.nn.utils."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from chainrule import optim
from chainrule.autograd import Param, Parameters
from tests.battery.checks import distance

STEPS = 20
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}
SHAPES = {"w1": (16, 8), "b1": (16,), "w2": (4, 16), "b2": (4,)}  # matrices decay, biases do not


def start(dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in SHAPES.items()}


def gradients(dtype: str) -> list[dict[str, np.ndarray]]:
    """What 20 backward passes could give: sizes from 1e-4 to 10, both signs, and one weight without any."""
    rng = np.random.default_rng(1)
    scale = {name: 10 ** rng.uniform(-4, 1, size=shape) for name, shape in SHAPES.items()}
    scale["w1"][0, 0] = 0

    def one_pass() -> dict[str, np.ndarray]:
        return {name: (size * rng.normal(size=size.shape)).astype(dtype) for name, size in scale.items()}

    return [one_pass() for _ in range(STEPS)]


Ours = Callable[[Parameters], optim.Optimizer]
Theirs = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


def block(dtype: str) -> Parameters:
    return Parameters((name, Param(value, dtype=dtype)) for name, value in start(dtype).items())


def ours(dtype: str, make: Ours, rates: Iterable[float]) -> dict[str, np.ndarray]:
    params = block(dtype)
    optimizer = make(params)
    for grads, rate in zip(gradients(dtype), rates, strict=True):
        for name, param in params.items():
            params.grad_view(param)[...] = grads[name]
        optimizer.step(rate)
    return params.state()


def theirs(dtype: str, make: Theirs, rates: Iterable[float]) -> dict[str, np.ndarray]:
    params = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in start(dtype).items()}
    matrices = [p for p in params.values() if p.ndim == 2]
    vectors = [p for p in params.values() if p.ndim == 1]
    optimizer = make([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}])
    for grads, rate in zip(gradients(dtype), rates, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for name, param in params.items():
            param.grad = torch.tensor(grads[name])
        optimizer.step()
    return {name: param.detach().numpy() for name, param in params.items()}


class Lion(torch.optim.Optimizer):
    """The update rule as published (Chen et al. 2023, algorithm 2); torch.optim has none."""

    def __init__(self, groups: Any, betas: tuple[float, float], weight_decay: float) -> None:
        super().__init__(groups, {"lr": 0.0, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                update = torch.sign(beta1 * m + (1 - beta1) * w.grad) + group["weight_decay"] * w
                w.sub_(group["lr"] * update)
                self.state[w]["m"] = beta2 * m + (1 - beta2) * w.grad


# PyTorch keeps the rate outside the velocity, as lr_inside=False does (C-07), and has another ε for AdaGrad.
RULES: dict[str, tuple[Ours, Theirs]] = {
    "sgd": (lambda p: optim.SGD(p, 0), lambda g: torch.optim.SGD(g)),
    "sgd-decay": (
        lambda p: optim.SGD(p, 0, weight_decay=0.1),
        lambda g: torch.optim.SGD(g, weight_decay=0.1),
    ),
    "momentum": (
        lambda p: optim.Momentum(p, 0, 0.9, lr_inside=False),
        lambda g: torch.optim.SGD(g, momentum=0.9),
    ),
    "nesterov": (
        lambda p: optim.Momentum(p, 0, 0.8, lr_inside=False, nesterov=True, weight_decay=0.1),
        lambda g: torch.optim.SGD(g, momentum=0.8, nesterov=True, weight_decay=0.1),
    ),
    "adagrad": (lambda p: optim.AdaGrad(p), lambda g: torch.optim.Adagrad(g, eps=1e-8)),
    "rmsprop": (lambda p: optim.RMSprop(p), lambda g: torch.optim.RMSprop(g)),
    "rmsprop-0.9": (lambda p: optim.RMSprop(p, decay=0.9), lambda g: torch.optim.RMSprop(g, alpha=0.9)),
    "adam": (lambda p: optim.Adam(p), lambda g: torch.optim.Adam(g)),
    "adam-transformer": (
        lambda p: optim.Adam(p, betas=(0.9, 0.98), eps=1e-9),
        lambda g: torch.optim.Adam(g, betas=(0.9, 0.98), eps=1e-9),
    ),
    "adamw": (lambda p: optim.AdamW(p), lambda g: torch.optim.AdamW(g)),
    "adamw-decay": (
        lambda p: optim.AdamW(p, betas=(0.8, 0.95), weight_decay=0.5),
        lambda g: torch.optim.AdamW(g, betas=(0.8, 0.95), weight_decay=0.5),
    ),
    "lion": (
        lambda p: optim.Lion(p, weight_decay=0.3),
        lambda g: Lion(g, betas=(0.9, 0.99), weight_decay=0.3),
    ),
}
RATES = {
    "constant": [0.01] * STEPS,
    "cosine": [optim.cosine(0.05, STEPS, warmup=4)(step) for step in range(STEPS)],
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("rule", RULES)
def test_twenty_steps(rule: str, rates: str, dtype: str) -> None:
    make, peer = RULES[rule]
    got, want = ours(dtype, make, RATES[rates]), theirs(dtype, peer, RATES[rates])
    moved = max(distance(want[name], value) for name, value in start(dtype).items())
    assert moved > 1e-3, "the weights must have moved for the comparison to mean anything"
    for name in SHAPES:
        assert distance(got[name], want[name]) <= TOLERANCE[dtype], f"{rule}: {name}"


def test_no_optimizer_escapes() -> None:
    exported = [getattr(optim, name) for name in optim.__all__]
    rules = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, optim.Optimizer)}
    assert {type(make(block("float32"))) for make, _ in RULES.values()} == rules - {optim.Optimizer}


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_with_the_rate_inside_is_the_same_at_a_constant_rate_only(nesterov: bool) -> None:
    def gap(rates: list[float]) -> float:
        got = ours("float64", lambda p: optim.Momentum(p, 0, 0.9, nesterov=nesterov), rates)
        want = theirs("float64", lambda g: torch.optim.SGD(g, momentum=0.9, nesterov=nesterov), rates)
        return max(distance(got[name], want[name]) for name in SHAPES)

    assert gap(RATES["constant"]) <= 1e-12
    assert gap(RATES["cosine"]) > 1e-3


# -- clipping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("limit", [0.5, 1e6])
def test_clip_global_norm(limit: float, dtype: str) -> None:
    grads = gradients(dtype)[0]
    params = block(dtype)
    peers = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in start(dtype).items()}
    for name, param in params.items():
        params.grad_view(param)[...] = grads[name]
        peers[name].grad = torch.tensor(grads[name])
    got = optim.clip_global_norm(params, limit)
    want = torch.nn.utils.clip_grad_norm_(peers.values(), limit).item()
    assert got == pytest.approx(want, rel=TOLERANCE[dtype])
    # PyTorch divides by the norm + 1e-6, so as never to divide by 0; ours reaches the limit exactly.
    exact = (want + 1e-6) / want if want > limit else 1.0
    for name, param in params.items():
        assert distance(params.grad_view(param), peers[name].grad.numpy() * exact) <= TOLERANCE[dtype], name
    assert optim.global_norm(params) == pytest.approx(min(limit, got), rel=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_clip_value(dtype: str) -> None:
    grads = gradients(dtype)[0]
    params = block(dtype)
    for name, param in params.items():
        params.grad_view(param)[...] = grads[name]
    optim.clip_value(params, 0.3)
    for name, param in params.items():
        peer = torch.nn.Parameter(torch.zeros(SHAPES[name], dtype=getattr(torch, dtype)))
        peer.grad = torch.tensor(grads[name])
        torch.nn.utils.clip_grad_value_([peer], 0.3)
        assert np.array_equal(params.grad_view(param), peer.grad.numpy()), name


# -- schedules -----------------------------------------------------------------------------------------------


def rates_of(make: Callable[[torch.optim.Optimizer], Any], lr: float, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    scheduler = make(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def in_sequence(*parts: Callable[[torch.optim.Optimizer], Any], at: list[int]) -> Callable[..., Any]:
    return lambda o: torch.optim.lr_scheduler.SequentialLR(o, [part(o) for part in parts], milestones=at)


def warm(steps: int) -> Callable[[torch.optim.Optimizer], Any]:
    """Ours starts one step above 0: lr · (t + 1)/(warmup + 1)."""
    return lambda o: torch.optim.lr_scheduler.LinearLR(o, 1 / (steps + 1), 1.0, total_iters=steps)


def down(steps: int, share: float) -> Callable[[torch.optim.Optimizer], Any]:
    return lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, share, total_iters=steps)


def half_wave(steps: int, final: float) -> Callable[[torch.optim.Optimizer], Any]:
    return lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=steps, eta_min=final)


def flat(o: torch.optim.Optimizer) -> Any:
    return torch.optim.lr_scheduler.ConstantLR(o, factor=1.0)


SCHEDULES: dict[str, tuple[optim.Schedule, Callable[[torch.optim.Optimizer], Any]]] = {
    "constant": (optim.constant(0.3), flat),
    "cosine": (optim.cosine(0.3, 100, final=0.03), half_wave(100, 0.03)),
    "linear": (optim.linear(0.3, 100, final=0.03), down(100, 0.1)),
    "step decay": (
        optim.step_decay(0.3, 100),
        lambda o: torch.optim.lr_scheduler.MultiStepLR(o, milestones=[90], gamma=0.1),
    ),
    "warm cosine": (optim.cosine(0.3, 100, warmup=10), in_sequence(warm(10), half_wave(90, 0.0), at=[10])),
    "warm linear": (optim.linear(0.3, 100, warmup=10), in_sequence(warm(10), down(90, 0.0), at=[10])),
    "wsd": (
        optim.wsd(0.3, 100, warmup=10, decay=20, final=0.03),
        in_sequence(warm(10), flat, down(20, 0.1), at=[10, 80]),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name: str) -> None:
    schedule, peer = SCHEDULES[name]
    got, want = [schedule(step) for step in range(101)], rates_of(peer, 0.3, 101)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)
