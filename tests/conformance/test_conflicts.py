"""Where the documents disagree: the default that was chosen and the option beside it, one test for each row."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.doctor.verdict import verdict
from chainrule.foundations.information import entropy, perplexity
from chainrule.foundations.jacobians import jacobian
from chainrule.models import GPTConfig, NGram, Seq2SeqConfig, Terminals
from chainrule.models.ngram import Additive as Smoothing
from chainrule.nn import MultiHeadAttention, TransformerBlock, init
from chainrule.nn.positions import sinusoidal
from chainrule.optim import AdaGrad, Adam, Momentum, RMSprop, schedules
from chainrule.scaling.laws.joint import Additive
from chainrule.scaling.laws.published import CHINCHILLA, KAPLAN
from chainrule.train.config import TrainConfig
from tests.optim.helpers import block, set_gradients
from tests.test_imports import FORBIDDEN, SOURCES, imports
from tests.vectors import vector

pytestmark = pytest.mark.requirement("R-510")
ROWS = 35
SMALL: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 6, "vocab_size": 11}
GPT, SEQ2SEQ = GPTConfig(**SMALL), Seq2SeqConfig(**SMALL)


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape)


def gradient(op: Any, x: Any, **options: Any) -> Any:
    """Of the sum of what an op returns"""
    leaf = cr.Tensor(np.asarray(x, float), requires_grad=True)
    op(leaf, **options).sum().backward()
    return leaf.grad


def step(optimizer: Any, *gradients: Any, **options: Any) -> Any:
    """Where 1.0 is after updates with these gradients"""
    params = block([1.0])
    made = optimizer(params, 0.1, **options)
    for g in gradients:
        set_gradients(params, [g])
        made.step()
    return params["p0"].data.item()


def test_every_row_has_its_test() -> None:
    numbers = sorted(int(name[6:8]) for name in globals() if re.match(r"test_c\d\d_", name))
    assert numbers == list(range(1, ROWS + 1))


def test_c01_rows_are_examples_and_weights_have_either_layout() -> None:
    """Weights are kept (out, in), as other programs' files have them; (in, out) is the option."""
    x, W, b, dy = drawn(3, 4), drawn(2, 4), drawn(2), drawn(3, 2)
    usual, other = cr.Tensor(W, requires_grad=True), cr.Tensor(W.T.copy(), requires_grad=True)
    one, two = cr.ops.linear(x, usual, b), cr.ops.linear(x, other, b, layout="in_out")
    np.testing.assert_allclose(one.data, x @ W.T + b)
    np.testing.assert_allclose(one.data, two.data)
    one.backward(dy)
    two.backward(dy)
    np.testing.assert_allclose(usual.grad, other.grad.T)


def test_c02_a_jacobian_is_output_by_input_and_a_gradient_like_its_variable() -> None:
    W, x, g = drawn(2, 3), drawn(3), drawn(2)
    J = jacobian(lambda v: W @ v, x)
    assert J.shape == (2, 3)
    leaf = cr.Tensor(x[None].copy(), requires_grad=True)
    cr.ops.linear(leaf, W).backward(g[None])
    np.testing.assert_allclose(leaf.grad, (J.T @ g)[None], atol=1e-7)


def test_c03_the_slope_of_relu_at_zero() -> None:
    assert gradient(cr.ops.relu, [0.0]).item() == 0
    assert gradient(cr.ops.relu, [0.0], at_zero=1.0).item() == 1


def test_c04_epsilon_of_a_norm() -> None:
    x, one, zero = np.array([[1.0, 2.0, 4.0]]), np.ones(3), np.zeros(3)
    centered, var = x - x.mean(), x.var()
    for options, scale in (
        ({}, math.sqrt(var + 1e-5)),
        ({"eps": 0.5}, math.sqrt(var + 0.5)),
        ({"eps": 0.5, "eps_mode": "outside"}, math.sqrt(var) + 0.5),
        ({"eps": 0.0}, math.sqrt(var)),
    ):
        np.testing.assert_allclose(cr.ops.layernorm(x, one, zero, **options), centered / scale)


