"""Sums over named axes, made of the shape ops and matmul.        Derivation: docs/derivations/matmul.md"""

from __future__ import annotations

import math

import numpy as np

from chainrule.autograd import Tensor
from chainrule.autograd.call import short
from chainrule.errors import ShapeError
from chainrule.ops._composition import Composition
from chainrule.ops.arrays.indexing import getitem
from chainrule.ops.arrays.matmul import matmul
from chainrule.ops.arrays.reduce import sum
from chainrule.ops.arrays.shape import reshape, transpose

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@Composition
def einsum(subscripts: str, *xs: Tensor) -> Tensor:
    """Products of arrays whose axes have letters, summed over the letters that the result lacks.

    `...` stands for axes that all arrays with it share. Without `->` the result has, in alphabetical order, the letters
    that occur once. Arrays are multiplied from left to right, each pair by one batched matmul.

    >>> import chainrule as cr, numpy as np
    >>> cr.ops.einsum("ij,jk->ik", np.eye(2), np.ones((2, 3))).shape
    (2, 3)
    """
    inputs, output = _letters(subscripts, [x.ndim for x in xs])
    sizes: dict[str, int] = {}
    for names, x in zip(inputs, xs, strict=True):
        for letter, size in zip(names, x.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                rule = f"axis {letter!r} must have one size, has {sizes[letter]} and {size}"
                raise ShapeError(f"einsum: {subscripts!r} of {', '.join(str(x.shape) for x in xs)} ({rule})")
    if unknown := set(output) - sizes.keys():
        raise ShapeError(f"einsum: {subscripts!r} ({sorted(unknown)} of the result must occur in an array)")
    terms = [_diagonal(names, x) for names, x in zip(inputs, xs, strict=True)]
    for i, (names, x) in enumerate(terms):  # letters of one array alone are summed at once
        others = {*output, *(letter for j, (other, _) in enumerate(terms) if j != i for letter in other)}
        terms[i] = _summed(names, x, others)
    names, y = terms[0]
    for i, (right, x) in enumerate(terms[1:], 2):
        wanted = {*output, *(letter for later, _ in terms[i:] for letter in later)}
        names, y = _product(names, y, right, x, wanted)
    return transpose(y, axes=tuple(names.index(letter) for letter in output))


def _letters(subscripts: str, ndims: list[int]) -> tuple[list[str], str]:
    """The letters of each array and of the result, with letters of their own for the axes of `...`."""
    rule = "must be letters for each array, such as 'ij,jk->ik'"
    if not isinstance(subscripts, str):
        raise ShapeError(f"einsum: subscripts {short(subscripts)} ({rule})")
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    parts = left.split(",")
    used = set(left + result) - set(",.")
    if len(parts) != len(ndims) or not used <= set(LETTERS):
        raise ShapeError(f"einsum: subscripts {subscripts!r} for {len(ndims)} arrays ({rule})")
    free = [letter for letter in reversed(LETTERS) if letter not in used]
    rest = [ndim - len(part.replace("...", "")) for part, ndim in zip(parts, ndims, strict=True)]
    wide = max([n for part, n in zip(parts, rest, strict=True) if "..." in part], default=0)
    named = "".join(free[: max(wide, 0)])
    filled = []
    for part, n, ndim in zip(parts, rest, ndims, strict=True):
        names = part.replace("...", named[len(named) - n :] if n > 0 else "")
        if "." in names or len(names) != ndim:
            raise ShapeError(f"einsum: {part!r} for an array of {ndim} axes (must have as many letters)")
        filled.append(names)
    if not arrow:
        once = "".join(filled)
        result = named + "".join(sorted(a for a in set(once) if once.count(a) == 1 and a not in named))
    output = result.replace("...", named)
    if len(set(output)) < len(output) or "." in output:
        raise ShapeError(f"einsum: the result of {subscripts!r} (each letter must occur once)")
    return filled, output


def _diagonal(names: str, x: Tensor) -> tuple[str, Tensor]:
    """A letter that occurs twice in one array means its diagonal."""
    for letter in dict.fromkeys(names):
        while names.count(letter) > 1:
            i, j = names.index(letter), names.rindex(letter)
            order = (*(k for k in range(len(names)) if k not in (i, j)), i, j)
            along = np.arange(x.shape[i])
            x = getitem(transpose(x, axes=order), index=(..., along, along))
            names = "".join(names[k] for k in order[:-2]) + letter
    return names, x


def _summed(names: str, x: Tensor, wanted: set[str]) -> tuple[str, Tensor]:
    gone = tuple(i for i, letter in enumerate(names) if letter not in wanted)
    return ("".join(a for a in names if a in wanted), sum(x, axis=gone)) if gone else (names, x)


def _product(left: str, a: Tensor, right: str, b: Tensor, wanted: set[str]) -> tuple[str, Tensor]:
    """Σ a b over the letters of both that are not wanted, as one batched matmul."""
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in wanted]
    inner = [letter for letter in both if letter not in wanted]
    rows = [letter for letter in left if letter not in right]
    columns = [letter for letter in right if letter not in left]
    A = _grouped(left, a, batch, rows, inner)  # (batch, n, k)
    B = _grouped(right, b, batch, inner, columns)  # (batch, k, m)
    sizes = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))
    names = batch + rows + columns
    return "".join(names), reshape(matmul(A, B), shape=tuple(sizes[letter] for letter in names))


def _grouped(names: str, x: Tensor, *groups: list[str]) -> Tensor:
    """x with its axes in the order of the groups, each group merged into one axis."""
    sizes = dict(zip(names, x.shape, strict=True))
    order = tuple(names.index(letter) for group in groups for letter in group)
    merged = tuple(math.prod(sizes[letter] for letter in group) for group in groups)
    return reshape(transpose(x, axes=order), shape=merged)
