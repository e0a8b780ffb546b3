"""Seq2Seq: right gradients in every variant, nothing seen that must not be, promised sizes and names, and it learns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import ops
from chainrule.autograd import Param
from chainrule.autograd.types import Array
from chainrule.data import PairBatches, pad
from chainrule.errors import ConfigError, ShapeError
from chainrule.generate import translate
from chainrule.models import IGNORE, Seq2Seq, Seq2SeqConfig, describe, make, rebuild
from chainrule.models.seq2seq.model import DecoderLayer, EncoderLayer
from tests.models import tiny, toy_translation
from tests.models.toy_translation import END, HELD_OUT, START
from tests.vectors import vector

TINY = Seq2SeqConfig(
    n_layer=2, n_head=3, n_embd=12, n_hidden=20, block_size=7, vocab_size=11, dropout=0.0, norm="post"
)
VARIANTS = {
    f"{norm}-{positions}": replace(TINY, norm=norm, positions=positions)
    for norm in ("post", "pre")
    for positions in ("sinusoidal", "learned")
} | {
    "tied, scaled, biases": replace(
        TINY, n_layer=1, tied=True, scale_embedding=True, bias=True, activation="gelu"
    ),
    "two vocabularies": replace(TINY, n_layer=1, source_vocab_size=13, tied=True, activation="silu"),
    "two vocabularies, pre, untied": replace(TINY, n_layer=1, source_vocab_size=13, norm="pre"),
    "as BART": replace(TINY, n_layer=1, positions="learned", embedding_norm=True, bias=True, tied=True),
}
H = 1e-5  # short steps of the gradient checks: between two kinks of relu
every_variant = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)

RNG = np.random.default_rng(1)
SOURCE, TARGET, TARGETS = (RNG.integers(11, size=shape) for shape in ((3, 6), (3, 5), (3, 5)))
MASK = np.arange(6) < np.array([6, 4, 2])[:, None]
TARGETS[1, 3:] = IGNORE
INPUTS = (SOURCE, MASK, TARGET)


def model_of(config: Seq2SeqConfig = TINY, seed: int = 0) -> Seq2Seq:
    cr.seed(seed)
    return Seq2Seq(config)


def float64(config: Seq2SeqConfig = TINY) -> Seq2Seq:
    return tiny.float64(model_of(config))


class TestGradients:
    @pytest.mark.requirement("R-358")
    @every_variant
    def test_every_parameter_in_float64(self, config: Seq2SeqConfig) -> None:
        model = float64(config)
        assert cr.gradcheck_model(model.parameters(), lambda: model.loss(INPUTS, TARGETS), step=H) <= 1e-6

    def test_with_dropout_and_smoothed_labels(self) -> None:
        model = float64(replace(TINY, dropout=0.3, label_smoothing=0.2, activation="gelu"))

        def loss() -> cr.Tensor:
            with cr.random.step(3):  # the same dropout masks each time
                return model.loss(INPUTS, TARGETS)

        assert cr.gradcheck_model(model.parameters(), loss) <= 1e-6

    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_computed_again_they_have_the_same_bits(self, norm: str) -> None:
        model, gradients = model_of(replace(TINY, norm=norm, dropout=0.2)), []
        for model.recompute in (False, True):
            model.parameters().zero_grad()
            with cr.random.step(3):
                model.loss(INPUTS, TARGETS).backward()
            gradients.append(model.parameters().grad.copy())
        assert gradients[0].any() and (gradients[0] == gradients[1]).all()

    @pytest.mark.requirement("R-325")
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_encoder_block(self, norm: str) -> None:
        block = tiny.float64(EncoderLayer(replace(TINY, norm=norm)))
        x, direction = RNG.normal(size=(2, 3, 6, 12))
        mask = MASK[:, None, None]
        loss = lambda: (block(cr.Tensor(x), mask) * cr.Tensor(direction)).sum()  # noqa: E731
        assert cr.gradcheck_model(block.parameters(), loss, step=H) <= 1e-6
        assert cr.gradcheck(lambda x: block(x, mask), x, step=H) <= 1e-6

    @pytest.mark.requirement("R-326")
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_decoder_block_and_both_its_inputs(self, norm: str) -> None:
        block = tiny.float64(DecoderLayer(replace(TINY, norm=norm)))
        x, direction = RNG.normal(size=(2, 3, 5, 12))
        memory, mask = RNG.normal(size=(3, 6, 12)), MASK[:, None, None]

        def loss() -> cr.Tensor:
            return (block(cr.Tensor(x), cr.Tensor(memory), mask) * cr.Tensor(direction)).sum()

        assert cr.gradcheck_model(block.parameters(), loss, step=H) <= 1e-6
        both = lambda x, memory: block(x, memory, mask)  # noqa: E731
        assert cr.gradcheck(both, x, memory, step=H) <= 1e-6

    @pytest.mark.requirement("R-355")
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_two_decoder_blocks_send_gradients_to_the_state_and_to_the_encoder(self, norm: str) -> None:
        model = float64(replace(TINY, norm=norm))
        blocks, mask = model.model["decoder"].layers, MASK[:, None, None]
        state, memory, direction = (
            RNG.normal(size=(3, 5, 12)),
            RNG.normal(size=(3, 6, 12)),
            RNG.normal(size=(3, 5, 12)),
        )

        def run(state: Any, *memories: Any) -> Any:
            for block, memory in zip(blocks, memories, strict=True):
                state = block(state, memory, mask)
            return state

        assert cr.gradcheck(lambda state, memory: run(state, memory, memory), state, memory, step=H) <= 1e-6
        shared, first, second = (cr.Tensor(memory, requires_grad=True) for _ in range(3))
        run(cr.Tensor(state), shared, shared).backward(direction)
        run(cr.Tensor(state), first, second).backward(direction)
        np.testing.assert_allclose(shared.grad, first.grad + second.grad, rtol=1e-12)
        for grad in (first.grad, second.grad):
            assert np.abs(grad[MASK]).min() > 0 and not grad[~MASK].any()
        alone = cr.Tensor(memory, requires_grad=True)
        model.decode(TARGET, alone, MASK).backward(direction)  # the door of the model itself
        assert np.abs(alone.grad[MASK]).min() > 0 and not alone.grad[~MASK].any()

    @pytest.mark.requirement("R-354")
    def test_what_is_masked_gets_no_gradient(self) -> None:
        """Positions that padding or the causal mask hides from every query: exactly 0, all others not."""
        model = float64(replace(TINY, positions="learned", n_layer=1))
        memory = cr.Tensor(model.encode(SOURCE, MASK).numpy(), requires_grad=True)
        with cr.capture("*.self_attn.*_proj.linear") as seen:
            model.decode(TARGET, memory, MASK)[:, 1].sum().backward()  # of the second position
        assert memory.grad is not None and not memory.grad[~MASK].any() and memory.grad[MASK].all()
        found = {name.split(".")[-2]: entry.grad for name, entry in seen.items()}
        assert set(found) == {"q_proj", "k_proj", "v_proj", "out_proj"}
        for name in ("k_proj", "v_proj"):
            assert not found[name][:, 2:].any(), "later keys and values cannot be reached"
            assert found[name][:, :2].all()
        assert not found["q_proj"][:, [0, 2, 3, 4]].any()

    @pytest.mark.requirement("R-343")
    def test_a_bias_gets_the_sum_over_positions(self) -> None:
        model = float64(TINY)
        logits = model(*INPUTS)
        direction = RNG.normal(size=logits.shape)
        with cr.capture("*.fc2.linear") as seen:
            (model(*INPUTS) * cr.Tensor(direction)).sum().backward()
        np.testing.assert_allclose(model.final_logits_bias.grad[0], direction.sum(axis=(0, 1)), rtol=1e-12)
        inner = seen["model.decoder.layers.1.fc2.linear"]
        got = model.model["decoder"].layers[1].fc2.bias.grad
        np.testing.assert_allclose(got, inner.grad.sum(axis=(0, 1)), rtol=1e-10)

    @pytest.mark.requirement("R-336")
    def test_a_tied_matrix_is_one_array_with_the_sum_of_its_gradients(self) -> None:
        config = replace(TINY, tied=True)
        tied, untied = float64(config), float64(TINY)
        assert TINY.n_params - config.n_params == TINY.vocab_size * TINY.n_embd
        matrix = tied.model["shared"].weight
        assert tied.head.weight is matrix and "lm_head.weight" not in tied.state()
        untied.load(tied.state() | {"lm_head.weight": matrix.array})
        for model in (tied, untied):
            model.parameters().zero_grad()
            model.loss(INPUTS, TARGETS).backward()
        parts = untied.model["shared"].weight.grad + untied.lm_head.weight.grad
        np.testing.assert_allclose(matrix.grad, parts, rtol=1e-9, atol=1e-15)


class TestWhatIsSeen:
    @every_variant
    def test_no_position_of_the_target_sees_a_later_one_and_all_see_the_source(
        self, config: Seq2SeqConfig
    ) -> None:
        model = float64(config).eval()
        before = model(*INPUTS).numpy()
        for t in range(1, TARGET.shape[1]):
            changed = TARGET.copy()
            changed[:, t] = (changed[:, t] + 1) % 11
            after = model(SOURCE, MASK, changed).numpy()
            assert (after[:, :t] == before[:, :t]).all() and (after[:, t:] != before[:, t:]).any()
        other = SOURCE.copy()
        other[:, 1] = (other[:, 1] + 1) % 11
        assert (model(other, MASK, TARGET).numpy() != before).all()

    @every_variant
    def test_padding_changes_nothing(self, config: Seq2SeqConfig) -> None:
        model = float64(config).eval()
        together = model(*INPUTS).numpy()
        garbage = np.where(MASK, SOURCE, (SOURCE + 5) % 11)
        np.testing.assert_array_equal(model(garbage, MASK, TARGET).numpy(), together)
        for row, length in enumerate(MASK.sum(axis=1)):
            alone = model(SOURCE[row : row + 1, :length], None, TARGET[row : row + 1]).numpy()
            np.testing.assert_allclose(alone[0], together[row], rtol=0, atol=1e-10)

    @pytest.mark.requirement("R-327")
    def test_every_decoder_block_looks_at_the_same_memory(self) -> None:
        model = model_of(replace(TINY, n_layer=6)).eval()
        memory = model.encode(SOURCE, MASK)
        assert memory.shape == (3, 6, 12) and model.decode(TARGET, memory, MASK).shape == (3, 5, 12)
        seen = []
        for source in (memory, cr.Tensor(np.zeros_like(memory.numpy()))):
            with cr.capture("*.encoder_attn.attention") as calls:
                model.decode(TARGET, source, MASK)
            seen.append([calls[f"model.decoder.layers.{i}.encoder_attn.attention"].value for i in range(6)])
        assert all((a != b).any() for a, b in zip(*seen, strict=True))

    def test_a_source_without_a_token_gives_finite_numbers(self) -> None:
        model = model_of()
        loss = model.loss((SOURCE, np.zeros_like(MASK), TARGET), TARGETS)
        loss.backward()
        assert np.isfinite(loss.item()) and np.isfinite(model.parameters().grad).all()


class TestSizesAndNames:
    @every_variant
    def test_the_number_of_parameters_is_known_before_there_is_a_model(self, config: Seq2SeqConfig) -> None:
        assert config.n_params == Seq2Seq.n_params(config) == model_of(config).count()

    @pytest.mark.requirement("R-342")
    def test_any_depth_runs_and_the_count_grows_evenly(self) -> None:
        counts = {}
        for n_layer in (1, 2, 12):
            model = model_of(replace(TINY, n_layer=n_layer)).eval()
            assert np.isfinite(model(*INPUTS).numpy()).all()
            counts[n_layer] = model.count()
        assert counts[12] - counts[2] == 10 * (counts[2] - counts[1])

    @pytest.mark.requirement("R-334")
    def test_pre_norm_differs_by_the_norms_at_the_end(self) -> None:
        pre = replace(TINY, norm="pre")
        models = {config.norm: model_of(config).eval() for config in (TINY, pre)}
        extra = models["pre"].state().keys() - models["post"].state().keys()
        stacks = ("model.encoder", "model.decoder")
        assert extra == {f"{stack}.layer_norm.{kind}" for stack in stacks for kind in ("weight", "bias")}
        assert pre.n_params - TINY.n_params == 2 * 2 * TINY.n_embd
        assert not np.allclose(models["pre"](*INPUTS).numpy(), models["post"](*INPUTS).numpy())

    @pytest.mark.requirement("R-330")
    def test_the_base_configuration(self) -> None:
        base = Seq2SeqConfig.base()
        sizes = (base.vocab_size, base.n_embd, base.n_head, base.inside, base.n_layer, base.norm_eps)
        assert sizes == (50000, 512, 8, 2048, 6, 1e-6)
        assert (base.norm, base.activation, base.positions, base.tied) == (
            "post",
            "relu",
            "sinusoidal",
            False,
        )
        vector("004-12.1-dims").check({"d_k": base.n_embd // base.n_head})
        embedding = base.vocab_size * base.n_embd
        vector("004-12.8-embedding").check(embedding)
        block = EncoderLayer(replace(base, n_layer=1, vocab_size=1))
        assert block.self_attn.heads == 8 and block.final_layer_norm.eps == 1e-6
        biases = block.fc1.bias.size + block.fc2.bias.size  # which the document does not count
        vector("004-12.8-encoder-block").check(block.count() - biases)
        blocks = base.n_params - 2 * embedding - base.vocab_size - 12 * biases
        vector("004-12.8-blocks").check(blocks)
        vector("004-12.8-total").check(blocks + 2 * embedding)

    def test_names_and_shapes_are_those_of_marian(self) -> None:
        shapes = {n: v.shape for n, v in model_of(replace(TINY, bias=True, tied=True)).state().items()}
        C, F, V = TINY.n_embd, TINY.inside, TINY.vocab_size
        expected: dict[str, tuple[int, ...]] = {"model.shared.weight": (V, C), "final_logits_bias": (1, V)}
        parts = {"encoder": ["self_attn"], "decoder": ["self_attn", "encoder_attn"]}
        for stack, layer in ((stack, layer) for stack in parts for layer in range(2)):
            prefix = f"model.{stack}.layers.{layer}"
            for attention in parts[stack]:
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    expected |= {f"{prefix}.{attention}.{name}.weight": (C, C)}
                    expected |= {f"{prefix}.{attention}.{name}.bias": (C,)}
            for norm in (*(f"{attention}_layer_norm" for attention in parts[stack]), "final_layer_norm"):
                expected |= {f"{prefix}.{norm}.{kind}": (C,) for kind in ("weight", "bias")}
            expected |= {f"{prefix}.fc1.weight": (F, C), f"{prefix}.fc1.bias": (F,)}
            expected |= {f"{prefix}.fc2.weight": (C, F), f"{prefix}.fc2.bias": (C,)}
        assert shapes == expected

    def test_two_vocabularies_have_two_tables_and_learned_positions_their_own(self) -> None:
        config = replace(TINY, source_vocab_size=13, positions="learned")
        shapes = {n: v.shape for n, v in model_of(config).state().items() if ".layers." not in n}
        assert shapes == {
            "model.encoder.embed_tokens.weight": (13, 12),
            "model.decoder.embed_tokens.weight": (11, 12),
            "model.encoder.embed_positions.weight": (7, 12),
            "model.decoder.embed_positions.weight": (7, 12),
            "final_logits_bias": (1, 11),
            "lm_head.weight": (11, 12),
        }

    def test_a_description_rebuilds_the_model(self) -> None:
        model = make("seq2seq", n_layer=1, n_head=2, n_embd=8, vocab_size=11, norm="pre").eval()
        assert describe(model)["model_type"] == "seq2seq"
        twin = rebuild(describe(model)).eval()
        twin.load(model.state())
        assert (twin(*INPUTS).numpy() == model(*INPUTS).numpy()).all()

    def test_the_bias_of_the_head_does_not_decay(self) -> None:
        model = model_of()
        assert isinstance(model.final_logits_bias, Param) and not model.final_logits_bias.decay


class TestLoss:
    @pytest.mark.requirement("R-329")
    @every_variant
    def test_is_the_mean_over_the_targets_that_count(self, config: Seq2SeqConfig) -> None:
        model = float64(config).eval()
        logits = model(*INPUTS)
        assert logits.shape == (3, 5, 11)
        probabilities = ops.softmax(logits).numpy()
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-12)
        picked = [probabilities[b, t, TARGETS[b, t]] for b, t in np.argwhere(TARGETS != IGNORE)]
        assert model.loss(INPUTS, TARGETS).item() == pytest.approx(-np.log(picked).mean(), rel=1e-12)
        assert model.counts(INPUTS, TARGETS) == (len(picked),)
        v = vector("der-ce-batch-mean")  # the same form: mean over positions
        z = cr.Tensor(np.array(v.inputs["logits"]), requires_grad=True)
        loss = ops.cross_entropy(z, targets=np.array(v.inputs["labels"]))
        loss.backward()
        v.check({"loss": loss.item(), "grad": z.grad})

    @pytest.mark.parametrize("tied", [False, True])
    def test_starts_at_that_of_a_guess(self, tied: bool) -> None:
        model = model_of(replace(TINY, n_embd=48, vocab_size=100, tied=tied, scale_embedding=tied))
        ids = RNG.integers(100, size=(3, 20, 7))
        with cr.no_grad():
            loss = model.loss((ids[0], np.ones_like(ids[0], bool), ids[1]), ids[2]).item()
        assert loss == pytest.approx(math.log(100), abs=0.05)

    def test_labels_are_smoothed_in_training_only(self) -> None:
        smooth, plain = (float64(replace(TINY, label_smoothing=epsilon)) for epsilon in (0.2, 0.0))
        assert smooth.eval().loss(INPUTS, TARGETS).item() == plain.eval().loss(INPUTS, TARGETS).item()
        want = ops.cross_entropy(plain(*INPUTS), targets=TARGETS, ignore_index=IGNORE, label_smoothing=0.2)
        assert smooth.train().loss(INPUTS, TARGETS).item() == pytest.approx(want.item(), rel=1e-12)

    def test_both_conventions_of_smoothing_are_one_family(self) -> None:
        """ε over the V - 1 other tokens is ε V / (V - 1) over all V."""
        V = TINY.vocab_size
        model = float64(replace(TINY, label_smoothing=0.2 * V / (V - 1)))
        options: dict[str, Any] = {"ignore_index": IGNORE, "label_smoothing": 0.2, "exclude_true": True}
        want = ops.cross_entropy(model(*INPUTS), targets=TARGETS, **options)
        assert model.loss(INPUTS, TARGETS).item() == pytest.approx(want.item(), rel=1e-12)

    @pytest.mark.requirement("R-335")
    def test_dropout_in_training_only(self) -> None:
        assert Seq2SeqConfig().dropout == 0.1
        model = model_of(replace(TINY, dropout=0.1))
        assert (model(*INPUTS).numpy() != model(*INPUTS).numpy()).any()
        model.eval()
        assert (model(*INPUTS).numpy() == model(*INPUTS).numpy()).all()

    def test_dropout_is_where_the_documents_put_it(self) -> None:
        """On embeddings with positions, attention weights, MLP activations and what each sublayer adds."""
        model = model_of(replace(TINY, dropout=0.5, n_layer=1))
        with cr.capture("*.dropout", "*.attention") as seen:
            model.loss(INPUTS, TARGETS)
        masks = [name.partition("#")[0] for name in seen if name.partition("#")[0].endswith("dropout")]
        encoder, decoder = (f"model.{stack}.layers.0.dropout.dropout" for stack in ("encoder", "decoder"))
        assert (
            masks.count("model.encoder.dropout.dropout") == masks.count("model.decoder.dropout.dropout") == 1
        )
        assert (masks.count(encoder), masks.count(decoder)) == (3, 4)  # one of them inside the MLP
        weights = [call.saved[-2] for name, call in seen.items() if name.endswith("attention")]
        assert weights == [0.5] * 3


class TestTeacherForcing:
    @pytest.mark.requirement("R-371")
    def test_the_decoder_reads_the_true_targets(self) -> None:
        batches = toy_translation.batches()
        (_, _, inputs), targets = batches.batch(0)
        counted = targets[:, :-1] != IGNORE
        assert (inputs[:, 0] == START).all()
        assert (inputs[:, 1:][targets[:, 1:] != IGNORE] == targets[:, :-1][targets[:, 1:] != IGNORE]).all()
        assert counted.any()

    @pytest.mark.requirement("R-328")
    def test_the_decoder_is_one_token_behind(self) -> None:
        v = vector("004-12.2.7-decoder-shift")
        start, *words, end = v.inputs["tokens"]
        names = dict(enumerate((start, end, *words)))
        ids = {word: i for i, word in names.items()}
        pairs = PairBatches([[0]], [[ids[w] for w in words]], start=0, end=1, batch_size=1, block_size=8)
        (source, mask, inputs), targets = pairs.batch(0)
        v.check({"input": [names[i] for i in inputs[0]], "target": [names[i] for i in targets[0]]})
        model = model_of().eval()
        with cr.capture("*embedding") as seen:
            model(source, mask, inputs)
        assert len(seen) == 2  # the source and the target are looked up, positions are added to both
        first = model.model["decoder"].embed(inputs, model.table("decoder")).numpy()
        rows = model.model["shared"].weight.array[inputs]
        np.testing.assert_allclose(
            first - rows, cr.nn.sinusoidal(3, 12, layout="half")[None], rtol=0, atol=1e-6
        )


@every_variant
def test_native_is_the_reference(config: Seq2SeqConfig) -> None:
    model = model_of(config)
    losses, gradients = [], []
    for backend in ("native", "reference"):
        with cr.backend(backend):
            model.parameters().zero_grad()
            loss = model.loss(INPUTS, TARGETS)
            loss.backward()
        losses.append(loss.item())
        gradients.append(model.parameters().grad.copy())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-3, atol=1e-5)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    config = Seq2SeqConfig(n_layer=2, n_head=4, n_embd=64, block_size=32, vocab_size=97, tied=True)
    ids = RNG.integers(97, size=(3, 8, 32))
    mask = np.arange(32) < RNG.integers(5, 33, size=8)[:, None]
    results = []
    before = cr.get_threads()
    try:
        for threads in (1, 2, 3):
            cr.set_threads(threads)
            model = model_of(config)
            with cr.random.step(1):
                model.loss((ids[0], mask, ids[1]), ids[2]).backward()
            results.append(model.parameters().grad.copy())
    finally:
        cr.set_threads(before)
    assert all((grad == results[0]).all() for grad in results)


@pytest.mark.requirement("R-338")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_learns_to_translate(norm: str) -> None:
    """Every sentence exactly, those it never saw too."""
    model = model_of(Seq2SeqConfig(1, 2, 32, block_size=8, vocab_size=toy_translation.VOCAB, norm=norm))
    batches, schedule = toy_translation.batches(), cr.optim.linear(1e-2, 200, warmup=30)
    optimizer = cr.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.1)
    for step in range(200):
        optimizer.zero_grad()
        with cr.random.step(step):
            model.loss(*batches.batch(step)).backward()
        optimizer.step(schedule(step))
    written = translate(model, *pad(toy_translation.SOURCES), start=START, end=END)
    right = [ids.tolist() == target for ids, target in zip(written, toy_translation.TARGETS, strict=True)]
    assert all(right) and len(HELD_OUT) == 7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_layer": 0}, "n_layer is 0"),
        ({"n_hidden": 0}, "n_hidden is 0"),
        ({"source_vocab_size": -1}, "source_vocab_size is -1"),
        ({"n_embd": 10, "n_head": 4}, "n_embd is 10, n_head 4 .*must divide"),
        ({"norm": "both"}, "norm is 'both' .*post, pre"),
        ({"positions": "rotary"}, "positions is 'rotary' .*sinusoidal, learned"),
        ({"activation": "elu"}, "activation is 'elu'"),
        ({"dropout": 1.0}, r"dropout is 1\.0"),
        ({"label_smoothing": -0.1}, r"label_smoothing is -0\.1"),
        ({"scheduled_sampling": 1.0}, r"scheduled_sampling is 1\.0"),
        ({"norm_eps": 0.0}, r"norm_eps is 0\.0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Seq2SeqConfig(**settings)


@pytest.mark.parametrize(
    ("source", "mask", "target", "message"),
    [
        (SOURCE[0], None, TARGET, r"encoder ids \(6,\)"),
        (np.zeros((1, 8), int), None, TARGET, r"encoder ids \(1, 8\) .*block_size, 7"),
        (SOURCE, None, np.zeros((3, 0), int), r"decoder ids \(3, 0\)"),
        (SOURCE, MASK[:, :3], TARGET, r"source_mask \(3, 3\) bool, source \(3, 6\)"),
        (SOURCE, MASK.astype(int), TARGET, r"source_mask \(3, 6\) int64"),
    ],
)
def test_bad_inputs_are_refused(source: Array, mask: Array, target: Array, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        model_of()(source, mask, target)