@pytest.mark.parametrize("rule", [AdaGrad, RMSprop, Adam])
def test_c05_epsilon_of_an_optimizer(rule: Any) -> None:
    assert step(rule, 1e-3, eps=1.0) != step(rule, 1e-3, eps=1.0, eps_inside=True)
    assert step(rule, 1e-3, eps=1.0) == step(rule, 1e-3, eps=1.0, eps_inside=False)
    if rule is AdaGrad:
        assert step(rule, 2.0, eps=1.0) == pytest.approx(1 - 0.1 * 2 / (2 + 1))
        assert step(rule, 2.0, eps=1.0, eps_inside=True) == pytest.approx(1 - 0.1 * 2 / math.sqrt(4 + 1))


def test_c06_the_constants_of_adam_are_free() -> None:
    usual = step(Adam, 1.0, 2.0)
    assert usual == step(Adam, 1.0, 2.0, betas=(0.9, 0.999), eps=1e-8)
    assert usual != step(Adam, 1.0, 2.0, betas=(0.9, 0.98), eps=1e-9)


def test_c07_the_rate_inside_the_velocity_or_outside() -> None:
    assert step(Momentum, 1.0, 2.0) == pytest.approx(step(Momentum, 1.0, 2.0, lr_inside=False))

    def changed(lr_inside: bool) -> float:
        params = block([1.0])
        rule = Momentum(params, 0.1, lr_inside=lr_inside)
        for lr in (0.1, 0.01):
            rule.lr = lr
            set_gradients(params, [1.0])
            rule.step()
        return float(params["p0"].data.item())

    assert changed(True) == pytest.approx(1 - 0.1 - (0.9 * 0.1 + 0.01))
    assert changed(False) == pytest.approx(1 - 0.1 - 0.01 * (0.9 + 1))


def test_c08_losses_are_means() -> None:
    logits, targets = drawn(5, 4), np.array([0, 1, 2, 3, 0])
    each = cr.ops.cross_entropy(logits, targets=targets, reduction="none")
    assert each.shape == (5,)
    assert cr.ops.cross_entropy(logits, targets=targets) == pytest.approx(each.mean())
    assert cr.ops.cross_entropy(logits, targets=targets, reduction="sum") == pytest.approx(each.sum())
    counted = cr.ops.cross_entropy(logits, targets=np.array([0, 1, -1, -1, -1]), ignore_index=-1)
    assert counted == pytest.approx(each[:2].mean())
    assert perplexity(each.mean()) == pytest.approx(math.exp(each.mean()))


def test_c09_the_factor_of_a_squared_error() -> None:
    P, A = np.array([0.8, 0.3, 0.9]), np.array([1.0, 0.0, 1.0])
    np.testing.assert_allclose(gradient(lambda p: cr.ops.mse(p, A), P), 2 / 3 * (P - A))
    np.testing.assert_allclose(gradient(lambda p: cr.ops.mse(p, A, half=True, reduction="sum"), P), P - A)


def test_c10_cross_entropy_of_logits_or_of_probabilities() -> None:
    logits, targets = drawn(2, 3), np.array([2, 0])
    p = cr.ops.softmax(logits)
    one = cr.ops.cross_entropy(logits, targets=targets)
    assert one == pytest.approx(cr.ops.cross_entropy_probs(p, targets=targets))
    expected = (p - np.eye(3)[targets]) / 2
    np.testing.assert_allclose(gradient(cr.ops.cross_entropy, logits, targets=targets), expected, atol=1e-12)

    def composed(z: Any) -> Any:
        return cr.ops.cross_entropy_probs(cr.ops.softmax(z), targets=targets)

    np.testing.assert_allclose(gradient(composed, logits), expected, atol=1e-12)
    sure = cr.ops.cross_entropy_probs(np.array([[1.0, 0.0]]), targets=np.array([[1.0, 0.0]]))
    assert sure == 0  # 0 ln 0 is 0


def test_c11_a_softmax_subtracts_its_maximum_or_clips() -> None:
    v = vector("der-softmax-clip")
    rows = np.array(v.inputs["logits"])
    v.check({"max": cr.ops.softmax(rows), "clip": cr.ops.softmax(rows, clip=(-50, 50))})


def test_c12_one_token_ends_a_word_and_begins_it_or_two_do() -> None:
    word = [[2, 3, 3, 1]]
    one = NGram.fit(word, order=2, vocab_size=4).adjacency()
    np.testing.assert_array_equal(one, vector("der-emma-counts-one-terminal").recomputed["counts"])
    np.testing.assert_array_equal(one.sum(0), one.sum(1))
    two = NGram.fit([[1, 2, 2, 3]], order=2, vocab_size=5, ends=Terminals(0, 4)).adjacency()
    np.testing.assert_array_equal(two, vector("der-emma-counts").recomputed)


