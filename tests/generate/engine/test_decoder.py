"""Decoder: with a cache the same logits as without, to the bit however the tokens arrive; every format; bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import native
from chainrule.errors import ChainruleError, ConfigError, DataError, ShapeError
from chainrule.generate import Decoder
from chainrule.generate.engine.plan import decoder_graph
from chainrule.generate.engine.weights import BLOCKS, FORMATS, rounded
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig
from chainrule.nn import Llama3Scaling
from chainrule.trace.interpreter import Interpreter

CONFIGS = {
    "gpt": GPTConfig(n_layer=2, n_head=4, n_embd=48, block_size=70, vocab_size=65),
    "gpt without biases": GPTConfig(
        n_layer=1, n_head=1, n_embd=33, block_size=70, vocab_size=257, bias=False
    ),
    "gpt narrow inside": GPTConfig(n_layer=2, n_head=3, n_embd=48, block_size=70, vocab_size=65, n_hidden=37),
    "gpt untied": GPTConfig(
        n_layer=1, n_head=2, n_embd=48, block_size=70, vocab_size=65, tied=False, norm_eps=1e-3
    ),
    "llama": LlamaConfig(
        n_layer=2, n_head=6, n_kv_head=2, n_embd=72, n_hidden=77, block_size=70, vocab_size=257
    ),
    "llama with wide heads and slower positions": LlamaConfig(
        n_layer=2,
        n_head=3,
        n_kv_head=1,
        n_embd=50,
        n_hidden=33,
        block_size=70,
        vocab_size=65,
        head_dim=34,
        rope_scaling=Llama3Scaling(8.0, 1.0, 4.0, 32),
        attention_bias="qkv",
    ),
    "llama untied": LlamaConfig(
        attention_bias="all",
        n_head=2,
        n_kv_head=1,
        n_embd=80,
        n_hidden=7,
        block_size=70,
        vocab_size=65,
        tied=False,
    ),
}
LENGTH = 50


def model_of(name: str) -> GPT | Llama:
    cr.seed(0)
    config = CONFIGS[name]
    model = GPT(config) if isinstance(config, GPTConfig) else Llama(config)
    rng = np.random.default_rng(1)
    model.load({key: value + 0.1 * rng.normal(size=value.shape) for key, value in model.state().items()})
    return model.eval()


def ids_of(model: GPT | Llama, seed: int = 2, n: int = LENGTH) -> np.ndarray:
    return np.random.default_rng(seed).integers(model.config.vocab_size, size=n)


def uncached(model: GPT | Llama, ids: np.ndarray) -> np.ndarray:
    """Logits after each token (T, V)"""
    with cr.no_grad():
        return model(ids[None]).numpy()[0]


@pytest.fixture(params=["native", "interpreter"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "native" and not native.available():
        pytest.skip("the extension was not built")
    if request.param == "interpreter":
        monkeypatch.setattr(native, "available", lambda: False)
    return str(request.param)


@pytest.mark.parametrize("name", CONFIGS)
def test_cached_logits_equal_uncached_ones(name: str, engine: str) -> None:
    model = model_of(name)
    ids, decoder = ids_of(model), Decoder(model)
    want = uncached(model, ids)
    steps = np.concatenate([decoder.step([token]) for token in ids])
    np.testing.assert_allclose(steps, want, rtol=0, atol=1e-5)
    decoder.reset()
    np.testing.assert_allclose(decoder.prefill(ids), want[-1:], rtol=0, atol=1e-5)


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("name", CONFIGS)
def test_any_split_gives_the_same_bits(name: str, weights: str) -> None:
    model = model_of(name)
    ids, decoder = ids_of(model), Decoder(model, weights)
    whole = decoder.prefill(ids)
    for cuts in ([1], [7], [31, 32, 33], [2, 26, 49], list(range(1, LENGTH))):
        decoder.reset()
        for piece in np.split(ids, cuts):
            logits = decoder.prefill(piece)
        assert_same(logits, whole)


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_a_sequence_among_others_gives_the_same_bits_as_alone(name: str, weights: str) -> None:
    """Prompts of unequal lengths, then steps; one sequence leaves and another takes its place."""
    model = model_of(name)
    prompts = [ids_of(model, seed, n) for seed, n in enumerate((1, 40, 7, 33, 2))]
    together = Decoder(model, weights, batch=5)
    first, then = together.prefill(prompts), together.step([1, 2, 3, 4, 5])
    for i, prompt in enumerate(prompts):
        alone = Decoder(model, weights)
        assert_same(alone.prefill(prompt)[0], first[i])
        assert_same(alone.step([i + 1])[0], then[i])
    together.reset(3)
    late = together.prefill([prompts[2], [9]], sequences=[3, 1])
    alone.reset()
    assert_same(alone.prefill(prompts[2])[0], late[0])
    assert together.lengths.tolist() == [2, 42, 8, 7, 3]


def assert_same(a: np.ndarray, b: np.ndarray) -> None:
    """To the bit in the extension; NumPy's products depend on the number of rows."""
    if native.available():
        assert (a == b).all()
    else:
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_format_computes_what_a_model_with_rounded_weights_does(name: str, weights: str) -> None:
    model = model_of(name)
    ids, got = ids_of(model), Decoder(model, weights).prefill(ids_of(model))
    state = model.state()
    kept = {k: rounded(v, weights) if v.ndim == 2 and "wpe" not in k else v for k, v in state.items()}
    model.load(kept)
    want = uncached(model, ids)[-1]
    np.testing.assert_allclose(got[0], want, rtol=0, atol=tolerance(weights, want))
    assert (weights in BLOCKS and native.available()) or np.abs(got[0] - want).max() < 1e-5


