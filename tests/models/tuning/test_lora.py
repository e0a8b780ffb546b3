from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.models import tuning
from chainrule.models.tuning import LoRA
from tests.models.tuning.families import SIZES, descend, made, outputs
from tests.vectors import vector


def trained(family: str, method: LoRA) -> cr.models.Model:
    model = method.apply(made(family)).eval()
    descend(model, family)
    return model


@pytest.mark.requirement("R-398")
def test_queries_and_values_have_a_pair_each_and_others_can_be_chosen() -> None:
    v = vector("004-13.6.5.1-lora-pairs")
    deep = cr.models.make("llama", n_layer=32, n_head=2, n_kv_head=2, n_embd=8, n_hidden=8, vocab_size=5)
    pairs = LoRA(rank=1).matrices(deep)
    v.check(len(pairs))
    assert {each.role for each in pairs} == {"q", "v"}
    fused = cr.models.make("gpt", n_layer=32, n_head=2, n_embd=8, vocab_size=5)
    v.check(len(LoRA(rank=1).matrices(fused)))
    applied = LoRA(rank=1).apply(fused)
    v.check(sum(name.rpartition(".")[0].endswith("lora_A") for name, _ in applied.named_parameters()))
    for role, per_block in (("k", 1), ("o", 1), ("mlp", 3), ("q,k,v,o,mlp", 7), ("all", 7)):
        assert len(LoRA(rank=1, targets=(role,)).matrices(deep)) == 32 * per_block
    assert [m.name for m in LoRA(targets=("layers.3.*_proj",)).matrices(deep)][:2] == [
        "layers.3.self_attn.q_proj", "layers.3.self_attn.k_proj",
    ]  # fmt: skip
    whole = LoRA(rank=1, targets=("h.*.c_attn",))
    assert [m.role for m in whole.matrices(fused_base())[:3]] == ["q", "k", "v"]


def fused_base() -> cr.models.Model:
    return made("gpt")


@pytest.mark.requirement("R-399")
def test_the_number_of_parameters_of_a_pair() -> None:
    ab, ratio = vector("004-13.6.5.1-lora-AB"), vector("004-13.6.5.1-lora-ratio")
    with cr.nn.init.abstract_parameters():
        layer = cr.nn.LoRALinear(cr.nn.Linear(4096, 4096, bias=False), ab.inputs["r"])
    vector("004-13.6.5.1-lora-full").check(layer.base.count())
    sizes = {"A": layer.lora_A.size, "B": layer.lora_B.size, "total": layer.count(trainable=True)}
    ab.check(sizes)
    ratio.check(layer.base.count() / sizes["total"])


@pytest.mark.requirement("R-400")
@pytest.mark.parametrize("family", SIZES)
@pytest.mark.parametrize("targets", [("q", "v"), ("all",)])
def test_merged_and_unmerged_agree(family: str, targets: tuple[str, ...]) -> None:
    model = trained(family, LoRA(rank=2, alpha=3.0, targets=targets)).to(np.float64)
    before, weights = outputs(model, family), model.state()
    layers = [layer for _, layer in model.named_layers() if isinstance(layer, cr.nn.LoRALinear)]
    for layer in layers:
        layer.merge()
    np.testing.assert_allclose(outputs(model, family), before, rtol=0, atol=1e-12)
    for layer in layers:
        layer.unmerge()
    for name, value in model.state().items():
        np.testing.assert_allclose(value, weights[name], rtol=0, atol=1e-12)
    plain = made(family).to(np.float64)
    plain.load(tuning.merged_state(model))
    np.testing.assert_allclose(outputs(plain, family), before, rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", SIZES)
def test_merged_in_float32_it_is_a_plain_model(family: str) -> None:
    model = trained(family, LoRA(rank=2))
    plain = tuning.merged(model)
    assert list(plain.state()) == list(made(family).state())
    np.testing.assert_allclose(outputs(plain, family), outputs(model, family), rtol=0, atol=1e-5)


@pytest.mark.requirement("R-401")
@pytest.mark.parametrize("family", ["gpt", "llama", "t5"])
def test_the_change_of_a_matrix_has_at_most_its_rank(family: str) -> None:
    model = trained(family, LoRA(rank=2))
    for _, layer in model.named_layers():
        if isinstance(layer, cr.nn.PackedLoRALinear):
            change = layer.change()
            for name, (start, stop) in layer.rows.items():
                assert np.linalg.matrix_rank(change[start:stop]) == 2, name
            assert not change[16:32].any()  # keys do not change
        elif isinstance(layer, cr.nn.LoRALinear):
            assert np.linalg.matrix_rank(layer.change()) == 2


@pytest.mark.requirement("R-409")
def test_alpha_is_the_rank_by_default() -> None:
    for method, scale in ((LoRA(rank=4), 1.0), (LoRA(rank=4, alpha=8), 2.0)):
        model = method.apply(made("llama"))
        assert model.layers[0].self_attn.q_proj.scale == scale


def test_dropout_is_that_of_training() -> None:
    model = LoRA(rank=2, dropout=0.5).apply(made("llama"))
    descend(model.eval(), "llama")
    assert (outputs(model.train(), "llama") != outputs(model.eval(), "llama")).any()


def test_one_pair_for_a_fused_layer() -> None:
    model = LoRA(rank=2, targets=("c_attn", "h.*.c_attn"), fused=True)
    with pytest.raises(cr.ConfigError, match="names no layer"):
        model.apply(made("gpt"))
    method = LoRA(rank=2, targets=("h.*.c_attn",), fused=True)
    plain = made("gpt")
    count = method.n_params(plain)
    assert count == 2 * 2 * (16 + 48) == method.apply(plain).count(trainable=True)
