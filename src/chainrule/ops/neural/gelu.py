"""GELU, x Φ(x): each element weighted by the probability that a standard normal number is smaller.

Derivations: docs/derivations/activations.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd import Op
from chainrule.autograd.abstract import saves_inputs
from chainrule.autograd.types import Array, Grads, Needs, Result, Saved
from chainrule.ops._util import native_map
from chainrule.ops.arrays.elementwise import add, mul
from chainrule.ops.neural.activations import logistic, smooth_example, tanh

# erfc(z) = e^(-z²) p(s), s = 2k/(z + k) - 1, k = 2.5, z >= 0: p from the highest power down.      [AC.15]
# fmt: off
ERFCX_64 = (
    1.2015631957439373e-09, -5.280561864836449e-09, 1.4472587351099183e-09, 3.2681984768508105e-08,
    -5.767268906346543e-08, -8.343677252894169e-08, 3.8688378696004414e-07, -7.764817209590534e-08,
    -1.8146222936444714e-06, 2.2991545915051866e-06, 7.554293505503906e-06, -1.861471496092263e-05,
    -3.418227853655353e-05, 0.00012887719545666266, 0.00022838036023775085, -0.0008759154502193771,
    -0.0026423659617545283, 0.003993701165715596, 0.039922539075453956, 0.1250330523788374,
    0.2517131932174517, 0.3717367339489733, 0.2108063640611436,
)
ERFCX_32 = (
    0.0003151761293, -0.0008190567934, -0.002717328283, 0.003995022789, 0.03994086506,
    0.1250302726, 0.2517117116, 0.3717369452, 0.2108063885,
)
# fmt: on
BLOCK = 1 << 15  # elements: several passes over a block in the cache instead of over memory


def _erfc(z: Array) -> tuple[Array, Array]:
    """erfc(z) and e^(-z²) for z >= 0, z not a scalar; erfc off by at most 1e-15 (float64), 3e-7 (float32)."""
    first, second, *rest = ERFCX_32 if z.dtype == np.float32 else ERFCX_64
    s = z + 2.5
    np.divide(5.0, s, out=s)
    s -= 1
    p = s * first
    p += second
    for c in rest:
        p *= s
        p += c
    gauss = np.multiply(z, z, out=s)
    np.negative(gauss, out=gauss)
    np.exp(gauss, out=gauss)
    p *= gauss
    return p, gauss


def erf(x: Any) -> Array:
    """The error function 2/√π ∫₀ˣ e^(-t²) dt of each element; absolute error below 1e-15 in float64.

    >>> import chainrule as cr, numpy as np
    >>> float(cr.ops.erf(np.array(1.0)).round(6))
    0.842701
    """
    x = np.asarray(x, dtype=None if getattr(x, "dtype", None) == np.float32 else np.float64)
    tail, _ = _erfc(np.abs(x).reshape(-1))
    return np.asarray(np.sign(x) * (1 - tail.reshape(x.shape)))


def _normal(x: Array) -> tuple[Array, Array]:
    """Φ(x) and φ(x), distribution and density of the standard normal."""
    z = np.abs(x)
    z *= math.sqrt(0.5)
    cdf, density = _erfc(z)
    cdf *= 0.5  # Φ(-|x|); Φ(x) = 1 - Φ(-x)                                                        [AC.16]
    np.abs(np.subtract(x > 0, cdf, out=cdf), out=cdf)  # |1 - Φ(-|x|)| for x > 0, |0 - Φ(-|x|)| otherwise
    density *= 1 / math.sqrt(2 * math.pi)
    return cdf, density


def _by_blocks(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a function to arrays of one shape, a block at a time."""
    flat = [a.reshape(-1) for a in arrays]
    y = np.empty_like(flat[0])
    for start in range(0, y.size, BLOCK):
        part = slice(start, start + BLOCK)
        y[part] = function(*[a[part] for a in flat])
    return y.reshape(arrays[0].shape)


def gelu_forward(x: Array) -> Result:
    """y = x Φ(x), Φ(x) = ½ (1 + erf(x/√2)): the exact GELU

    x (...) -> y (...)
    """
    return _by_blocks(lambda x: x * _normal(x)[0], x), (x,)


def gelu_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    (x,) = saved
    return (_by_blocks(lambda x, dy: dy * _slope(x), x, dy),)


def _slope(x: Array) -> Array:
    slope, density = _normal(x)
    density *= x
    slope += density  # forward was: y = x Φ(x), slope = Φ(x) + x φ(x)                             [AC.17]
    return slope


gelu = Op(
    "gelu", gelu_forward, gelu_backward, smooth_example,
    native=native_map("gelu_forward", "gelu_backward"), recompute=lambda saved: saved, abstract=saves_inputs,
)  # fmt: skip

ROOT_2_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715
FLAT = 25.0  # beyond ±25 σ(2u) is 0 or 1, to the last bit of a float64; x³ could overflow


def _tanh_form(x: Array) -> tuple[Array, Array, Array]:
    """x within ±25, its square, and ½ (1 + tanh u) = σ(2u), u = √(2/π) (x + 0.044715 x³)."""
    x = np.clip(x, -FLAT, FLAT)
    square = x * x
    twice_u = square * (2 * ROOT_2_PI * CUBIC)
    twice_u += 2 * ROOT_2_PI
    twice_u *= x
    return x, square, logistic(twice_u)  #                                                         [AC.18]


def gelu_tanh_forward(x: Array) -> Result:
    """y = ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))), the approximation of GELU in GPT-2

    x (...) -> y (...)
    """
    return x * _tanh_form(x)[2], (x,)


def gelu_tanh_backward(dy: Array, saved: Saved, needs: Needs) -> Grads:
    x, slope, s = _tanh_form(*saved)  # forward was: y = x s, s = σ(2u)
    slope *= 6 * ROOT_2_PI * CUBIC
    slope += 2 * ROOT_2_PI  # 2 du/dx
    slope *= x
    slope *= s * (1 - s)
    slope += s  #                                                                                  [AC.19]
    slope *= dy
    return (slope,)


def gelu_tanh_composed(x: Any) -> Any:
    u = mul(ROOT_2_PI, add(x, mul(CUBIC, mul(x, mul(x, x)))))
    return mul(mul(0.5, x), add(1, tanh(u)))


gelu_tanh = Op(
    "gelu_tanh", gelu_tanh_forward, gelu_tanh_backward, smooth_example,
    composed=gelu_tanh_composed, native=native_map("gelu_tanh_forward", "gelu_tanh_backward"),
    recompute=lambda saved: saved, abstract=saves_inputs,
)  # fmt: skip
