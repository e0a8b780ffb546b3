"""Every update rule against the worked examples, and the properties each is known for."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Param, Parameters
from chainrule.errors import ConfigError, GraphError
from chainrule.nn import Dropout, Linear
from chainrule.optim import SGD, AdaGrad, Adam, AdamW, Lion, Momentum, Optimizer, RMSprop, cosine
from chainrule.optim.optimizer import CHUNK
from chainrule.optim.tensors import Tensors
from tests.optim.helpers import block, descend_square, set_gradients
from tests.vectors import vector

ALL: dict[str, Callable[[Parameters], Optimizer]] = {
    "sgd": lambda p: SGD(p, 0.1),
    "momentum": lambda p: Momentum(p, 0.1),
    "momentum outside": lambda p: Momentum(p, 0.1, lr_inside=False),
    "nesterov": lambda p: Momentum(p, 0.1, nesterov=True),
    "adagrad": lambda p: AdaGrad(p, 0.1),
    "rmsprop": lambda p: RMSprop(p, 0.1),
    "adam": lambda p: Adam(p, 0.1),
    "adamw": lambda p: AdamW(p, 0.1, weight_decay=0.1),
    "lion": lambda p: Lion(p, 0.1, weight_decay=0.1),
}


@pytest.mark.requirement("R-472")
@pytest.mark.parametrize("backend", ["reference", "native"])
@pytest.mark.parametrize("eps_inside", [False, True])
@pytest.mark.parametrize("rule", [AdaGrad, RMSprop, Adam, AdamW])
def test_zero_gradients_move_nothing(rule: Any, eps_inside: bool, backend: str) -> None:
    """0 / (√0 + ε) is 0: at the first step, and for a parameter that never had a gradient beside one that has."""
    options = {"weight_decay": 0.0} if rule is AdamW else {}
    with cr.backend(backend), np.errstate(all="raise"):
        params = Parameters(
            [("w", Param(np.array([1.0, -2.0, 3.0, 0.5], np.float32)))]
        )  # as the kernels want it
        before = params.data.copy()
        optimizer = rule(params, 0.1, eps_inside=eps_inside, **options)
        set_gradients(params, [0.0, 0.0, 0.0, 0.0])
        for _ in range(3):
            optimizer.step()
        np.testing.assert_array_equal(params.data, before)
        set_gradients(params, [0.0, 1.0, 0.0, 1e-10])
        optimizer.step()
    moved = params.data != before
    assert moved[1] and not moved[0] and not moved[2] and np.isfinite(params.data).all()
    with pytest.raises(ConfigError, match="eps"):
        rule(params, 0.1, eps=0.0)


@pytest.mark.requirement("R-116", "R-117")
@pytest.mark.parametrize("eta", ["0.1", "0.5", "0.9", "1.1"])
def test_gradient_descent_on_a_square(eta: str) -> None:
    v = vector(f"004-5.5.1-gd-{eta}")
    v.check(descend_square(lambda p: SGD(p, v.inputs["eta"]), v.inputs["theta0"], v.inputs["steps"]))


@pytest.mark.requirement("R-117")
@pytest.mark.parametrize(
    ("lr", "converges", "swings"),
    [
        (0.01, True, False),
        (0.5, True, False),
        (0.9, True, True),
        (0.99, True, True),
        (1.0, False, True),
        (1.1, False, True),
    ],
)
def test_rate_regimes(lr: float, converges: bool, swings: bool) -> None:
    path = descend_square(lambda p: SGD(p, lr), 1.0, 1000)
    assert (abs(path[-1]) < 1e-6) == converges
    assert (path[0] < 0) == swings


@pytest.mark.requirement("R-116")
def test_sgd_vector() -> None:
    v = vector("der-opt-sgd")
    v.check(descend_square(lambda p: SGD(p, v.inputs["lr"]), v.inputs["theta0"], v.inputs["steps"]))


@pytest.mark.requirement("R-119")
@pytest.mark.parametrize("lr_inside", [True, False])
def test_momentum_vector(lr_inside: bool) -> None:
    v = vector("der-opt-momentum")
    rule = partial(Momentum, lr=v.inputs["lr"], momentum=v.inputs["rho"], lr_inside=lr_inside)
    v.check(descend_square(rule, v.inputs["theta0"], v.inputs["steps"]))


@pytest.mark.requirement("R-119")
def test_steady_velocity_is_eta_g_over_1_minus_rho() -> None:
    params = block([0.0])
    optimizer = Momentum(params, 0.1, 0.9)
    set_gradients(params, [2.0])
    for _ in range(400):
        optimizer.step()
    assert optimizer.arrays["v"][0] == pytest.approx(0.1 * 2.0 / (1 - 0.9), rel=1e-12)


def test_momentum_conventions_part_when_the_rate_changes() -> None:
    """C-07: with the rate inside, the old velocity lives on after a drop of the rate."""
    moved = {}
    for inside in (True, False):
        params = block([0.0])
        optimizer = Momentum(params, 1.0, 0.5, lr_inside=inside)
        set_gradients(params, [1.0])
        optimizer.step()
        before = params["p0"].data[0]
        optimizer.step(lr=0.1)
        moved[inside] = float(before - params["p0"].data[0])
    assert moved[True] == pytest.approx(0.5 + 0.1)  # ρ v + η g
    assert moved[False] == pytest.approx(0.1 * (0.5 + 1))  # η (ρ v + g)


def test_nesterov_looks_ahead() -> None:
    params = block([0.0])
    set_gradients(params, [1.0])
    Momentum(params, 0.1, 0.9, nesterov=True).step()
    assert params["p0"].data[0] == pytest.approx(-(0.9 * 0.1 + 0.1))


@pytest.mark.requirement("R-120")
def test_momentum_halves_the_steps_in_a_ravine() -> None:
    """L = (x² + 100 y²)/2, condition number 100."""
    curvature = np.array([1.0, 100.0])

    def steps_to_goal(make: Callable[[Parameters], Optimizer]) -> int:
        params = block([1.0, 1.0])
        optimizer = make(params)
        for step in range(2000):
            if np.abs(params["p0"].data).max() <= 1e-3:
                return step
            set_gradients(params, curvature * params["p0"].data)
            optimizer.step()
        return 2000

    rates = np.linspace(0.001, 0.02, 39)  # beyond 2/100 it diverges
    plain = min(steps_to_goal(partial(SGD, lr=lr)) for lr in rates)
    ravine = steps_to_goal(partial(Momentum, lr=0.033, momentum=0.67))
    assert ravine <= plain / 2


@pytest.mark.requirement("R-121", "R-124")
@pytest.mark.parametrize("where", ["inside", "outside"])
def test_adagrad_vector(where: str) -> None:
    v = vector("der-opt-adagrad")
    rule = partial(AdaGrad, lr=v.inputs["lr"], eps=v.inputs["eps"], eps_inside=where == "inside")
    v.check({where: descend_square(rule, v.inputs["theta0"], v.inputs["steps"])}, keys=[where])


@pytest.mark.requirement("R-122", "R-124")
@pytest.mark.parametrize("where", ["inside", "outside"])
def test_rmsprop_vector(where: str) -> None:
    v = vector("der-opt-rmsprop")
    settings = {"lr": v.inputs["lr"], "decay": v.inputs["gamma"], "eps": v.inputs["eps"]}
    rule = partial(RMSprop, **settings, eps_inside=where == "inside")
    v.check({where: descend_square(rule, v.inputs["theta0"], v.inputs["steps"])}, keys=[where])


@pytest.mark.requirement("R-121", "R-122")
def test_adagrad_rate_only_shrinks_and_rmsprop_settles() -> None:
    moves: dict[str, list[float]] = {}
    for name, make in {"adagrad": AdaGrad, "rmsprop": RMSprop}.items():
        params = block([0.0])
        optimizer = make(params, 0.1, eps=1e-8)
        set_gradients(params, [3.0])
        path = [0.0]
        for _ in range(1000):
            optimizer.step()
            path.append(float(params["p0"].data[0]))
        moves[name] = list(-np.diff(path))
    assert all(a > b for a, b in zip(moves["adagrad"], moves["adagrad"][1:], strict=False))
    assert moves["adagrad"][-1] == pytest.approx(0.1 / np.sqrt(1000), rel=1e-6)
    assert moves["rmsprop"][-1] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.requirement("R-121")
def test_adagrad_rate_is_monotone_under_any_gradients() -> None:
    params = block(np.zeros(5))
    optimizer = AdaGrad(params, 0.1)
    rng = np.random.default_rng(0)
    rate = np.full(5, np.inf)
    for _ in range(50):
        set_gradients(params, rng.normal(size=5))
        optimizer.step()
        now = 0.1 / (np.sqrt(optimizer.arrays["G"][:5]) + 1e-8)
        assert (now < rate).all()
        rate = now


@pytest.mark.requirement("R-123", "R-124")
def test_adam_vector() -> None:
    v = vector("der-opt-adam")
    theta, steps, lr, betas, eps = (v.inputs[k] for k in ("theta0", "steps", "lr", "betas", "eps"))

    class WithoutHat(Adam):
        """The form printed in seed 004 §5.5.3 (E-004-08): the rate times 1 - β₁ᵗ takes the hat off m."""

        def update(self, w: Any, g: Any, state: Any, lr: float, decays: bool) -> None:
            super().update(w, g, state, lr * (1 - self.betas[0] ** self.steps), decays)

    v.check(
        {
            "outside": descend_square(lambda p: Adam(p, lr, betas, eps=eps), theta, steps),
            "inside": descend_square(lambda p: Adam(p, lr, betas, eps=eps, eps_inside=True), theta, steps),
            "m_without_hat": descend_square(lambda p: WithoutHat(p, lr, betas, eps=eps), theta, steps),
        }
    )


@pytest.mark.requirement("R-124")
def test_adam_eps_placement_matters_for_tiny_gradients() -> None:
    v = vector("der-opt-adam-tiny-gradient")
    moves = {}
    for where in ("outside", "inside"):
        params = block([0.0])
        set_gradients(params, [v.inputs["grad"]])
        Adam(
            params, v.inputs["lr"], v.inputs["betas"], eps=v.inputs["eps"], eps_inside=where == "inside"
        ).step()
        moves[where] = float(params["p0"].data[0])
    v.check(moves)


@pytest.mark.requirement("R-125")
def test_adam_with_the_transformer_setting() -> None:
    v = vector("der-opt-adam-transformer")
    rule = partial(Adam, lr=v.inputs["lr"], betas=v.inputs["betas"], eps=v.inputs["eps"])
    v.check(descend_square(rule, v.inputs["theta0"], v.inputs["steps"]))


@pytest.mark.requirement("R-123")
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_first_adam_step_has_the_size_of_the_rate(scale: float) -> None:
    params = block([0.0, 0.0])
    set_gradients(params, [scale, -scale])
    Adam(params, 0.01).step()
    np.testing.assert_allclose(params["p0"].data, [-0.01, 0.01], rtol=1e-3)


@pytest.mark.requirement("R-130")
class TestNamedExtras:
    def test_adamw_decays_matrices_only_and_apart_from_the_moments(self) -> None:
        params = block(matrix=np.full((2, 2), 3.0), bias=np.full(2, 3.0))
        AdamW(params, 0.1, weight_decay=0.5).step()  # zero gradients: only the decay acts
        np.testing.assert_allclose(params["matrix"].data, 3.0 * (1 - 0.1 * 0.5))
        np.testing.assert_array_equal(params["bias"].data, 3.0)

    def test_adamw_without_decay_is_adam(self) -> None:
        assert descend_square(lambda p: AdamW(p, 0.1, weight_decay=0.0), 1.0, 5) == descend_square(
            lambda p: Adam(p, 0.1), 1.0, 5
        )

    def test_sgd_weight_decay_is_the_gradient_of_the_penalty(self) -> None:
        params = block(matrix=np.full((2, 2), 3.0), bias=np.full(2, 3.0))
        set_gradients(params, np.ones((2, 2)), np.ones(2))
        SGD(params, 0.1, weight_decay=0.5).step()
        np.testing.assert_allclose(params["matrix"].data, 3.0 - 0.1 * (1 + 0.5 * 3.0))
        np.testing.assert_allclose(params["bias"].data, 3.0 - 0.1)

    def test_lion_by_hand(self) -> None:
        """Two steps: the sign comes from a fast average, the memory is a slow one, only matrices decay."""
        params = block([[1.0, -2.0]], [3.0])
        optimizer = Lion(params, 0.1, (0.5, 0.75), weight_decay=0.2)
        set_gradients(params, [[4.0, -1.0]], [2.0])
        optimizer.step()
        np.testing.assert_allclose(params["p0"].data, [[0.98 - 0.1, -1.96 + 0.1]], rtol=1e-15)
        np.testing.assert_allclose(params["p1"].data, [2.9], rtol=1e-15)
        set_gradients(
            params, [[-0.5, 0.5]], [-1.0]
        )  # m is 1, -0.25, 0.5: the first sign stays, the others turn
        optimizer.step()
        np.testing.assert_allclose(params["p0"].data, [[0.88 * 0.98 - 0.1, -1.86 * 0.98 - 0.1]], rtol=1e-15)
        np.testing.assert_allclose(params["p1"].data, [3.0], rtol=1e-15)

    def test_lion_moves_every_weight_by_the_rate(self) -> None:
        params = block(np.zeros(3))
        optimizer = Lion(params, 0.01)
        set_gradients(params, [5.0, -1e-3, 0.0])
        optimizer.step()
        np.testing.assert_allclose(params["p0"].data, [-0.01, 0.01, 0.0])
        set_gradients(
            params, [-0.4, 0.0, 0.0]
        )  # β₁ m + (1 - β₁) g = 0.9 · 0.05 - 0.1 · 0.4 > 0: the memory wins
        optimizer.step()
        np.testing.assert_allclose(params["p0"].data, [-0.02, 0.02, 0.0])

    def test_all_of_them_exist(self) -> None:
        assert cosine(1.0, 10, warmup=2)(0) < 1.0
        assert Dropout(0.1).p == 0.1


@pytest.mark.parametrize("name", ALL)
def test_chunks_do_not_change_the_result(name: str) -> None:
    """A block longer than one chunk, against the same values one parameter at a time."""
    rng = np.random.default_rng(1)
    size = CHUNK + 1000
    values, grads = rng.normal(size=(1, size)), rng.normal(size=(3, 1, size))
    params, pieces = block(values), [block(values[:, :700]), block(values[:, CHUNK - 50 : CHUNK + 50])]
    ranges = [slice(0, 700), slice(CHUNK - 50, CHUNK + 50)]
    optimizers = [ALL[name](p) for p in (params, *pieces)]
    for g in grads:
        set_gradients(params, g)
        for piece, span in zip(pieces, ranges, strict=True):
            set_gradients(piece, g[:, span])
        for optimizer in optimizers:
            optimizer.step()
    for piece, span in zip(pieces, ranges, strict=True):
        np.testing.assert_array_equal(params["p0"].data[:, span], piece["p0"].data)


@pytest.mark.parametrize("name", ALL)
def test_frozen_parameters_stay_to_the_bit_and_gradients_are_not_touched(name: str) -> None:
    rng = np.random.default_rng(2)
    live, frozen = (Param(rng.normal(size=(3, 4)), dtype=np.float64) for _ in range(2))
    frozen.requires_grad = False
    params = Parameters([("frozen", frozen), ("live", live)])
    before = params.state()
    params.grad[...] = rng.normal(size=params.grad.shape)
    grad = params.grad.copy()
    ALL[name](params).step()
    np.testing.assert_array_equal(frozen.data, before["frozen"])
    assert (live.data != before["live"]).all()
    np.testing.assert_array_equal(params.grad, grad)


@pytest.mark.parametrize("name", ALL)
def test_float32_parameters_stay_float32(name: str) -> None:
    layer = Linear(3, 2)
    optimizer = ALL[name](layer.parameters())
    layer(np.ones((1, 3), np.float32)).sum().backward()
    optimizer.step()
    assert layer.weight.dtype == np.float32
    assert {a.dtype for a in optimizer.arrays.values()} <= {np.dtype(np.float32)}


def test_a_pending_backward_notices_the_step() -> None:
    params = block([2.0])
    loss = (params["p0"] * params["p0"]).sum()
    set_gradients(params, [1.0])
    SGD(params, 0.1).step()
    with pytest.raises(GraphError, match="changed in place"):
        loss.backward()


def test_parameters_that_moved_to_another_block_are_noticed() -> None:
    layer = Linear(2, 2)
    optimizer = SGD(layer.parameters(), 0.1)
    Parameters(layer.named_parameters())
    with pytest.raises(GraphError, match=r"SGD: weight has moved to another block .*make a new one"):
        optimizer.step()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: SGD(p, -1.0), r"SGD: lr is -1\.0 \(must be a finite number, at least 0\)"),
        (lambda p: SGD(p, float("nan")), "SGD: lr is nan"),
        (lambda p: SGD(p, 0.1, weight_decay=-1), "SGD: weight_decay is -1"),
        (lambda p: Momentum(p, 0.1, 1.0), r"Momentum: momentum is 1\.0 \(must be at least 0 and below 1\)"),
        (lambda p: AdaGrad(p, eps=0.0), r"AdaGrad: eps is 0\.0 \(must be positive\)"),
        (lambda p: RMSprop(p, decay=1.5), r"RMSprop: decay is 1\.5"),
        (lambda p: RMSprop(p, eps=-1.0), "RMSprop: eps"),
        (lambda p: Adam(p, betas=(0.9, 1.0)), r"Adam: betas is \(0\.9, 1\.0\)"),
        (lambda p: Adam(p, eps=0.0), "Adam: eps"),
        (lambda p: AdamW(p, weight_decay=-0.1), "AdamW: weight_decay"),
        (lambda p: Lion(p, betas=(-0.1, 0.5)), "Lion: betas"),
        (lambda p: Lion(p, weight_decay=-0.1), "Lion: weight_decay"),
        (lambda p: SGD(p, 0.1).step(lr=float("inf")), "SGD: lr is inf"),
        (lambda p: SGD(p, "0.1"), r"SGD: lr is '0\.1' \(must be a finite number, at least 0\)"),
        (lambda p: SGD(p, b"1"), "SGD: lr is b'1'"),
        (lambda p: SGD(p, True), "SGD: lr is True"),
        (lambda p: SGD(p, np.True_), "SGD: lr is np.True_"),
        (lambda p: SGD(p, None), "SGD: lr is None"),
        (lambda p: SGD(p, 10**400), "SGD: lr is 1000"),
        (lambda p: SGD(p, np.array([0.1])), r"SGD: lr is array\(\[0\.1\]\) \(must be a finite number"),
        (lambda p: SGD(p, np.array("x")), r"SGD: lr is array\('x'"),
        (lambda p: SGD(p, [0.1, [0.2]]), r"SGD: lr is \[0\.1, \[0\.2\]\] \(must be a finite number"),
    ],
)
def test_bad_settings_are_refused(make: Callable[[Parameters], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(block([1.0]))


@pytest.mark.parametrize(
    "lr",
    [
        Decimal("0.5"),
        Fraction(1, 2),
        np.float32(0.5),
        np.array(0.5),
        cr.Tensor(0.5),
        cr.Tensor(np.array(0.5)),
    ],
)
def test_every_kind_of_number_is_a_rate(lr: Any) -> None:
    for make in (lambda p: SGD(p, lr), lambda p: SGD(p, 0.1)):
        params = block([1.0])
        optimizer = make(params)
        set_gradients(params, [1.0])
        optimizer.step(lr=lr)
        assert params["p0"].data[0] == 0.5
    assert type(SGD(block([1.0]), lr).lr) is float


def test_gradients_of_a_list_of_tensors_are_joined_once_for_an_optimizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    joined: list[int] = []
    whole = Tensors.grad.fget  # type: ignore[attr-defined]

    def counted(tensors: Tensors) -> Any:
        joined.append(tensors.size)
        return whole(tensors)

    monkeypatch.setattr(Tensors, "grad", property(counted))
    param = Param(np.ones(3, np.float32))
    optimizer = AdamW([param], 0.1)
    assert joined == [3]
    param.grad = np.ones(3, np.float32)
    with cr.backend("reference"):
        optimizer.step(scale=0.5)
    assert joined == [3] and param.array.dtype == np.float32


@pytest.mark.parametrize("name", ALL)
def test_the_kernels_do_the_steps_where_they_can(name: str) -> None:
    """Also of a block that has no parameter at all."""
    params = Parameters([("w", Param(np.ones(4, np.float32)))])
    optimizer = ALL[name](params)
    set_gradients(params, [1.0, 1.0, 1.0, 1.0])
    optimizer.step()
    assert (optimizer.kernels is not None) == native.available()
    with cr.backend("reference"):
        optimizer.step()
    assert optimizer.kernels is None
    ALL[name](Parameters([("w", Param(np.ones((0, 3), np.float32)))])).step()


@pytest.mark.parametrize("backend", ["reference", "native"])
@pytest.mark.parametrize("name", ALL)
def test_a_rehearsal_tells_the_next_step_and_changes_nothing(name: str, backend: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((300, 500), (7,), (40, 3))]
    with cr.backend(backend):
        params = Parameters([(f"w{i}", Param(array)) for i, array in enumerate(arrays)])
        optimizer = ALL[name](params)
        for _ in range(2):
            params.grad[...] = rng.normal(size=params.grad.size)
            grads = params.grad.copy()
            before, state = params.data.copy(), optimizer.state()
            chunks = list(optimizer.rehearse())
            assert [start for start, _ in chunks][:3] == [0, CHUNK, 2 * CHUNK]  # never a copy of the whole
            np.testing.assert_array_equal(params.data, before)
            np.testing.assert_array_equal(params.grad, grads)
            assert all(np.array_equal(value, state[key]) for key, value in optimizer.state().items())
            optimizer.step()
            moved = np.concatenate([moved for _, moved in chunks])
            np.testing.assert_array_equal(moved, params.data - before)


def test_a_rehearsal_counts_the_rate_of_a_group() -> None:
    slow, fast = (Param(np.ones(3, np.float32)) for _ in range(2))
    optimizer = SGD([{"params": [slow]}, {"params": [fast], "lr": 0.5}], 0.1)
    for param in (slow, fast):
        param.grad = np.ones(3, np.float32)
    for lr, ratio in ((None, 1.0), (0.2, 2.0)):  # of a schedule, which counts for both
        moved = dict(optimizer.rehearse(lr))
        np.testing.assert_allclose(moved[0], -0.1 * ratio, rtol=1e-6)
        np.testing.assert_allclose(moved[3], -0.5 * ratio, rtol=1e-6)
    assert (slow.array == 1).all() and (fast.array == 1).all() and optimizer.lr == 0.1
