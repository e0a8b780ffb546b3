"""Adapters in PEFT's files: names, shapes, and back again to the last bit. (tests/peers has PEFT itself)"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import FormatError
from chainrule.io import peft
from chainrule.models.tuning import BitFit, BottleneckAdapter, LoRA, Method, Prefix, Prompt
from tests.models.tuning.families import descend, made

METHODS: list[Method] = [
    LoRA(rank=2, alpha=3.0), LoRA(rank=2, targets=("q", "k", "o", "mlp")), BottleneckAdapter(bottleneck=2),
    Prefix(length=3), Prompt(length=2), BitFit(), LoRA(rank=2, tokens=(9, 10)), Prompt(length=2, tokens=(10,)),
]  # fmt: skip
FAMILIES = ("gpt", "llama", "neox", "bert-classifier", "seq2seq", "t5")


def cases() -> Any:
    for family in FAMILIES:
        for number, method in enumerate(METHODS):
            try:
                method.apply(made(family))
            except cr.ConfigError:
                continue
            yield pytest.param(family, method, id=f"{family}-{method.name}-{number}")


@pytest.mark.parametrize(("family", "method"), list(cases()))
def test_what_is_written_comes_back_to_the_bit(family: str, method: Method) -> None:
    model = method.apply(made(family)).eval()
    descend(model, family)
    own = {name: array.copy() for name, array in cr.models.tuning.trained(model).items()}
    arrays, about = peft.to_files(model, method, own, "base")
    assert about["base_model_name_or_path"] == "base"
    fresh = method.apply(made(family))
    found = peft.from_files(fresh, method, arrays)
    assert found.keys() == own.keys()
    for name, array in own.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_names_and_ranks_are_those_of_transformers() -> None:
    model = LoRA(rank=2, alpha=3.0, targets=("q", "v", "mlp")).apply(made("gpt"))
    arrays, about = peft.to_files(model, LoRA(rank=2, alpha=3.0, targets=("q", "v", "mlp")), {}, "base")
    fused = "transformer.h.0.attn.c_attn"
    assert arrays[f"base_model.model.{fused}.lora_A.weight"].shape == (
        4,
        16,
    )  # a block for queries and one for values
    assert arrays[f"base_model.model.{fused}.lora_B.weight"].shape == (48, 4)
    assert arrays["base_model.model.transformer.h.1.mlp.c_fc.lora_B.weight"].shape == (64, 2)
    assert about["rank_pattern"][fused] == 4 and about["alpha_pattern"][fused] == 6.0
    assert (about["r"], about["lora_alpha"], about["fan_in_fan_out"]) == (2, 3.0, True)
    assert fused in about["target_modules"] and about["peft_type"] == "LORA"


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"peft_type": "LOHA"}, r"peft_type is 'LOHA' \(must be LORA, PREFIX_TUNING or PROMPT_TUNING\)"),
        ({"peft_type": "LORA", "bias": "all"}, "bias is 'all'"),
        ({"peft_type": "LORA", "use_dora": True}, "use_dora is True"),
        ({"peft_type": "LORA", "rank_pattern": {"q": 1}}, "rank_pattern is set"),
        ({"peft_type": "LORA", "init_lora_weights": "pissa"}, "init_lora_weights is 'pissa'"),
        ({"peft_type": "LORA", "trainable_token_indices": [1, 99]}, r"is \[1, 99\] \(must be tokens of the base"),
        ({"peft_type": "LORA", "trainable_token_indices": {"wte": [1], "x.lm_head": [2]}}, "must be the same tokens"),
        ({"peft_type": "LORA", "trainable_token_indices": {"wpe": [1]}}, r"names the layer wpe \(must be among wte\)"),
        ({"peft_type": "LORA", "of_tomorrow": True}, r"of_tomorrow is True \(is not supported, must be left out"),
        ({"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 2, "of_tomorrow": 1}, "of_tomorrow is 1"),
        ({"peft_type": ["LORA"]}, "peft_type is "),
        ({"peft_type": "LORA", "init_lora_weights": False, "use_dora": None, "loftq_config": {}}, "of the layer x.y"),
        ({"peft_type": "LORA"}, "adapter of the layer x.y "),
        ({"peft_type": "PROMPT_TUNING"}, "num_virtual_tokens is missing"),
    ],
)  # fmt: skip
def test_what_is_not_here_is_refused(about: dict[str, Any], message: str) -> None:
    arrays = {"base_model.model.x.y.lora_A.weight": np.zeros((2, 3), np.float32)}
    with pytest.raises(FormatError, match=message):
        peft.foreign_method(made("gpt"), about, arrays)


def test_other_scales_of_peft() -> None:
    arrays = {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": np.zeros((4, 16), np.float32)}
    about = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "use_rslora": True}
    method = peft.foreign_method(made("llama"), about, arrays)
    assert (
        isinstance(method, LoRA) and method.alpha == 16 and method.targets == ("layers.0.self_attn.q_proj",)
    )


Q = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({f"{Q}.lora_A.weight": (4, 16)}, r"q_proj.lora_B.weight is not there \(must be of shape \(16, 4\)"),
        ({f"{Q}.lora_B.weight": (16, 4)}, r"q_proj.lora_A.weight is not there \(must be of shape \(4, 16\)"),
        ({f"{Q}.lora_A.weight": (4, 16), f"{Q}.lora_B.weight": (16,)}, r"lora_B.weight has shape \(16,\)"),
        ({f"{Q}.lora_A.weight": (), f"{Q}.lora_B.weight": (16, 4)}, r"lora_A.weight has shape \(\)"),
        ({f"{Q}.lora_A.weight": (8, 16), f"{Q}.lora_B.weight": (16, 8)}, r"lora_A.weight has shape \(8, 16\)"),
    ],
)  # fmt: skip
def test_both_halves_of_a_pair_must_be_there_and_fit(shapes: dict[str, Any], message: str) -> None:
    arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    model, about = made("llama"), {"peft_type": "LORA", "r": 4}
    with pytest.raises(FormatError, match=message):
        method = peft.foreign_method(model, about, arrays)
        peft.from_files(method.apply(model), method, arrays)


def test_a_prefix_is_read_where_it_means_the_same() -> None:
    about = {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 2}
    assert peft.foreign_method(made("gpt"), about, {}) == Prefix(length=2)
    arrays, _ = peft.to_files(Prefix(length=2).apply(made("gpt")), Prefix(length=2), {}, "base")
    assert arrays["prompt_embeddings"].shape == (2, 2 * 2 * 16)  # layers, keys and values, width
    with pytest.raises(FormatError, match=r"for a NeoX \(must be a GPT or a Llama"):
        peft.foreign_method(made("neox"), about, {})


def test_a_prefix_of_another_shape_is_refused() -> None:
    model, method = made("llama"), Prefix(length=3)
    with pytest.raises(FormatError, match=r"prompt_embeddings has shape \(3, 5\) \(must be \(3, 32\)\)"):
        peft.from_files(method.apply(model), method, {"prompt_embeddings": np.ones((3, 5), np.float32)})


@pytest.mark.parametrize(
    "ours",
    [{"method": "lora", "rank": "a"}, {"method": "lora", "targets": 5}, {"method": "prompt", "ids": ["x"]}],
)
def test_settings_of_a_wrong_kind_are_one_line(ours: dict[str, Any]) -> None:
    with pytest.raises(cr.ChainruleError, match=r"must be") as caught:
        peft.method_of({"chainrule": ours})
    assert "\n" not in str(caught.value)


def test_adapters_of_reward_models_keep_our_names() -> None:
    model, method = cr.models.Reward.on(made("gpt")), LoRA(rank=2)
    with pytest.raises(FormatError, match=r"peft_type is 'LORA' for a GPTReward \(must be for a model of"):
        peft.foreign_method(model, {"peft_type": "LORA"}, {})
    own = cr.models.tuning.trained(method.apply(model))
    arrays, _ = peft.to_files(model, method, own, "base")
    assert arrays.keys() == own.keys() == peft.from_files(model, method, arrays).keys()