def test_c13_several_heads_are_projected_or_only_joined() -> None:
    with cr.random.seeded(0):
        usual, bare = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2, out_proj=False)
    assert usual.out_proj is not None and bare.out_proj is None
    assert usual.count() - bare.count() == 8 * 8
    x = cr.Tensor(drawn(1, 3, 8).astype(np.float32))
    bare.load({name: value for name, value in usual.state().items() if "out_proj" not in name})
    np.testing.assert_allclose(usual(x).data, usual.out_proj(bare(x)).data, rtol=1e-5)


def test_c14_the_norm_before_a_sublayer_or_after_the_sum() -> None:
    assert Seq2SeqConfig.base().norm == "post"
    x = cr.Tensor(5 + 3 * drawn(2, 4, 8).astype(np.float32))
    pre, post = TransformerBlock(8, 2), TransformerBlock(8, 2, norm="post")
    assert pre.norm == "pre" and "ln_f.weight" in dict(cr.models.GPT(GPT).named_parameters())
    np.testing.assert_allclose(post(x).data.mean(-1), 0, atol=1e-5)  # the last thing it does is to normalize
    assert np.abs(pre(x).data.mean(-1)).max() > 1
    for norm in ("pre", "post"):
        model = cr.models.Seq2Seq(replace(SEQ2SEQ, norm=norm, dropout=0.0))
        ids = np.array([[3, 4, 5]])
        optimizer = cr.optim.AdamW(model.parameters(), 1e-2)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = model.loss((ids, np.ones(ids.shape, bool), ids), ids)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.5 * losses[0]


def test_c15_the_activation_between_the_layers_of_an_mlp() -> None:
    assert (Seq2SeqConfig.base().activation, GPT.activation) == ("relu", "gelu")
    ids = np.array([[1, 2, 3]])

    def logits(activation: str) -> Any:
        with cr.random.seeded(0):
            return cr.models.GPT(replace(GPT, activation=activation))(ids).numpy()

    assert not np.array_equal(logits("relu"), logits("gelu"))
    assert cr.models.Seq2Seq(replace(SEQ2SEQ, activation="gelu")).config.activation == "gelu"


def test_c16_positions_are_counted_from_zero() -> None:
    assert Seq2SeqConfig.base().positions == "sinusoidal"
    np.testing.assert_array_equal(sinusoidal(3, 4)[0], [0, 1, 0, 1])
    np.testing.assert_allclose(sinusoidal(2, 4, start=1), sinusoidal(3, 4)[1:])  # counted from one
    assert sinusoidal(3, 5).shape == (3, 5)
    np.testing.assert_allclose(
        sinusoidal(3, 5)[:, 4], np.sin(np.arange(3) * 10000 ** (-4 / 5))
    )  # no last cosine
    assert "wpe.weight" in dict(cr.models.GPT(GPT).named_parameters())  # learned in a GPT
    learned = cr.models.Seq2Seq(replace(SEQ2SEQ, positions="learned"))
    assert learned.count() > cr.models.Seq2Seq(SEQ2SEQ).count()


def test_c17_initial_weights_by_name() -> None:
    shape, rng = (200, 300), np.random.default_rng(0)
    assert init.normal(shape, rng).std() == pytest.approx(1, rel=0.02)
    assert init.kaiming_normal(shape, rng, activation="tanh").std() == pytest.approx(
        init.gain("tanh") / math.sqrt(300), rel=0.02
    )
    assert np.abs(init.xavier_uniform(shape, rng)).max() == pytest.approx(math.sqrt(6 / 500), rel=0.01)
    layer = cr.nn.Linear(300, 200)  # of a transformer: Xavier, and biases of zero
    assert np.abs(layer.weight.data).max() == pytest.approx(math.sqrt(6 / 500), rel=0.01)
    assert layer.bias is not None and not layer.bias.data.any()
    with cr.random.seeded(0):
        hidden = cr.nn.MLP([300, 200, 200], "tanh").layers[-1].weight.data
        model = cr.models.GPT(replace(GPT, n_embd=64, vocab_size=500))
    assert hidden.std() == pytest.approx(init.gain("tanh") / math.sqrt(200), rel=0.02)
    loss = model.loss(np.arange(5)[None], np.arange(1, 6)[None]).item()
    assert loss == pytest.approx(math.log(500), rel=0.02)


