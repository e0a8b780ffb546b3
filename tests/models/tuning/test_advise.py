from __future__ import annotations

import pytest

from chainrule.errors import ConfigError
from chainrule.models.tuning import Needs, advise, storage
from tests.vectors import vector


@pytest.mark.requirement("R-406")
@pytest.mark.parametrize(
    ("needs", "method"),
    [
        (Needs(examples=100_000), "full"),
        (Needs(examples=2_000, different=True), "full"),
        (Needs(examples=50_000, performance=True), "full"),
        (Needs(examples=100_000, tasks=3), "lora"),
        (Needs(examples=1_000), "lora"),
        (Needs(examples=500, different=True), "lora"),
        (Needs(examples=20_000, swappable=True), "adapter"),
        (Needs(examples=100), "prefix"),
        (Needs(examples=20_000, smallest=True), "prefix"),
        (Needs(examples=0), "prompting"),
        (Needs(examples=20_000, prompt_suffices=True), "prompting"),
    ],
)
def test_the_method_follows_from_data_and_needs(needs: Needs, method: str) -> None:
    found = advise(needs)
    assert found.method == method and len(found.reasons) >= 2


def test_needs_are_checked() -> None:
    with pytest.raises(ConfigError, match="advise: examples is -1"):
        Needs(examples=-1)
    with pytest.raises(ConfigError, match="advise: tasks is 0"):
        Needs(tasks=0)


@pytest.mark.requirement("R-389")
def test_storage_of_many_copies() -> None:
    v = vector("004-13.6.3-storage")
    params, each, copies = (v.inputs[name] for name in ("params", "bytes", "copies"))
    v.check({"one": storage(params, each), "ten": storage(params, each, copies)})
