"""Stored parameters: read when they are used, never kept, and like any other once they have values of their own."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Param
from chainrule.autograd.stored import StoredParam
from chainrule.nn.init import stored_parameters
from chainrule.trace import trace

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def stored() -> tuple[StoredParam, list[int]]:
    """A parameter, and a list that grows with each reading of it."""
    param, reads = StoredParam((2, 3), decay=True), []

    def read() -> np.ndarray:
        reads.append(1)
        return VALUES.copy()

    param.read = read
    return param, reads


def test_its_shape_is_known_without_reading() -> None:
    param, reads = stored()
    assert (param.shape, param.ndim, param.size, len(param), param.dtype) == ((2, 3), 2, 6, 2, np.float32)
    assert isinstance(param, Param) and param.requires_grad and param.decay and not reads


def test_each_use_reads_and_none_can_be_written_to() -> None:
    param, reads = stored()
    assert (param.array == VALUES).all() and (param.numpy() == VALUES).all() and len(reads) == 2
    assert (cr.ops.linear(np.eye(3, dtype=np.float32), param, None).numpy() == VALUES.T).all() and len(
        reads
    ) > 2
    with pytest.raises(ValueError, match="read-only"):
        param.array[...] = 0


def test_a_number_stays_one_and_a_transposed_matrix_is_read_row_by_row() -> None:
    scalar, matrix = StoredParam((), decay=False), StoredParam((3, 2), decay=True)
    scalar.read = lambda: np.array(2.0, np.float32)
    matrix.read = lambda: VALUES.T
    assert scalar.array.shape == scalar.shape == () and scalar.array == 2
    assert matrix.array.flags.c_contiguous and (matrix.array == VALUES.T).all()


def test_a_trace_reads_nothing() -> None:
    param, reads = stored()
    graph = trace(lambda x: cr.ops.linear(x, param, None), x=cr.Tensor(np.ones((4, 3), np.float32)))
    assert graph.nodes[0].inputs[1] is param and graph.nodes[0].shapes == ((4, 2),) and not reads


def test_values_of_its_own_replace_those_that_are_read() -> None:
    param, reads = stored()
    param.array = np.ones((2, 3), np.float32)
    assert (param.array == 1).all() and not reads


def test_a_block_and_a_copy_have_the_values() -> None:
    with stored_parameters():
        layer = cr.nn.Linear(3, 2, bias=False)
    layer.weight.read = VALUES.copy  # type: ignore[attr-defined]
    twin = copy.deepcopy(layer)
    assert type(twin.weight) is Param and (twin.weight.array == VALUES).all()
    assert (layer.parameters().data[:6] == VALUES.ravel()).all()
    layer.weight.data -= 1
    assert (layer.weight.array == VALUES - 1).all() and (twin.weight.array == VALUES).all()
