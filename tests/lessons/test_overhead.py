from __future__ import annotations

import numpy as np
import pytest

from chainrule.lessons.overhead import overhead
from chainrule.models.tuning import BottleneckAdapter, LoRA, merged
from chainrule.trace.count import Batch, flops, total
from tests.models.tuning.families import made


@pytest.mark.requirement("R-403")
def test_adapters_cost_and_a_merged_lora_costs_nothing() -> None:
    """The times are returned; what must hold on any machine is counted in operations."""
    found = overhead(made("gpt"), np.zeros((2, 8), np.int64), bottleneck=4, rank=2, repeats=2)
    assert min(found) > 0 and len(found) == 3
    base = total(flops(made("gpt"), Batch(2, 8))).forward
    plain = total(flops(merged(LoRA(rank=2).apply(made("gpt"))), Batch(2, 8))).forward
    narrow = total(flops(BottleneckAdapter(bottleneck=4).apply(made("gpt")), Batch(2, 8))).forward
    assert plain == base < narrow
