"""Optimizer steps in C++ against NumPy, to the bit; collected only where the extension was built."""

from __future__ import annotations

import functools
import gc
import math
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.autograd import Param, Parameters
from chainrule.optim import SGD, AdaGrad, Adam, AdamW, Lion, Momentum, Optimizer, RMSprop
from chainrule.optim.clip import clip_global_norm, global_norm
from chainrule.optim.optimizer import CHUNK

extension = native.kernels()

ALL: dict[str, Callable[[Parameters], Optimizer]] = {
    "sgd": lambda p: SGD(p, 0.1),
    "sgd decay": lambda p: SGD(p, 0.1, weight_decay=0.3),
    "momentum": lambda p: Momentum(p, 0.1, weight_decay=0.3),
    "momentum outside": lambda p: Momentum(p, 0.1, lr_inside=False),
    "nesterov": lambda p: Momentum(p, 0.1, nesterov=True, lr_inside=False),
    "adagrad": lambda p: AdaGrad(p, 0.1),
    "adagrad inside": lambda p: AdaGrad(p, 0.1, eps_inside=True),
    "rmsprop": lambda p: RMSprop(p, 0.1),
    "rmsprop inside": lambda p: RMSprop(p, 0.1, eps_inside=True),
    "adam": lambda p: Adam(p, 0.1),
    "adam inside": lambda p: Adam(p, 0.1, eps_inside=True),
    "adamw": lambda p: AdamW(p, 0.1, weight_decay=0.3),
    "lion": lambda p: Lion(p, 0.1, weight_decay=0.3),
}