def test_c18_variances_are_biased_and_running_ones_may_be_corrected() -> None:
    x = drawn(5, 3)
    _, mean, var = cr.ops.batchnorm(x, np.ones(3), np.zeros(3))
    np.testing.assert_allclose(var, x.var(0))
    start = (np.zeros(3), np.ones(3))
    usual = cr.ops.update_running(*start, mean, var)
    np.testing.assert_allclose(usual, [0.1 * x.mean(0), 0.9 + 0.1 * x.var(0)])
    corrected = cr.ops.update_running(*start, mean, var, unbiased_rows=5)
    np.testing.assert_allclose(corrected[1], 0.9 + 0.1 * x.var(0, ddof=1))
    np.testing.assert_allclose(cr.ops.layernorm(x, np.ones(3), np.zeros(3), eps=0.0).var(-1), 1)


def test_c19_schedules_by_name() -> None:
    falls = schedules.step_decay(0.1, 100)
    assert (falls(89), falls(90)) == (0.1, pytest.approx(0.01))
    warm = schedules.inverse_sqrt(512)
    assert max(range(1, 9000, 7), key=warm) == pytest.approx(4000, abs=7)
    assert schedules.constant(0.1)(7) == 0.1 and schedules.cosine(0.1, 100)(50) == pytest.approx(0.05)
    for name in ("constant", "cosine", "linear", "wsd", "step", "inverse_sqrt"):
        assert TrainConfig(schedule=name).schedule == name


def test_c20_logarithms_are_natural_and_another_base_is_said() -> None:
    assert entropy([0.5, 0.5]) == pytest.approx(math.log(2))
    assert entropy([0.5, 0.5], base=2) == pytest.approx(1)


def test_c21_the_negative_log_likelihood_is_called_nll() -> None:
    counted = NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)
    assert counted.nll() == pytest.approx(vector("der-emma-mle-nll").recomputed["nll_mean"])


def test_c22_masks_are_boolean_or_added() -> None:
    q, k, v = drawn(1, 1, 3, 4), drawn(1, 1, 3, 4), drawn(1, 1, 3, 4)
    allowed = np.tril(np.ones((3, 3), bool))
    added = np.where(allowed, 0.0, -np.inf)
    one = cr.ops.attention(q, k, v, mask=allowed)
    np.testing.assert_allclose(one, cr.ops.attention(q, k, v, mask=added))
    np.testing.assert_allclose(one, cr.ops.attention(q, k, v, causal=True))
    nothing = cr.ops.attention(q, k, v, mask=np.zeros((3, 3), bool))
    np.testing.assert_array_equal(nothing, np.zeros_like(nothing))


def test_c23_the_learning_rate_is_called_lr() -> None:
    assert TrainConfig(lr=0.25).lr == 0.25 and Adam(block([1.0]), lr=0.25).lr == 0.25
    assert cr.nn.LoRALinear(cr.nn.Linear(4, 4), rank=2, alpha=8).scale == 4  # and alpha the scale of LoRA


def test_c24_smoothed_labels() -> None:
    target = np.array([1])
    np.testing.assert_allclose(
        cr.ops.smooth_labels(target, 3, 0.15), [[0.05, 0.9, 0.05]]
    )  # of everything: ε/V on all
    np.testing.assert_allclose(
        cr.ops.smooth_labels(target, 3, 0.1, exclude_true=True), [[0.05, 0.9, 0.05]]
    )  # ε/(V - 1) on the others


def test_c25_the_head_may_share_the_matrix_of_the_embedding() -> None:
    assert GPT.tied and not Seq2SeqConfig.base().tied
    matrix = GPT.vocab_size * GPT.n_embd
    assert replace(GPT, tied=False).n_params - GPT.n_params == matrix
    assert SEQ2SEQ.n_params - replace(SEQ2SEQ, tied=True).n_params == matrix


def test_c26_the_law_in_parameters_and_tokens() -> None:
    N, D = 1e9, 2e10
    assert KAPLAN(N, D) == pytest.approx(((8.8e13 / N) ** (0.076 / 0.095) + 5.4e13 / D) ** 0.095)
    assert isinstance(CHINCHILLA, Additive)
    assert CHINCHILLA(N, D) == pytest.approx(1.69 + 406.4 / N**0.34 + 410.7 / D**0.28)