def tolerance(weights: str, logits: np.ndarray) -> float:
    """With blocks the extension rounds what enters a matmul to 8 bits."""
    return 0.1 * float(logits.std()) if weights in BLOCKS else 1e-5


@pytest.mark.parametrize("name", CONFIGS)
def test_fewer_bits_lose_more_and_not_much(name: str) -> None:
    model = model_of(name)
    ids = ids_of(model)
    exact = Decoder(model).prefill(ids)
    loss = {f: np.abs(Decoder(model, f).prefill(ids) - exact).max() / exact.std() for f in FORMATS}
    assert loss["fp32"] == 0 < loss["bf16"] < loss["int8"] < loss["int4"]
    assert loss["bf16"] < 0.05 and loss["int8"] < 0.1 and loss["int4"] < 2
    assert 0 < loss["q8_0"] < loss["q4_0"] and loss["q8_0"] < 0.2 and loss["q4_0"] < 2


@pytest.mark.skipif(not native.available(), reason="the extension was not built")
@pytest.mark.parametrize("weights", FORMATS)
def test_the_interpreter_agrees_with_the_extension(weights: str) -> None:
    model = model_of("llama")
    ids = ids_of(model)
    logits = np.empty((1, 257), np.float32)
    interpreter = Interpreter(decoder_graph(model), lambda weight: rounded(weight, weights))
    interpreter.run(logits, ids, *(np.array([n]) for n in (0, LENGTH, 0)))
    atol = tolerance(weights, logits)
    np.testing.assert_allclose(Decoder(model, weights).prefill(ids), logits, rtol=0, atol=atol)


def test_a_decoder_keeps_the_weights_it_was_made_with(engine: str) -> None:
    model = model_of("gpt")
    decoder, ids = Decoder(model), ids_of(model)
    before = decoder.prefill(ids)
    model.load({name: 2 * value for name, value in model.state().items()})
    decoder.reset()
    assert (decoder.prefill(ids) == before).all()


def test_weights_that_are_not_finite_reach_the_logits_or_are_refused(engine: str) -> None:
    model = model_of("gpt")
    model.wte.weight.data[3, 0] = np.nan
    assert np.isnan(Decoder(model).prefill([1, 2])).any()
    with pytest.raises(ChainruleError, match="not finite, int8"):
        Decoder(model, "int8")