def steps(
    make: Callable[[Parameters], Optimizer], n: int, *, scale: float = 1.0, before: float = 1.0
) -> list[bytes]:
    """The values and the state after three steps on n numbers that decay and n that do not.

    Each gradient counts `scale` times, or is multiplied `before`.
    """
    rng = np.random.default_rng(n)
    params = Parameters([(name, Param(rng.normal(size=n), decay=name == "a")) for name in "ab"])
    optimizer = make(params)
    for _ in range(3):
        params.grad[...] = rng.normal(size=params.grad.shape)
        params.grad[:: n // 7 + 1] = 0
        params.grad *= before
        given = params.grad.tobytes()
        optimizer.step(scale=scale)
        assert params.grad.tobytes() == given
    return [params.data.tobytes(), *(a.tobytes() for a in optimizer.arrays.values())]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("name", ALL)
def test_the_bits_of_numpy(name: str, isa: str) -> None:
    assert extension.set_isa(isa)
    for n in (1, 65, 70_000):
        with cr.backend("reference"):
            want = steps(ALL[name], n)
        assert steps(ALL[name], n) == want, n


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("name", ALL)
def test_a_scale_gives_the_bits_of_gradients_multiplied_before(name: str, backend: str) -> None:
    with cr.backend(backend):
        for n in (65, 70_000):
            want = steps(ALL[name], n, before=0.3)
            assert steps(ALL[name], n, scale=0.3) == want != steps(ALL[name], n), n


@pytest.mark.parametrize("name", ["momentum", "adamw", "lion"])
def test_the_same_bits_for_any_number_of_threads(name: str) -> None:
    native.set_threads(1)
    want = steps(ALL[name], 100_003)
    for n in (2, 3, 8):
        native.set_threads(n)
        assert steps(ALL[name], 100_003) == want, f"{n} threads"


@pytest.mark.parametrize("n", [1, 7, 16, 33])
def test_any_length(n: int) -> None:
    """Blocks are whole vectors, single calls need not be; what lies beyond is left alone."""
    w, g = np.arange(40, dtype=np.float32), np.ones(40, np.float32)
    extension.sgd_step(w[:n], g[:n], 1.0, 0.0, 1.0)
    np.testing.assert_array_equal(w, np.arange(40) - (np.arange(40) < n))


def test_not_a_number_spoils_its_own_parameter_only() -> None:
    for make in ALL.values():
        params = Parameters([("a", Param(np.ones(40)))])
        optimizer = make(params)
        params.grad[:40] = 1
        params.grad[3] = np.nan
        optimizer.step()
        assert np.isnan(params.data[3]) and np.isnan(params.data).sum() == 1


def test_a_subclass_that_overrides_update_is_heard() -> None:
    class Halved(Adam):
        def update(self, w, g, state, lr, decays):
            super().update(w, g, state, lr / 2, decays)
            w += np.multiply(w, 0.0, out=self.scratch(w))

    for scale in (1.0, 0.3):
        want = steps(lambda p: Adam(p, 0.1), 70_000, scale=scale)
        assert steps(lambda p: Halved(p, 0.2), 70_000, scale=scale) == want


def test_a_subclass_that_overrides_update_gets_whole_pieces_of_gradients_as_they_are() -> None:
    """The kernel that it calls splits them among threads; only multiplied gradients come as copies of chunks."""
    sizes: list[int] = []

    class Counted(Adam):
        def update(self, w, g, state, lr, decays):
            sizes.append(g.size)
            super().update(w, g, state, lr, decays)

    steps(lambda p: Counted(p, 0.1), 70_000)
    assert min(sizes) >= 70_000
    sizes.clear()
    steps(lambda p: Counted(p, 0.1), 70_000, scale=0.3)
    assert max(sizes) == CHUNK


@pytest.mark.parametrize("kind", [Optimizer, Adam])
def test_an_update_without_kernels_gets_gradients_as_they_count(kind: type[Optimizer]) -> None:
    class Plain(kind):
        def update(self, w, g, state, lr, decays):
            assert g.size <= CHUNK
            w -= lr * g

    want = steps(lambda p: SGD(p, 0.1), 70_000, scale=0.3)
    assert steps(lambda p: Plain(p, 0.1), 70_000, scale=0.3)[0] == want[0]


def test_an_update_from_elsewhere_gets_gradients_as_they_count() -> None:
    def descend(w, g, state, lr, decays):
        w -= lr * g

    class Mixin:
        def update(self, w, g, state, lr, decays):
            descend(w, g, state, lr, decays)

    class Mixed(Mixin, SGD):
        scale = 5.0  # a setting of its own

    def patched(params: Parameters) -> Optimizer:
        optimizer = SGD(params, 0.1)
        optimizer.update = descend
        return optimizer

    want = steps(lambda p: SGD(p, 0.1), 65, scale=0.3)
    assert steps(lambda p: Mixed(p, 0.1), 65, scale=0.3) == want
    assert steps(patched, 65, scale=0.3) == want


def test_a_wrapper_of_an_update_gets_gradients_as_they_count() -> None:
    """It is called, not what it wraps: it may take no `scale` at all. It need not be hashable either."""

    class Wrapped(SGD):
        @functools.wraps(SGD.update)
        def update(self, *given):
            super().update(*given)

    class Wrapper:
        __hash__ = None

        def __init__(self, update):
            functools.update_wrapper(self, update)
            self.inner = update

        def __call__(self, w, g, state, lr, decays):
            self.inner(w, g, state, lr, decays)

    def patched(params: Parameters) -> Optimizer:
        optimizer = SGD(params, 0.1)
        optimizer.update = Wrapper(optimizer.update)
        return optimizer

    want = steps(lambda p: SGD(p, 0.1), 70_000, scale=0.3)
    assert steps(lambda p: Wrapped(p, 0.1), 70_000, scale=0.3) == want
    assert steps(patched, 70_000, scale=0.3) == want


def test_an_update_of_one_optimizer_is_not_kept_alive() -> None:
    params = Parameters([("w", Param(np.ones(3)))])
    optimizer = SGD(params, 0.1)
    held = np.ones(3)
    gone = weakref.ref(held)
    optimizer.update = lambda w, g, state, lr, decays, held=held: None
    optimizer.step()
    del optimizer, held
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("scale", [math.nan, math.inf, -1.0, "0.5", None])
def test_a_scale_that_is_no_factor_is_refused(scale: object) -> None:
    params = Parameters([("w", Param(np.ones(3)))])
    with pytest.raises(cr.ChainruleError, match="scale"):
        SGD(params, 0.1).step(scale=scale)
    np.testing.assert_array_equal(params.data[:3], 1)


@pytest.mark.parametrize("n", [0, 1, 65, 100_003])
def test_global_norm(n: int) -> None:
    params = Parameters([("a", Param(np.zeros(n)))])
    params.grad[:n] = 1e20 * np.random.default_rng(0).normal(size=n)
    want = math.sqrt(float((params.grad.astype(np.float64) ** 2).sum()))
    norms = set()
    for threads in (1, 2, 3, 8):
        native.set_threads(threads)
        norms.add(global_norm(params))
    assert len(norms) == 1 and norms.pop() == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("n", [1, 15, 17, 65])
def test_global_norm_of_a_list_counts_what_fills_no_vector(n: int, isa: str) -> None:
    """A block is padded with zeros; a tensor by itself is not."""
    param = Param(np.zeros(n))
    params = Parameters([("a", param)])
    param.grad[...] = np.arange(1.0, n + 1)
    assert extension.set_isa(isa) and params.kernels() is not None
    want = math.sqrt(n * (n + 1) * (2 * n + 1) / 6)
    assert [global_norm([param]), global_norm(params)] == pytest.approx([want, want], rel=1e-12)


def test_clipping_gives_the_bits_of_numpy() -> None:
    params = Parameters([("a", Param(np.zeros(70_000)))])
    before = np.random.default_rng(0).normal(size=params.grad.shape).astype(np.float32)
    params.grad[...] = before
    norm = clip_global_norm(params, 1.0)
    np.testing.assert_array_equal(params.grad, before * np.float32(1.0 / norm))


def test_zero_grad() -> None:
    params = Parameters([("a", Param(np.zeros(70_000)))])
    params.grad[...] = np.nan
    params.zero_grad()
    assert not params.grad.any()


def test_the_extension_refuses_what_does_not_fit() -> None:
    w = np.zeros(8, np.float32)
    with pytest.raises(ValueError, match="g has 7 elements, expected 8"):
        extension.sgd_step(w, w[:7], 1.0, 0.0, 1.0)
    with pytest.raises(TypeError):
        extension.sgd_step(w.astype(np.float64), w, 1.0, 0.0, 1.0)
    with pytest.raises(TypeError):
        extension.sgd_step(w[::2], w[::2], 1.0, 0.0, 1.0)
