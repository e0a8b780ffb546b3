"""The engine: recording, replaying, freeing, and what it says when it is misused."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Op, Tensor, backward, tape
from chainrule.autograd.mode import mode


def leaf(*values: float, dtype=np.float64) -> Tensor:
    return Tensor(np.array(values, dtype=dtype), requires_grad=True)


@pytest.mark.requirement("R-008")
def test_gradients_add_up_under_fan_out() -> None:
    b = leaf(3.0)
    (b + b).backward()
    assert b.grad == [2.0]
    b = leaf(3.0)
    (b * b + b).backward()
    assert b.grad == [7.0]


def test_shared_gradient_arrays_are_not_corrupted() -> None:
    """add hands the same array to both inputs; adding into one must not change the other."""
    a, b = leaf(1.0), leaf(2.0)
    s = a + b
    (s * 3.0 + s * 4.0 + a).sum().backward()
    assert (a.grad, b.grad) == ([8.0], [7.0])


@pytest.mark.requirement("R-009")
def test_a_chain_of_a_hundred_thousand_nodes() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + x
    y.backward()
    assert x.grad == [100_001.0]


@pytest.mark.requirement("R-010")
def test_two_backward_passes_add_up() -> None:
    x = leaf(2.0)
    y = x * x
    y.backward(retain=True)
    y.backward()
    assert x.grad == [8.0]
    x.zero_grad()
    (x * x).backward()
    assert x.grad == [4.0]


def test_diamond() -> None:
    x = leaf(2.0)
    a, b = x * 3.0, x * x
    (a * b).backward()  # 3x³ -> 9x²
    assert x.grad == [36.0]


def test_broadcasting_sums_the_gradient() -> None:
    row, column = leaf(1.0, 2.0, 3.0), Tensor(np.ones((4, 1)), requires_grad=True)
    (row * column).sum().backward()
    np.testing.assert_array_equal(row.grad, [4.0, 4.0, 4.0])
    np.testing.assert_array_equal(column.grad, np.full((4, 1), 6.0))


def test_numpy_on_the_left_records_too() -> None:
    x = leaf(2.0)
    y = np.array([3.0]) * x
    assert isinstance(y, Tensor)
    y.backward()
    assert x.grad == [3.0]


def test_python_numbers_keep_float32() -> None:
    x = Tensor([1.0, 2.0])
    assert x.dtype == np.float32
    for y in (x * 2.5, 1 / x, x - 1, x**2, x * np.float64(0.5), x / np.sqrt(2)):
        assert y.dtype == np.float32


def test_numbers_keep_their_own_dtype_when_alone() -> None:
    assert cr.ops.sigmoid(np.float64(1.0)).dtype == np.float64
    assert cr.ops.sigmoid(1.0).dtype == np.float32


def test_gradients_have_the_dtype_of_their_tensor() -> None:
    narrow, wide = leaf(2.0, dtype=np.float32), leaf(3.0)
    (narrow * wide).backward()
    assert (narrow.grad.dtype, wide.grad.dtype) == (np.float32, np.float64)
    middle = narrow * 1.0
    seen = []
    middle.register_hook(lambda g: seen.append(g.dtype))
    (middle * wide).backward()
    assert seen == [np.float32]


def test_a_loss_can_be_formatted() -> None:
    assert f"{Tensor(2.34567):.3f}" == "2.346"
    with pytest.raises(cr.ShapeError, match="has 2 elements"):
        f"{Tensor([1.0, 2.0]):.3f}"


def test_no_grad_records_nothing() -> None:
    x = leaf(2.0)
    with cr.no_grad():
        y = x * x
    assert not y.requires_grad and y.record is None


def test_arrays_in_arrays_out() -> None:
    y = cr.ops.mul(np.array([2.0]), np.array([3.0]))
    assert isinstance(y, np.ndarray) and y == [6.0]


def test_several_outputs_and_unused_ones() -> None:
    def forward(x):
        return (x * 2, x * 3), ()

    def backward(dy, saved, needs):
        return (dy[0] * 2 + dy[1] * 3,)

    split = Op("split", forward, backward, lambda rng: ())
    x = leaf(1.0)
    a, _ = split(x)
    a.backward()
    assert x.grad == [2.0]
    x.zero_grad()
    a, b = split(x)
    (a + b).backward()
    assert x.grad == [5.0]


# -- memory ----------------------------------------------------------------------------------------------------


def test_saved_values_are_freed_as_backward_goes() -> None:
    alive: list[weakref.ref[np.ndarray]] = []
    seen: list[int] = []

    def forward(x):
        kept = x * 1.0
        alive.append(weakref.ref(kept))
        return x * 2, (kept,)

    def backward(dy, saved, needs):
        seen.append(sum(ref() is not None for ref in alive))
        return (dy * 2,)

    double = Op("double", forward, backward, lambda rng: ())
    x = leaf(1.0)
    y = double(double(double(x)))
    y.backward()
    assert seen == [3, 2, 1]
    assert all(ref() is None for ref in alive)


def test_a_dropped_graph_is_freed_at_once() -> None:
    gc.disable()  # by reference counts alone, without the garbage collector
    try:
        x = leaf(1.0)
        kept = x * 2.0  # another graph that stays alive must not keep this one
        y = (x * x).exp()
        saved = weakref.ref(y.record.saved[0])
        assert saved() is not None
        del y
        assert saved() is None
        kept.backward()
    finally:
        gc.enable()


def test_dropping_a_very_long_chain() -> None:
    y = x = leaf(1.0)
    for _ in range(200_000):
        y = y + x
    last = weakref.ref(y)
    del y  # freeing is not a recursion either
    assert last() is None


def test_kept_losses_keep_no_saved_values() -> None:
    x, losses = leaf(1.0), []
    for _ in range(5):
        loss = (x * x).sum()
        loss.backward()
        losses.append(loss)
    assert all(loss.record.inputs == () and loss.record.saved == () for loss in losses)


def test_two_losses_on_one_tape() -> None:
    x = leaf(3.0)
    first, second = x * x, x * 5.0
    first.backward()
    second.backward()
    assert x.grad == [11.0]


def test_threads_do_not_disturb_each_other() -> None:
    results = {}

    def work(k: int) -> None:
        x = leaf(float(k))
        y = x
        for _ in range(200):
            y = y + x
        y.backward()
        results[k] = float(x.grad[0])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == dict.fromkeys(range(4), 201.0)


# -- hooks and captures -------------------------------------------------------------------------------------------


def test_hooks_see_and_replace_gradients() -> None:
    x = leaf(2.0)
    seen = []
    y = x * 3.0
    y.register_hook(lambda g: seen.append(g.copy()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    (y * y).backward()
    assert seen[0] == [12.0] and x.grad == [361.0]


def test_leaf_hook_sees_the_total_once() -> None:
    x, calls = leaf(2.0), []
    x.register_hook(lambda g: calls.append(float(g[0])))
    (x * x + x).backward()
    assert calls == [5.0] and x.grad == [5.0]


@pytest.mark.requirement("R-017")
def test_retain_grad_keeps_intermediate_gradients() -> None:
    w1, w2, w3, w6 = leaf(2.0), leaf(-3.0), leaf(10.0), leaf(-2.0)
    w4 = w1 * w2
    w5 = w3 + w4
    w4.retain_grad()
    w5.retain_grad()
    loss = w6 * w5
    loss.backward()
    assert (w4.grad, w5.grad) == ([-2.0], [-2.0])
    assert [float(w.grad[0]) for w in (w1, w2, w3, w6)] == [6.0, -4.0, -2.0, 4.0]


def test_intermediate_gradients_add_up_too() -> None:
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    z = y * 2.0
    z.backward(retain=True)
    z.backward()
    assert y.grad == [4.0]


def test_capture_reads_values_and_gradients_by_name() -> None:
    x = leaf(1.0, 2.0)
    with cr.capture() as seen, cr.scope("block"):
        with cr.scope("inner"):
            y = x * 3.0
        (y * y).sum().backward()
    assert list(seen) == ["block.inner.mul", "block.mul", "block.sum"]
    np.testing.assert_array_equal(seen["block.inner.mul"].value, [3.0, 6.0])
    np.testing.assert_array_equal(seen["block.inner.mul"].grad, [6.0, 12.0])
    assert seen["block.sum"].grad == 1.0
    with pytest.raises(cr.GraphError, match=r"nothing named 'mull'"):
        seen["mull"]


def test_capture_numbers_repeated_names_and_filters() -> None:
    x = leaf(1.0)
    with cr.capture("*mul") as seen:
        _ = (x * 2.0) * 3.0 + 1.0
    assert list(seen) == ["mul", "mul#2"]
    with cr.capture() as seen:
        cr.ops.exp(np.zeros(2))  # arrays: no tape, still visible
    assert seen["exp"].value.tolist() == [1.0, 1.0] and seen["exp"].grad is None


# -- misuse --------------------------------------------------------------------------------------------------------


def test_shape_mismatch_names_op_shapes_and_rule() -> None:
    with pytest.raises(cr.ShapeError, match=r"add: .*\(2, 3\), \(4,\)"):
        Tensor(np.zeros((2, 3))) + Tensor(np.zeros(4))


def test_backward_from_a_vector_needs_a_seed() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(cr.GraphError, match=r"output has shape \(2,\) \(must be a scalar"):
        (x * x).backward()
    with pytest.raises(cr.ShapeError, match=r"seed has shape \(3,\), output has shape \(2,\)"):
        (x * x).backward(np.ones(3))
    (x * x).backward(np.array([1.0, 10.0]))
    np.testing.assert_array_equal(x.grad, [2.0, 40.0])


def test_backward_twice() -> None:
    x = leaf(1.0)
    y = x * x
    y.backward()
    with pytest.raises(cr.GraphError, match="mul was already used by an earlier backward"):
        y.backward()


def test_backward_through_a_used_branch() -> None:
    x = leaf(1.0)
    shared = x * x
    other = shared * 2.0
    (shared * 3.0).backward()
    with pytest.raises(cr.GraphError, match="mul was already used by an earlier backward"):
        other.backward()


def test_building_on_a_used_graph() -> None:
    x = leaf(1.0)
    y = x * x
    y.backward()
    z = y * x  # looking at a used value is fine (logging); differentiating through it is not
    assert z.data == [1.0]
    with pytest.raises(cr.GraphError, match="mul was already used by an earlier backward"):
        z.backward()


def test_integers_have_no_gradient() -> None:
    with pytest.raises(cr.GraphError, match=r"dtype int64 of shape \(2,\) cannot require a gradient"):
        Tensor(np.array([1, 2]), requires_grad=True)


def test_nothing_requires_a_gradient() -> None:
    with pytest.raises(cr.GraphError, match="depends on nothing that requires a gradient"):
        (Tensor([1.0]) * 2.0).backward()


@pytest.mark.parametrize("size", [3, 1000], ids=["small", "large"])
def test_in_place_change_of_a_saved_array(size: int) -> None:
    x = Tensor(np.ones(size), requires_grad=True)
    y = (x * x).sum()
    x.data[...] = 5.0
    with pytest.raises(
        cr.GraphError, match=rf"input 0 of shape \({size},\) was changed in place after mul saved it"
    ):
        y.backward()
    y = (x * x).sum()
    x.data -= 0.0  # assigning counts as a change even when the numbers stay
    with pytest.raises(cr.GraphError, match="changed in place"):
        y.backward()


def test_one_changed_number_is_noticed() -> None:
    w = Tensor(np.ones(1000), requires_grad=True)
    loss = (w * w).sum()
    w.data[7] = 100.0
    with pytest.raises(cr.GraphError, match="changed in place"):
        loss.backward()


@pytest.mark.parametrize("constant", [Tensor([3.0, 4.0]), np.array([3.0, 4.0])], ids=["tensor", "array"])
def test_a_changed_factor_without_gradient_is_noticed(constant) -> None:
    w = leaf(1.0, 2.0)
    loss = (w * constant).sum()
    (constant.data if isinstance(constant, Tensor) else constant)[0] = 9.0
    with pytest.raises(cr.GraphError, match=r"input 1 of shape .* was changed in place"):
        loss.backward()


def test_switching_on_the_gradient_of_integers_is_refused() -> None:
    ids = Tensor(np.array([1, 2]))
    with pytest.raises(cr.GraphError, match="cannot require a gradient"):
        ids.requires_grad = True


def test_whole_numbers_beside_floats_are_floats() -> None:
    x = Tensor([1.0, 2.0])
    assert (x * np.arange(2)).dtype == (x * np.array([True, False])).dtype == np.float32


def test_wrong_arguments_name_the_op() -> None:
    with pytest.raises(cr.ConfigError, match=r"exp: unknown argument 'base' \(it takes exp\(x, /\)\)"):
        cr.ops.exp(np.ones(2), base=2)
    with pytest.raises(cr.ConfigError, match="mul: got 'a' as an operand"):
        leaf(1.0) * "a"


def test_backward_must_return_a_tuple() -> None:
    bad = Op("bad", lambda a: (a * 2, ()), lambda dy, saved, needs: dy, lambda rng: ())
    with pytest.raises(cr.GraphError, match="bad: backward returned ndarray"):
        bad(leaf(1.0)).backward()


def test_hooks_must_keep_the_shape() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g.mean())
    with pytest.raises(cr.GraphError, match=r"hook: returned shape \(\) for a gradient of shape \(2,\)"):
        (x * x).sum().backward()


def test_in_place_change_behind_a_view() -> None:
    x = Tensor(np.ones((2, 3)), requires_grad=True)
    flipped = x.T
    y = (flipped * flipped).sum()
    x.data[...] = 5.0
    with pytest.raises(cr.GraphError, match="changed in place after transpose saved it"):
        y.backward()


def test_computed_values_are_read_only() -> None:
    x = leaf(1.0)
    y = x * 2.0
    with pytest.raises(ValueError, match="read-only"):
        y.data[0] = 1.0
    with pytest.raises(cr.GraphError, match="cannot change the values of a computed tensor"):
        y.data = [1.0]


def test_a_leaf_nobody_saved_may_change() -> None:
    x = leaf(1.0)
    y = x + 2.0
    x.data[0] = 7.0
    y.backward()
    assert x.grad == [1.0]


def test_identity_results_do_not_lock_the_leaf() -> None:
    identity = Op("identity", lambda x: (x, ()), lambda dy, saved, needs: (dy,), lambda rng: ())
    x = leaf(1.0)
    identity(x)
    x.data[0] = 2.0
    assert x.data == [2.0]


def test_backward_must_return_one_gradient_per_input() -> None:
    bad = Op("bad", lambda a, b: (a + b, ()), lambda dy, saved, needs: (dy,), lambda rng: ())
    with pytest.raises(cr.GraphError, match="bad: backward returned 1 gradients for 2 inputs"):
        bad(leaf(1.0), leaf(2.0)).backward()


def test_numpy_functions_do_not_silently_drop_gradients() -> None:
    with pytest.raises(cr.GraphError, match="NumPy would drop the gradient"):
        np.asarray(leaf(1.0))
    assert np.asarray(Tensor([1.0])).tolist() == [1.0]


def test_unknown_backend() -> None:
    with pytest.raises(cr.ConfigError, match="backend: got 'cuda'"), cr.backend("cuda"):
        pass


def test_modes_are_restored_after_an_error() -> None:
    with pytest.raises(KeyError), cr.no_grad(), cr.backend("reference"), cr.scope("a"), cr.capture():
        raise KeyError
    assert (mode.grad, mode.scope, mode.captures) == (True, "", ())


def test_large_outputs_of_cheap_ops_are_computed_again() -> None:
    """Nobody keeps layernorm's output; the gradients are those of a graph that keeps everything, to the bit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(700, 800)).astype(np.float32)
    W = rng.normal(size=(3, 800)).astype(np.float32)

    def gradients(large: int, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
        monkeypatch.setattr(tape, "LARGE", large)
        leaf, weight = Tensor(x, requires_grad=True), Tensor(W, requires_grad=True)
        normed = cr.ops.layernorm(leaf, np.ones(800, np.float32), np.zeros(800, np.float32))
        kept = weakref.ref(normed.array)
        loss = cr.ops.linear(cr.ops.gelu(normed), weight).sum()
        del normed
        assert (kept() is None) is (x.nbytes >= large)
        loss.backward()
        return [leaf.grad.tobytes(), weight.grad.tobytes()]

    with pytest.MonkeyPatch.context() as patch:
        assert gradients(1 << 20, patch) == gradients(1 << 40, patch)


def test_what_is_computed_again_can_be_used_as_often_as_what_is_kept() -> None:
    x = Tensor(np.ones((700, 800), np.float32), requires_grad=True)
    W = Tensor(np.ones((3, 800), np.float32), requires_grad=True)
    y = cr.ops.gelu(x)
    once = cr.ops.linear(y, W).sum()
    once.backward(retain=True)
    first = W.grad.copy()
    once.backward()
    np.testing.assert_array_equal(W.grad, 2 * first)

    y = cr.ops.gelu(x)
    one, two = cr.ops.linear(y, W).sum(), cr.ops.linear(y, W).sum()
    one.backward()
    with pytest.raises(cr.GraphError, match="gelu was already used by an earlier backward"):
        two.backward()


def test_the_engine_alone_opens_the_ops_when_the_first_is_called() -> None:
    code = "from chainrule.autograd import Tensor; print((Tensor([1.0]) + 1).data)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2.]"


def test_each_leaf_is_reported_when_its_gradient_is_complete() -> None:
    first, second, unused = (cr.Param(np.full(3, value, np.float32)) for value in (2.0, 3.0, 4.0))
    seen: list[tuple[str, list[float]]] = []

    def done(tensor: Tensor) -> None:
        seen.append(("first" if tensor is first else "second", tensor.grad.tolist()))

    hidden = cr.ops.mul(first, 5.0)  # the earlier it is used, the later its gradient is complete
    loss = cr.ops.mul(cr.ops.mul(hidden, second), first).sum()
    backward([(loss, None)], done=done)
    assert [name for name, _ in seen] == ["second", "first"]
    assert dict(seen) == {"first": first.grad.tolist(), "second": second.grad.tolist()}
    assert unused.grad is None


def test_a_leaf_that_a_recomputation_may_reach_is_reported_after_it() -> None:
    inside, both = (cr.Param(np.full(3, value, np.float32)) for value in (2.0, 3.0))
    seen: list[tuple[Tensor, list[float]]] = []
    x = Tensor(np.ones(3, np.float32), requires_grad=True)
    hidden = cr.checkpoint(lambda t: t * inside * both, x)
    loss = cr.ops.mul(hidden, both).sum()  # its gradient comes from here first, then from inside
    backward([(loss, None)], done=lambda tensor: seen.append((tensor, tensor.grad.tolist())))
    assert {id(tensor) for tensor, _ in seen} == {id(x), id(both)}
    assert all(grad == tensor.grad.tolist() for tensor, grad in seen)
    both.register_hook(lambda grad: 2 * grad)  # called with the whole gradient, at the end
    seen.clear()
    backward([(cr.ops.mul(x, both).sum(), None)], done=lambda tensor: seen.append((tensor, [])))
    assert [tensor for tensor, _ in seen] == [x]
