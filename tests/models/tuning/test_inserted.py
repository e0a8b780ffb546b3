from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.models.tuning import BottleneckAdapter, Prompt
from tests.models.tuning.families import IDS, LANGUAGE, made


@pytest.mark.requirement("R-402")
@pytest.mark.parametrize("family", ["gpt", "llama", "neox", "bert-classifier", "seq2seq", "t5"])
def test_adapters_follow_attention_and_mlp_as_asked(family: str) -> None:
    found = {}
    for after in (("attention",), ("mlp",), ("attention", "mlp")):
        model = BottleneckAdapter(bottleneck=2, after=after).apply(made(family))
        found[after] = [path for path, layer in model.named_layers() if isinstance(layer, cr.nn.Adapted)]
    attentions, mlps, both = found.values()
    assert sorted(attentions + mlps) == sorted(both) and not set(attentions) & set(mlps)
    stacks = 2 if family in ("seq2seq", "t5") else 1
    assert len(mlps) == 2 * stacks and len(attentions) == 2 * stacks + (2 if stacks == 2 else 0)


@pytest.mark.requirement("R-405")
@pytest.mark.parametrize("family", LANGUAGE)
def test_a_soft_prompt_of_tokens_is_these_tokens(family: str) -> None:
    hard, model = np.array([7, 2, 5]), made(family)
    text = np.concatenate([np.tile(hard, (2, 1)), IDS], axis=1)
    want = model(text).numpy()[:, 3:]
    soft = Prompt(ids=tuple(hard)).apply(model).eval()
    assert soft.context == 12 - 3
    np.testing.assert_array_equal(soft.embedding.prompt.array, soft.embedding.weight.array[hard])
    np.testing.assert_allclose(soft(IDS).numpy(), want, rtol=0, atol=1e-6)
