"""The mathematics behind the models, as small exact functions of arrays.

Linear algebra, calculus, Jacobians, probability, information, calibration, attention.

>>> from chainrule.foundations import calculus
>>> calculus.gradient(lambda x: x @ x, [3.0, 4.0]).round(6).tolist()
[6.0, 8.0]
"""

from chainrule import lazy
from chainrule.foundations import (
    attention,
    calculus,
    calibration,
    information,
    jacobians,
    linear_algebra,
    matrices,
    probability,
)

__all__ = [
    "attention", "calculus", "calibration", "information", "jacobians", "linear_algebra", "matrices",
    "probability"
]  # fmt: skip

lazy.names(__name__)
