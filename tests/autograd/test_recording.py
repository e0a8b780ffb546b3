"""Recordings: what was recorded is repeated on new values; what cannot be repeated breaks the recording."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native, random
from chainrule.autograd import Op, Tensor
from chainrule.autograd.recording import Input, Recording, constant, contiguous, copied
from tests.battery import checks as battery

pytestmark = pytest.mark.skipif(not native.available(), reason="recordings are of kernels")


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def recorded(fn: Callable[..., Any], *known: Any) -> tuple[Recording, Any]:
    recording = Recording()
    recording.know(*known)
    with recording.recorded():
        result = fn(*known)
    return recording, result


def broken(fn: Callable[..., Any], *known: Any) -> str:
    return recorded(fn, *known)[0].broken


def test_a_replay_computes_on_new_values() -> None:
    x = numbers(3, 4)
    recording, y = recorded(lambda x: cr.ops.softmax(cr.ops.silu(x)), x)
    x[...] = numbers(3, 4, seed=1)
    recording.replay()
    assert recording.broken == "" and recording.calls == 2
    assert y.tobytes() == cr.ops.softmax(cr.ops.silu(x)).tobytes()


def test_memory_is_reused_within_a_recording_and_nothing_is_allocated_by_a_replay() -> None:
    x = numbers(1 << 16)

    def chain(x: Any) -> Any:
        for _ in range(50):
            x = cr.ops.tanh(x)
        return x

    recording, _ = recorded(chain, x)
    assert recording.bytes <= 3 * x.nbytes + (1 << 16)
    before = recording.bytes, native.kernels().held_bytes()
    recording.replay()
    assert (recording.bytes, native.kernels().held_bytes()) == before


def test_arrays_outlive_their_recording() -> None:
    y = recorded(cr.ops.tanh, numbers(1000))[1]
    expected = y.copy()
    for _ in range(10):
        native.empty((1000,))[...] = 7
    assert y.tobytes() == expected.tobytes()


def test_what_numpy_made_breaks_it() -> None:
    x = numbers(3, 4)
    assert "no kernel made" in broken(lambda x: cr.ops.silu(x * 2), x)
    assert "exp is computed by NumPy" in broken(cr.ops.exp, x)
    assert "sum of gradients" not in broken(lambda x: cr.ops.transpose(x), x)  # a view


def test_what_numpy_wrote_into_memory_of_a_kernel_breaks_it() -> None:
    def forward(x: Any) -> Any:
        y = native.empty(x.shape)
        np.multiply(x, 2, out=y)
        return cr.ops.silu(y)

    assert "no kernel has written" in broken(forward, numbers(5))


def test_a_part_that_a_kernel_wrote_is_not_the_whole() -> None:
    def forward(x: Any) -> Any:
        y = native.empty((2, 6))
        native.kernels().copy(y[:, :3], x)
        y[:, 3:] = 2 * x
        return cr.ops.silu(y)

    def both(x: Any) -> Any:
        y = native.empty((2, 6))
        native.kernels().copy(y[:, 3:], x)
        native.kernels().copy(y[:, :3], x)
        return cr.ops.silu(y)

    assert "no kernel has written" in broken(forward, numbers(2, 3))
    assert broken(both, numbers(2, 3)) == ""


def test_what_is_added_to_is_read() -> None:
    kernels = native.kernels()

    def sums(x: Any) -> None:
        total = native.empty((4,))
        total[...] = x[0]
        kernels.column_sums(total, x)

    def product(x: Any) -> None:
        y = native.empty((1, 4, 4))
        y[...] = x
        kernels.gemm(y, x[None], x[None], None, True, 0)

    def product_of_its_own(x: Any) -> None:
        kernels.gemm(native.empty((1, 4, 4)), x[None], x[None], None, False, 0)

    assert "no kernel has written" in broken(sums, numbers(4, 4))
    assert "no kernel has written" in broken(product, numbers(4, 4))
    assert broken(product_of_its_own, numbers(4, 4)) == ""


def test_an_output_that_is_its_input_is_no_view() -> None:
    """It may be so for these values only, or have been changed in place."""

    def same(x: Any) -> Any:
        return x, ()

    def clipped(dy: Any, saved: Any, needs: Any) -> Any:
        return (np.clip(dy, -1, 1, out=dy),)

    def run(op: Op) -> str:
        def both_passes(x: Any, dy: Any) -> None:
            leaf = Tensor.wrap(x)
            leaf.requires_grad = True
            op(leaf).backward(dy)

        return broken(both_passes, numbers(3), numbers(3))

    example = cr.ops.all_ops()["transpose"].example

    def passed_on(dy: Any, saved: Any, needs: Any) -> Any:
        return (dy,)

    assert run(Op("planted", same, passed_on, example)) == "planted is computed by NumPy"
    silu = OPS["silu"].native[0]
    with pytest.raises(ValueError, match="read-only"):
        run(Op("planted", same, clipped, example, native=(lambda x: (silu(x)[0], ()), clipped)))
    late = Op("planted", same, passed_on, example)
    assert broken(lambda dy: late.run_backward(dy, (), (True,)), numbers(3)).startswith(
        "backward of planted is"
    )


def test_an_array_that_is_guarded_is_touched_by_the_calls_that_write_there() -> None:
    x, total = numbers(3, 4), np.zeros(4, np.float32)
    ids = np.zeros(3, np.int64)
    recording = Recording()
    recording.know(x, total, ids)
    recording.guard(total)
    with recording.recorded():
        y = cr.ops.embedding(x, ids=Input(ids))
        native.kernels().column_sums(total, y)
    recording.replay()
    assert recording.touched
    ids[0] = 7
    with pytest.raises(ValueError, match="7"):
        recording.replay()
    assert not recording.touched


def test_a_value_that_python_sees_breaks_it() -> None:
    x = numbers(5)
    assert "returns a value" in broken(lambda x: native.kernels().sum_of_squares(x), x)
    for read in (Tensor.item, Tensor.numpy, Tensor.tolist, float, bool, lambda x: x.data):
        assert "read by" in broken(lambda x, read=read: read(Tensor.wrap(x)), numbers(1))


def test_a_broken_recording_is_not_replayed() -> None:
    with pytest.raises(RuntimeError, match="broken"):
        recorded(cr.ops.exp, numbers(3))[0].replay()


@pytest.mark.parametrize(
    "read",
    [
        np.asarray,
        np.sum,
        bool,
        list,
        lambda x: x == 1,
        lambda x: x + 1,
        lambda x: x.all(),
        lambda x: x.max(),
        lambda x: x.astype(float),
        lambda x: x[[0]],
        lambda x: x[0],
        lambda x: np.where(x, 1, 0),
        lambda x: np.concatenate([x, x]),
        lambda x: np.less(1, x),
    ],
)
def test_an_input_is_not_read_by_numpy(read: Callable[[Any], Any]) -> None:
    x = np.array([1])
    recording, found = recorded(lambda x: read(Input(x)), x)
    assert "NumPy reads an input" in recording.broken
    np.testing.assert_array_equal(found, read(x))


def test_shapes_and_views_of_an_input_are_free() -> None:
    x = np.arange(6)

    def views(x: Any) -> Any:
        x = Input(x)
        return len(x), x.shape, x.ndim, x.size, x.dtype, np.shape(x), x[1:], x.reshape(2, 3)[None, :, 1:]

    assert broken(views, x) == ""


def test_constants_are_known_and_what_is_made_of_them() -> None:
    x, W = numbers(2, 3, 4), numbers(3, 4)
    assert broken(lambda x, W: cr.ops.embedding(W, ids=np.arange(3)), x, W)
    assert not broken(lambda x, W: cr.ops.embedding(W, ids=constant(np.arange(3))), x, W)
    assert not broken(lambda x, W: cr.ops.rotary(x, positions=constant(np.arange(3))), x, W)
    assert broken(lambda x, W: cr.ops.rotary(x, positions=np.arange(3)), x, W)


def test_masks_are_those_of_the_step_that_is_replayed() -> None:
    x = numbers(100)
    recording = Recording()
    recording.know(x)

    def dropped() -> Any:
        return cr.ops.dropout(x, p=0.5, key=random.next_key("dropout"))

    with random.step(3), random.part(1), recording.recorded():
        y = dropped()
    with random.step(8), random.part(2):
        recording.replay()
        assert y.tobytes() == dropped().tobytes()
    with random.step(3), random.part(1):
        recording.replay()
        assert y.tobytes() == dropped().tobytes()


def test_a_key_of_another_step_breaks_it() -> None:
    key = random.key("dropout", 5, seed=1)
    assert "not of this step" in broken(lambda x: cr.ops.dropout(x, p=0.5, key=key), numbers(9))


def test_random_numbers_of_numpy_break_it() -> None:
    """A branch that depends on chance is not the same in every step."""
    assert "NumPy draws" in broken(lambda x: random.generator("layers", 1).random() < 0.5, numbers(3))


def test_copies_of_any_strides() -> None:
    x = numbers(3, 4, 5)
    for view in (x, x.T, x[:, ::2, 1:], x[0, 0, 0:1].reshape(())):
        recording, y = recorded(lambda _, view=view: copied(view), x)
        assert recording.broken == "" and y.tobytes() == view.tobytes() and y.flags.c_contiguous
    assert contiguous(x) is x


OPS = cr.ops.all_ops()
REPLAYED = (
    "add", "attention", "cross_entropy", "dropout", "embedding", "gelu", "gelu_tanh", "gru_sequence", "layernorm",
    "linear", "linear_cross_entropy", "log_softmax", "lstm_sequence", "matmul", "mul", "packed_attention", "relu",
    "rmsnorm", "rnn_sequence", "sigmoid", "silu", "softmax", "swiglu", "tanh",
)  # fmt: skip


@pytest.mark.parametrize("name", REPLAYED)
def test_these_ops_can_be_replayed(name: str) -> None:
    """The battery compares bits where an op can be recorded; here that they can, on one example at least."""
    assert "" in {battery.replayed(OPS[name], example) for example in battery.examples(OPS[name])}


def test_an_op_that_repeats_an_old_value_turns_the_battery_red() -> None:
    def forward(x: Any) -> Any:
        y = native.empty_like(x)
        native.kernels().silu_forward(y, x)
        y *= x.max()  # by NumPy, after the kernel: a replay does not see it
        return y, (x,)

    silu = OPS["silu"]
    wrong = Op("planted", silu.forward, silu.backward, silu.example, native=(forward, silu.native[1]))
    assert battery.replayed(wrong, battery.examples(wrong)[0]) == "its replay repeats an old value"
    assert "check_replay" in set(battery.failures(wrong))
    assert "check_replay" not in set(battery.failures(silu))
