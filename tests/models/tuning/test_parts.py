"""Several adapters side by side on one base, what learned by name, and merging what can be merged."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import CheckpointError, ConfigError
from chainrule.models import tuning
from chainrule.models.tuning import Adapters, BitFit, BottleneckAdapter, LoRA, Method, Prefix, Prompt
from tests.models.tuning.families import descend, made, outputs


def learned(method: Method, family: str = "gpt", steps: int = 3) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What a method learned, and what the model then says."""
    model = method.apply(made(family)).eval()
    descend(model, family, steps)
    return {name: array.copy() for name, array in tuning.trained(model).items()}, outputs(model, family)


@pytest.mark.requirement("R-400")
def test_adapters_are_swapped_on_one_base() -> None:
    model = made("gpt")
    base = outputs(model, "gpt")
    methods = {"a": LoRA(rank=2), "b": LoRA(rank=4, targets=("all",)), "c": Prefix(length=2), "d": BitFit()}
    results, adapters = {}, Adapters(model)
    for name, method in methods.items():
        state, results[name] = learned(method)
        adapters.add(name, method, state)
    for name in ("a", "b", None, "d", "c", "a", None, "d"):
        found = outputs(adapters.use(name).eval(), "gpt")
        np.testing.assert_array_equal(found, base if name is None else results[name])
    with pytest.raises(ConfigError, match=r"adapters: 'x' \(must be one of a, b, c, d\)"):
        adapters.use("x")


def test_what_an_adapter_learns_while_it_is_used_is_kept() -> None:
    model = made("gpt")
    base, adapters = outputs(model, "gpt"), Adapters(model)
    adapters.add("bias", BitFit())
    adapters.add("lora", LoRA(rank=2))
    results = {}
    for name in ("bias", "lora", "bias"):
        used = adapters.use(name).eval()
        assert used.count(trainable=True) == {"bias": BitFit(), "lora": LoRA(rank=2)}[name].n_params(
            made("gpt")
        )
        if name in results:
            np.testing.assert_array_equal(outputs(used, "gpt"), results[name])
        descend(used, "gpt")
        results[name] = outputs(used, "gpt")
        assert not np.array_equal(results[name], base)
    for name in ("lora", "bias"):
        np.testing.assert_array_equal(outputs(adapters.use(name), "gpt"), results[name])
    plain = adapters.use(None)
    np.testing.assert_array_equal(outputs(plain, "gpt"), base)
    assert plain.count(trainable=True) == made("gpt").count(trainable=True)


def test_an_adapter_that_is_refused_leaves_the_model_as_it_was() -> None:
    model = made("gpt")
    base, adapters = outputs(model, "gpt"), Adapters(model)
    state, _ = learned(LoRA(rank=2))
    with pytest.raises(CheckpointError, match="must be"):
        adapters.add("a", LoRA(rank=3), state)
    with pytest.raises(ConfigError, match="rank is 17"):
        adapters.add("a", LoRA(rank=17))
    assert not tuning.parts.parts(model) and model.count(trainable=True) == model.count()
    np.testing.assert_array_equal(outputs(model, "gpt"), base)
    with pytest.raises(ConfigError, match="none: add one first"):
        adapters.use("a")


def test_what_learned_must_fit() -> None:
    state, _ = learned(LoRA(rank=2))
    model = LoRA(rank=3).apply(made("gpt"))
    with pytest.raises(
        CheckpointError, match=r"adapter: h.0.attn.c_attn.lora_A.q has shape \(2, 16\) \(must be"
    ):
        tuning.load_trained(model, state)
    with pytest.raises(CheckpointError, match=r"adapter: lacks h.0.attn.c_attn.lora_A.k"):
        tuning.load_trained(LoRA(rank=2, targets=("all",)).apply(made("gpt")), state)


def test_only_lora_can_be_merged() -> None:
    model = BottleneckAdapter(bottleneck=2).apply(made("gpt"))
    with pytest.raises(ConfigError, match=r"merge: h.0.attn is an Adapted \(must be LoRA"):
        tuning.merged(model)
    plain = made("gpt")
    assert tuning.merged(plain) is plain


def test_a_merged_adapter_is_taken_out_before_another_comes() -> None:
    model = LoRA(rank=2).apply(made("gpt")).eval()
    descend(model, "gpt")
    for _, layer in list(model.named_layers()):
        if isinstance(layer, cr.nn.LoRALinear):
            layer.merge()
    tuning.strip(model)
    np.testing.assert_array_equal(outputs(model, "gpt"), outputs(made("gpt"), "gpt"))


@pytest.mark.parametrize("method", [LoRA(rank=2, tokens=(9, 10)), Prompt(length=2, tokens=(10,))])
def test_rows_of_tokens_are_swapped_with_their_adapter(method: Method) -> None:
    model = made("gpt")
    before = outputs(model, "gpt")
    adapters = Adapters(model)
    adapters.add("rows", method)
    adapters.add("other", LoRA(rank=1))
    descend(adapters.use("rows"), "gpt")
    learned = outputs(adapters.use("rows"), "gpt")
    assert (learned != before).any()
    np.testing.assert_array_equal(outputs(adapters.use(None), "gpt"), before)
    np.testing.assert_array_equal(outputs(adapters.use("other"), "gpt"), before)
    np.testing.assert_array_equal(outputs(adapters.use("rows"), "gpt"), learned)
