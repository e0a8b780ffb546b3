"""Which instruction set the kernels use."""

from __future__ import annotations

import pytest

from chainrule import native
from tests.test_native import python

SHOW = "from chainrule import native; print(native.isa())"
UNSET = {"CHAINRULE_ISA": "", "CHAINRULE_CPU": ""}


@pytest.mark.parametrize("variable", ["CHAINRULE_ISA", "CHAINRULE_CPU"])  # the second is the older name
def test_the_isa_is_the_highest_or_the_one_asked_for(variable: str) -> None:
    assert python(SHOW, **UNSET).stdout.strip() == native.isas()[-1]
    for isa in native.isas():
        assert python(SHOW, **UNSET | {variable: isa}).stdout.strip() == isa
    error = python(SHOW, **UNSET | {variable: "avx1024"}).stderr
    assert f"ConfigError: {variable}: got 'avx1024', this machine supports {native.isas()[0]}" in error


def test_the_new_name_goes_before_the_older_one() -> None:
    assert python(SHOW, CHAINRULE_ISA="baseline", CHAINRULE_CPU="avx1024").stdout.strip() == "baseline"