def with_lora(model: Any) -> None:
    """On a layer before an activation, on queries, keys or both, and on one that ends in the residual stream."""
    block = model.h[0] if hasattr(model, "h") else model.layers[0]
    layers = (
        [(block.attn, "c_attn"), (block.mlp, "c_fc"), (block.mlp, "c_proj")] if hasattr(model, "h") else []
    )
    layers = layers or [(block.self_attn, "q_proj"), (block.self_attn, "o_proj"), (block.mlp, "gate_proj")]
    for parent, name in layers:
        changed = cr.nn.LoRALinear(getattr(parent, name), 2, alpha=3)
        changed.lora_B.data += np.random.default_rng(2).normal(size=changed.lora_B.shape)
        setattr(parent, name, changed)


def with_adapters(model: Any) -> None:
    block = model.h[1] if hasattr(model, "h") else model.layers[1]
    adapter = cr.nn.Adapter(model.config.n_embd, 4)
    adapter.up.weight.data += np.random.default_rng(2).normal(size=adapter.up.weight.shape)
    block.mlp = cr.nn.Adapted(block.mlp, adapter)


def with_prefixes(model: Any) -> None:
    """Of unlike lengths, and none in the last block."""
    config = model.config
    for length, block in zip((3, 40), model.h if hasattr(model, "h") else model.layers, strict=False):
        if hasattr(block, "attn"):
            block.attn.prefix = cr.nn.KeyValuePrefix(length, config.n_head, config.n_embd // config.n_head)
        else:
            block.self_attn.prefix = cr.nn.KeyValuePrefix(length, config.n_kv_head, config.head_size)


def with_soft_prompt(model: Any) -> None:
    name = "wte" if hasattr(model, "wte") else "embed_tokens"
    setattr(model, name, cr.nn.SoftPrompt(getattr(model, name), 7))


def with_both(model: Any) -> None:
    with_prefixes(model)
    with_soft_prompt(model)


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("change", [with_prefixes, with_soft_prompt, with_both])
@pytest.mark.parametrize("name", CONFIGS)
def test_what_stands_before_a_text_gives_the_same_bits_for_any_split(
    name: str, change: Any, weights: str
) -> None:
    """Each sequence has it once: after a reset, in a copy, in a cache that grows, alone or beside others."""
    model = model_of(name)
    change(model)
    ids, decoder = ids_of(model), Decoder(model, weights, batch=3)
    assert isinstance(decoder._engine, Interpreter) != native.available()
    if weights == "fp32":
        np.testing.assert_allclose(decoder.prefill([ids] * 3)[2], uncached(model, ids)[-1], rtol=0, atol=1e-5)
        decoder.reset()
    whole = decoder.prefill([ids, ids[:1], ids[:20]])
    for token in ids[20:]:
        last = decoder.step([token], sequences=[2])
    assert_same(last[0], whole[0])
    decoder.copy(2, 1)
    after = decoder.step([1], sequences=[1])
    assert_same(decoder.step([1], sequences=[0]), after)
    decoder.reset(2)
    assert_same(decoder.prefill(ids, sequences=[2])[0], whole[0])


def test_a_soft_prompt_takes_its_part_of_the_context() -> None:
    model = model_of("gpt")
    with_soft_prompt(model)
    assert model.context == model.training_window == Decoder(model).context == 63
    with pytest.raises(ShapeError, match=r"ids \(1, 64\) \(must be \(B, T\) with T from 1 to 63\)"):
        model(np.zeros((1, 64), int))
    with pytest.raises(DataError, match=r"64 tokens \(the model's context is 63\)"):
        Decoder(model).prefill([1] * 64)


@pytest.mark.parametrize("weights", ["fp32", "int8", "q8_0"])
@pytest.mark.parametrize("change", [with_lora, with_adapters, with_both])
@pytest.mark.parametrize("name", ["gpt", "llama"])
def test_additions_to_a_model_decode_as_they_are(name: str, change: Any, weights: str, engine: str) -> None:
    model = model_of(name)
    change(model)
    decoder = Decoder(model, weights)
    assert isinstance(decoder._engine, Interpreter) == (engine == "interpreter")
    ids = ids_of(model)
    want = Interpreter(decoder_graph(model), lambda weight: rounded(weight, weights))
    logits, end = np.empty((1, decoder.vocab_size), np.float32), LENGTH // 2
    tolerance = {
        "rtol": 0,
        "atol": 1e-4 if weights == "fp32" else 0.5,
    }  # what is scaled is rounded after that
    want.run(logits, ids[:end], *(np.array([n]) for n in (0, end, 0)))
    np.testing.assert_allclose(decoder.prefill(ids[:end]), logits, **tolerance)
    want.run(logits, ids[end : end + 1], *(np.array([n]) for n in (0, 1, end)))
    np.testing.assert_allclose(decoder.step(ids[end : end + 1]), logits, **tolerance)
    if weights == "fp32":
        np.testing.assert_allclose(logits[0], uncached(model, ids[: end + 1])[-1], **tolerance)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ConfigError, "'fp8' .*fp32, bf16, fp16, int8, int4", {"weights": "fp8"}),
        (ConfigError, "batch is 0", {"batch": 0}),
    ],
)
def test_impossible_decoders_are_refused(error: Any, message: str, options: dict[str, Any]) -> None:
    with pytest.raises(error, match=message):
        Decoder(model_of("gpt"), **options)


