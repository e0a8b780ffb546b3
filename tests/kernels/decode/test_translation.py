"""The decoder of an encoder-decoder in C++: the same numbers as its layers give, whatever happens to the rows."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule import native
from chainrule.autograd.types import Array
from chainrule.generate import Translation, Translator, translate
from chainrule.generate.engine.plan import Plan, decoder_graph
from chainrule.generate.engine.program import Compiler
from chainrule.generate.engine.weights import BLOCKS, FORMATS, pack, rounded
from chainrule.models import EncoderDecoder, Seq2SeqConfig, T5Config, model_class
from chainrule.trace.interpreter import Interpreter
from chainrule.trace.lower import lower

SIZE = Seq2SeqConfig(n_layer=2, n_head=3, n_embd=33, n_hidden=65, block_size=40, vocab_size=257, norm="post")
T5 = T5Config(
    n_layer=2,
    n_head=3,
    n_embd=33,
    n_hidden=65,
    block_size=40,
    vocab_size=257,
    relative_buckets=8,
    farthest=20,
)
VARIANTS = {
    "post": SIZE,
    "pre, learned": replace(SIZE, norm="pre", positions="learned", bias=True, activation="gelu_tanh"),
    "tied, scaled": replace(SIZE, tied=True, scale_embedding=True, activation="gelu"),
    "as BART": replace(
        SIZE, positions="learned", embedding_norm=True, bias=True, tied=True, activation="gelu"
    ),
    "two vocabularies": replace(SIZE, n_embd=64, n_head=2, source_vocab_size=270, activation="silu"),
    "narrow": replace(SIZE, n_layer=1, n_head=1, n_embd=1, n_hidden=1, norm="pre", norm_eps=0.1),
    "T5": T5,
    "T5 1.1": replace(
        T5,
        head_size=5,
        relative_buckets=32,
        gated=True,
        activation="gelu_tanh",
        tied=False,
        scale_output=False,
    ),
}
RNG = np.random.default_rng(4)
SOURCE, TARGET = RNG.integers(257, size=(4, 37)), RNG.integers(257, size=(4, 40))
MASK = np.arange(37) < np.array([37, 1, 33, 20])[:, None]
MASK[3, :5] = False  # a hole


def model_of(config: Any = SIZE) -> Any:
    cr.seed(0)
    model = model_class(config)(config)
    rng = np.random.default_rng(1)
    for _, param in model.named_parameters():
        param.data += 0.2 * rng.normal(size=param.shape)
    return model.eval()


def compiler_of(model: EncoderDecoder) -> Compiler:
    return Compiler(lower(decoder_graph(model)), "fp32", model.config.block_size)


def is_compiled(translation: Translation) -> bool:
    return isinstance(translation._engine, native.kernels().Program)


def by_ops(model: EncoderDecoder) -> Translator:
    """Of which translations call the layers, with whatever kernels there are"""
    with cr.backend("reference"):
        return Translator(model)


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_compiled_logits_are_those_of_the_layers(config: Any) -> None:
    model = model_of(config)
    fast, slow = (Translation(translator, SOURCE, MASK) for translator in (Translator(model), by_ops(model)))
    assert is_compiled(fast) and not is_compiled(slow)
    for start, stop in ((0, 1), (1, 2), (2, 35), (35, 36), (36, 40)):
        got, want = fast.read(TARGET[:, start:stop]), slow.read(TARGET[:, start:stop])
        # The scores of a T5 are not divided by √D, so that roundings weigh more.
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-5 if isinstance(config, T5Config) else 1e-5)


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_compiled_translations_are_those_of_the_layers(config: Any, beam: int) -> None:
    model = model_of(config)
    fast, slow = (
        translate(translator, SOURCE, MASK, start=1, end=2, beam=beam, max_new_tokens=20)
        for translator in (Translator(model), by_ops(model))
    )
    assert [ids.tolist() for ids in fast] == [ids.tolist() for ids in slow]


def test_a_source_of_which_nothing_can_be_seen() -> None:
    model, mask = model_of(), MASK & (np.arange(4) != 1)[:, None]
    fast, slow = (Translation(translator, SOURCE, mask) for translator in (Translator(model), by_ops(model)))
    for t in range(3):
        np.testing.assert_allclose(fast.read(TARGET[:, t]), slow.read(TARGET[:, t]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("config", [SIZE, T5], ids=["Seq2Seq", "T5"])
@given(st.data())
@settings(max_examples=25, deadline=None)
def test_rows_fork_end_and_change_places_as_those_of_the_layers(config: Any, data: st.DataObject) -> None:
    model = model_of(config)
    fast, slow = (Translation(translator, SOURCE, MASK) for translator in (Translator(model), by_ops(model)))
    for _ in range(data.draw(st.integers(1, 5), label="steps")):
        B = len(fast.owners)
        ids = np.array(data.draw(st.lists(st.integers(0, 256), min_size=B, max_size=B), label="tokens"))
        np.testing.assert_allclose(fast.read(ids), slow.read(ids), rtol=0, atol=1e-5)
        rows = data.draw(st.lists(st.integers(0, B - 1), min_size=1, max_size=9), label="rows")
        fast.keep(rows)
        slow.keep(rows)
        assert fast.owners.tolist() == slow.owners.tolist()


@pytest.mark.parametrize("config", [SIZE, T5], ids=["Seq2Seq", "T5"])
def test_caches_grow_with_what_is_written(config: Any) -> None:
    model = model_of(replace(config, block_size=150))
    fast, slow = (Translation(translator, SOURCE, MASK) for translator in (Translator(model), by_ops(model)))
    for count, rows in (
        (31, [0, 1, 1, 3]),
        (1, [3, 2, 1, 0, 0, 0]),
        (1, [5, 4, 3, 2, 1]),
        (31, [0] * 9),
        (86, [8]),
    ):
        ids = RNG.integers(257, size=(len(fast.owners), count))
        np.testing.assert_allclose(fast.read(ids), slow.read(ids), rtol=0, atol=1e-5)
        fast.keep(rows)
        slow.keep(rows)


def test_caches_take_no_memory_for_what_may_be_written() -> None:
    def held(block_size: int) -> int:
        translator = Translator(model_of(replace(SIZE, block_size=block_size)))
        native.kernels().give_back()
        before = native.kernels().held_bytes()
        translation = Translation(translator, SOURCE, MASK)
        translation.read(TARGET[:, :2])
        translation.keep([0, 1, 2, 3] * 5)
        translation.read(TARGET[0, :20])
        return native.kernels().held_bytes() - before

    assert held(20_000) < 2 * held(40)


def test_two_threads_do_not_change_what_a_third_has_checked() -> None:
    """It waits for the first, and the second has read other sources by then."""
    program = compiler_of(model_of(replace(SIZE, n_layer=6, block_size=400))).open(64)
    memory = RNG.normal(size=(64 * 9, 33)).astype(np.float32)
    others = np.full(64, 1)
    others[0] = 9
    found = {name: np.empty((1, 257), np.float32) for name in ("before", "after", "meanwhile")}

    def read(counts: Array) -> None:
        program.read(memory[: counts.sum()], counts)

    def ask(name: str) -> None:
        program.run(found[name], np.zeros(1, np.int32), *arrays([63], [1], [0], [63]))

    def work() -> None:
        logits, tokens = np.empty((20, 257), np.float32), np.zeros(20 * 400, np.int32)
        program.run(logits, tokens, *arrays([*range(20)], [400] * 20, [0] * 20, [*range(20)]))

    read(others)
    ask("after")
    read(np.full(64, 9))
    ask("before")
    jobs = [Thread(target=work), Thread(target=read, args=(others,)), Thread(target=ask, args=("meanwhile",))]
    for job in jobs:
        job.start()
        time.sleep(0.02)
    for job in jobs:
        job.join()
    assert not (found["before"] == found["after"]).all()
    assert any((found["meanwhile"] == found[name]).all() for name in ("before", "after"))


@pytest.mark.parametrize("config", [SIZE, T5], ids=["Seq2Seq", "T5"])
def test_a_row_has_the_same_bits_alone_and_beside_others(config: Any) -> None:
    """Given what the encoder made of the sources: sums of the decoder run over a row alone."""
    memory = RNG.normal(size=(4, 37, 33)).astype(np.float32)
    compiler = compiler_of(model_of(config))

    def opened(memory: Array, mask: Array | None) -> Any:
        B, S, C = memory.shape
        program = compiler.open(B)
        program.read(
            memory.reshape(-1, C) if mask is None else memory[mask],
            np.full(B, S) if mask is None else mask.sum(axis=1),
        )
        return program

    def read(program: Any, ids: Array, start: int) -> Array:
        logits, rows = np.empty((len(ids), 257), np.float32), np.arange(len(ids))
        counts, past = np.full(len(ids), ids.shape[1]), np.full(len(ids), start)
        program.run(logits, ids.astype(np.int32).reshape(-1), rows, counts, past, rows)
        return logits

    together = opened(memory, MASK)
    whole, after = read(together, TARGET[:, :36], 0), read(together, TARGET[:, 36:37], 36)
    for i in range(4):
        alone = opened(memory[i : i + 1, MASK[i]], None)
        for t in range(36):
            logits = read(alone, TARGET[i : i + 1, t : t + 1], t)
        assert (logits == whole[i]).all()
        assert (read(alone, TARGET[i : i + 1, 36:37], 36) == after[i]).all()


@pytest.mark.parametrize("config", [SIZE, T5], ids=["Seq2Seq", "T5"])
def test_the_same_bits_for_any_number_of_threads(config: Any) -> None:
    def written(beam: int) -> list[Any]:
        translation = Translation(translator, SOURCE, MASK)
        found = translate(translator, SOURCE, MASK, start=1, end=2, beam=beam, max_new_tokens=12)
        return [translation.read(TARGET[:, :35]).tobytes(), *(ids.tolist() for ids in found)]

    translator = Translator(model_of(config))
    native.set_threads(1)
    want = [written(1), written(4)]
    for count in (2, 3, 8):
        native.set_threads(count)
        assert [written(1), written(4)] == want, f"{count} threads"


@pytest.mark.parametrize("config", [SIZE, T5], ids=["Seq2Seq", "T5"])
@pytest.mark.parametrize("isa", native.isas())
def test_every_isa_agrees_with_the_layers(isa: str, config: Any) -> None:
    assert native.kernels().set_isa(isa)
    test_compiled_logits_are_those_of_the_layers(config)


@pytest.mark.parametrize("config", [SIZE, T5], ids=["Seq2Seq", "T5"])
@pytest.mark.parametrize("weights", FORMATS)
def test_a_format_computes_what_a_decoder_with_rounded_weights_does(weights: str, config: Any) -> None:
    model = model_of(config)
    graph, ids = decoder_graph(model), TARGET[0, :9].astype(np.int32)
    memory = np.random.default_rng(0).normal(size=(5, config.n_embd)).astype(np.float32)
    found = []
    for engine in (Plan(model, weights).open(1), Interpreter(graph, lambda weight: rounded(weight, weights))):
        engine.read(memory, np.array([5]))
        found.append(np.empty((1, 257), np.float32))
        engine.run(found[-1], ids, *arrays([0], [9], [0], [0]))
    atol = 0.25 * found[1].std() if weights in BLOCKS else 1e-5  # which round what enters a matmul
    np.testing.assert_allclose(*found, rtol=0, atol=atol)
    assert is_compiled(Translation(Translator(model, weights), SOURCE, MASK))


@pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
def test_rows_of_unequal_lengths(config: Any) -> None:
    model = model_of(config)
    memory = np.random.default_rng(0).normal(size=(9, config.n_embd)).astype(np.float32)

    def of_layers(ids: Array, source: slice) -> Array:
        with cr.no_grad():
            hidden = model.decode(ids[None], cr.Tensor(memory[None, source]), None)
            logits: Array = model.logits(hidden[:, -1]).numpy()
        return logits[0]

    program = compiler_of(model).open(3)
    program.read(memory, np.array([2, 7]))
    ids, more = TARGET[0, :12].astype(np.int32), TARGET[1, :2].astype(np.int32)
    logits, later = np.empty((3, 257), np.float32), np.empty((1, 257), np.float32)
    program.run(logits, ids, *arrays([0, 2, 1], [4, 1, 7], [0] * 3, [1, 0, 1]))
    program.copy(1, 0, 7)
    program.run(later, more, *arrays([0], [2], [7], [1]))
    first, second = slice(0, 2), slice(2, 9)
    want = [of_layers(ids[:4], second), of_layers(ids[4:5], first), of_layers(ids[5:], second)]
    want.append(of_layers(np.concatenate([ids[5:], more]), second))
    np.testing.assert_allclose(np.concatenate([logits, later]), want, rtol=0, atol=1e-5)


def test_translations_of_one_translator_do_not_disturb_each_other() -> None:
    translator = Translator(model_of())
    first, second = Translation(translator, SOURCE, MASK), Translation(translator, SOURCE[::-1], MASK[::-1])
    for t in range(4):
        one, two = first.read(TARGET[:, t]), second.read(TARGET[::-1, t])
        np.testing.assert_allclose(one, two[::-1], rtol=0, atol=1e-5)


def test_a_translation_goes_on_with_the_weights_it_began_with() -> None:
    model = model_of()
    translation, same = Translation(model, SOURCE, MASK), Translation(model, SOURCE, MASK)
    want = translation.read(TARGET[:, 0])
    model.load({name: 2 * value for name, value in model.state().items()})
    assert (same.read(TARGET[:, 0]) == want).all()


def test_a_decoder_alone_has_no_source() -> None:
    with pytest.raises(cr.ConfigError, match="Decoder: got Seq2Seq"):
        cr.generate.Decoder(model_of())


def lora(model: Any) -> None:
    layer = model.model["decoder"].layers[0]
    layer.fc1 = cr.nn.LoRALinear(layer.fc1, 2)
    layer.fc1.lora_B.data += 0.1


def adapter(model: Any) -> None:
    layer = model.model["decoder"].layers[1]
    layer.self_attn = cr.nn.Adapted(layer.self_attn, cr.nn.Adapter(33, 4))
    layer.self_attn.adapter.up.weight.data += 0.1


def prefix(model: Any) -> None:
    layer = model.model["decoder"].layers[1]
    layer.self_attn.prefix = cr.nn.KeyValuePrefix(5, 3, 11)


@pytest.mark.parametrize("change", [lora, adapter, prefix])
def test_a_model_with_adapters_is_compiled_too(change: Any) -> None:
    model = model_of()
    change(model)
    translation = Translation(model, SOURCE, MASK)
    assert is_compiled(translation)
    with cr.no_grad():
        want = model(SOURCE, MASK, TARGET[:, :1]).numpy()[:, 0]
    np.testing.assert_allclose(translation.read(TARGET[:, 0]), want, rtol=0, atol=1e-5)
    fast, slow = (
        translate(translator, SOURCE, MASK, start=1, end=2, beam=2, max_new_tokens=20)
        for translator in (Translator(model), by_ops(model))
    )
    assert [ids.tolist() for ids in fast] == [ids.tolist() for ids in slow]


def test_a_prefix_of_what_is_read_of_a_source_is_interpreted() -> None:
    model = model_of()
    model.model["decoder"].layers[0].encoder_attn.prefix = cr.nn.KeyValuePrefix(5, 3, 11)
    translation = Translation(model, SOURCE, MASK)
    assert not is_compiled(translation)
    with cr.no_grad():
        want = model(SOURCE, MASK, TARGET[:, :2]).numpy()
    for t in range(2):
        np.testing.assert_allclose(translation.read(TARGET[:, t]), want[:, t], rtol=0, atol=1e-5)


def test_float64_and_captures_are_run_by_the_layers() -> None:
    assert isinstance(Translation(model_of().to("float64"), SOURCE)._engine, Interpreter)
    translator = Translator(model_of())
    for inside in (cr.capture("*"), cr.backend("reference")):
        with inside:
            assert isinstance(Translation(translator, SOURCE)._engine, Interpreter)
    with cr.capture("*") as seen:
        later = Translator(model_of())
        Translation(translator, SOURCE).read(TARGET[:, 0])
    assert any("decoder.layers.1.encoder_attn" in name for name in seen)
    for made in (translator, later):
        assert is_compiled(Translation(made, SOURCE))


def arrays(*lists: list[int]) -> list[Array]:
    return [np.array(numbers, np.int64) for numbers in lists]


@pytest.mark.parametrize(
    ("counts", "sources", "message"),
    [
        ([5, 5], [0], "counts exceed"),
        ([5, -1], [0], "counts exceed"),
        ([5], [0], "memory has"),
        ([5, 4], [2], "no such source"),
        ([5, 4], [-1], "no such source"),
        ([5, 4], [0, 1], "sources has 2 elements"),
        ([5, 4], None, "sources are needed"),
    ],
)
def test_the_extension_refuses_sources_that_do_not_fit(
    counts: list[int], sources: list[int] | None, message: str
) -> None:
    program = compiler_of(model_of()).open(1)
    logits, token = np.zeros((1, 257), np.float32), np.array([1], np.int32)
    with pytest.raises(ValueError, match=message):
        program.read(np.zeros((9, 33), np.float32), *arrays(counts))
        about = None if sources is None else np.array(sources)
        program.run(logits, token, *arrays([0], [1], [0]), about)
    assert not logits.any()


def test_the_extension_refuses_attention_that_does_not_fit() -> None:
    program = native.kernels().Program(1, 8)
    out, q, other = program.buffer(32), program.buffer(32), program.buffer(64)
    words = pack([cr.nn.Linear(16, 64).weight], "fp32")
    for arguments, message in (
        ((out, other, 2, 1.0, 16, words, 0, None), "widths 64 and 32"),
        ((out, q, 3, 1.0, 16, words, 0, None), "heads must divide"),
        ((out, q, 0, 1.0, 16, words, 0, None), "heads must divide"),
        ((out, q, 2, 1.0, 0, words, 0, None), "at least 1 wide"),
        ((out, q, 2, 1.0, 48, words, 0, None), "words has"),
    ):
        with pytest.raises(ValueError, match=message):
            program.cross_attention(*arguments)
    program.cross_attention(out, q, 2, 1.0, 16, words, 0, None)
    with pytest.raises(ValueError, match="widths 16 and 20"):
        program.cross_attention(out, q, 2, 1.0, 20, words, 0, None)