def test_c27_tokens_are_counted_from_zero() -> None:
    ids = cr.text.CharTokenizer("abc").encode("cab")
    assert sorted(ids.tolist()) == [0, 1, 2]


def test_c28_biases() -> None:
    named = dict(cr.models.Seq2Seq(SEQ2SEQ).named_parameters())
    assert "model.encoder.layers.0.fc1.bias" in named and "final_logits_bias" in named
    assert not any("attn." in name and name.endswith("bias") for name in named)
    assert "h.0.attn.c_attn.bias" in dict(cr.models.GPT(GPT).named_parameters())
    assert replace(SEQ2SEQ, bias=True).n_params - SEQ2SEQ.n_params == 3 * 4 * SEQ2SEQ.n_embd
    assert not any(
        name.endswith("bias") for name, _ in cr.models.GPT(replace(GPT, bias=False)).named_parameters()
    )


def test_c29_an_encoder_sees_all_and_a_decoder_what_was_before() -> None:
    model = cr.models.Seq2Seq(replace(SEQ2SEQ, dropout=0.0))
    source, target = np.array([[3, 4, 5]]), np.array([[6, 7, 8]])
    mask = np.ones(source.shape, bool)
    memory = model.encode(source, mask)
    changed = model.encode(np.array([[3, 4, 9]]), mask)
    assert not np.allclose(memory.data[:, 0], changed.data[:, 0])  # the last token is seen by the first
    one, two = (model.decode(ids, memory, mask) for ids in (target, np.array([[6, 7, 9]])))
    np.testing.assert_array_equal(one.data[:, :2], two.data[:, :2])


def test_c30_values_have_the_size_of_keys_or_one_of_their_own() -> None:
    x = cr.Tensor(drawn(1, 3, 8).astype(np.float32))
    usual, other = MultiHeadAttention(8, 2), MultiHeadAttention(8, 2, value_size=5)
    assert usual.v_proj.weight.shape == usual.k_proj.weight.shape == (8, 8)
    assert other.v_proj.weight.shape == (10, 8) and other(x).shape == usual(x).shape == (1, 3, 8)


def test_c31_dropout_is_off_in_evaluation() -> None:
    assert Seq2SeqConfig.base().dropout == 0.1 and GPT.dropout == 0.0
    ids = np.array([[1, 2, 3]])
    model = cr.models.GPT(replace(GPT, dropout=0.5))
    with model.answering():
        np.testing.assert_array_equal(model(ids).numpy(), model(ids).numpy())
    model.train()
    assert not np.array_equal(model(ids).numpy(), model(ids).numpy())


def test_c32_gelu_is_exact_and_its_approximation_has_a_name() -> None:
    x = np.linspace(-3, 3, 7)
    exact = np.array([v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x])
    np.testing.assert_allclose(cr.ops.gelu(x), exact, rtol=1e-12)
    tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(cr.ops.gelu_tanh(x), tanh, rtol=1e-12)


def test_c33_one_is_added_to_every_count_or_any_number() -> None:
    counted = NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4)
    expected = vector("der-emma-mle-nll").recomputed
    assert counted.smoothed(Smoothing()).nll() == pytest.approx(expected["nll_mean_smoothed_1"])
    assert counted.smoothed(Smoothing(0)).nll() == pytest.approx(expected["nll_mean"])
    assert counted.smoothed(Smoothing(0)).nll([[1, 2]]) == math.inf  # a pair that was never seen
    assert counted.smoothed(Smoothing(1e9)).nll([[1, 2]]) == pytest.approx(math.log(4))


def test_c34_what_overfitting_looks_like() -> None:
    assert (verdict(1.0, 2.0), verdict(2.0, 2.0)) == ("overfit", "underfit")


def test_c35_arrays_are_those_of_numpy_and_scalars_teach() -> None:
    assert isinstance(cr.ops.softmax(drawn(2, 3)), np.ndarray)
    used = {name for path in SOURCES for name in imports(ast.parse(path.read_text(encoding="utf-8")))}
    assert "numpy" in used and not used & FORBIDDEN - {"scipy"}
    x = cr.scalar.Value(3.0)
    y = x * x
    y.backward()
    assert x.grad == 6.0