@pytest.mark.parametrize(
    ("error", "message", "ids", "sequences"),
    [
        (DataError, "token 65", [[1, 65], [1]], None),
        (DataError, "token -1", [[1], [-1]], None),
        (DataError, r"shape \(0,\)", [[1], []], None),
        (DataError, "float64", [[1], [1.0]], None),
        (DataError, "71 tokens.*context is 70", [[1], [1] * 71], None),
        (ShapeError, "1 texts for sequences", [[1, 2]], None),
        (ShapeError, r"2 texts for sequences \[1, 1\]", [[1], [2]], [1, 1]),
        (ShapeError, "must be from 0 to 1", [[1], [2]], [0, 2]),
        (ShapeError, "must be from 0 to 1", [[1], [2]], [-1, 0]),
    ],
)
def test_tokens_that_do_not_fit_are_refused_and_nothing_is_read(
    error: Any, message: str, ids: Any, sequences: Any, engine: str
) -> None:
    decoder = Decoder(model_of("gpt"), batch=2)
    with pytest.raises(error, match=message):
        decoder.prefill(ids, sequences)
    assert not decoder.lengths.any()


@pytest.mark.parametrize("weights", FORMATS)
def test_a_copied_cache_goes_on_as_the_first_would(weights: str, engine: str) -> None:
    model = model_of("llama")
    decoder = Decoder(model, weights, batch=3)
    decoder.prefill([ids_of(model, n=35), ids_of(model, 3, 4)], sequences=[0, 2])
    decoder.copy(0, 1)
    decoder.copy(0, 2)  # in place of what it held
    assert decoder.lengths.tolist() == [35, 35, 35]
    one, two, three = decoder.prefill([[5, 6], [5, 6], [7]])
    assert (one == two).all() and (one != three).any()
    assert_same(
        decoder.step([8, 8, 8])[0], Decoder(model, weights).prefill([*ids_of(model, n=35), 5, 6, 8])[0]
    )
    for source, target in ((0, 3), (-1, 0)):
        with pytest.raises(ShapeError, match="must be from 0 to 2"):
            decoder.copy(source, target)


def test_a_model_in_float64_is_read_in_float64(engine: str) -> None:
    model = model_of("gpt").to(np.float64)
    ids = ids_of(model)
    np.testing.assert_allclose(Decoder(model).prefill(ids)[0], uncached(model, ids)[-1], rtol=0, atol=1e-12)
