"""Models through Hugging Face's `transformers` and back: the same logits and the same greedy tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.generate import generate
from chainrule.io import load_pretrained, save_pretrained
from chainrule.models import GPT, GPTConfig, Llama, LlamaConfig, NeoX, NeoXConfig
from chainrule.nn import LinearScaling, Llama3Scaling
from tests.battery.checks import distance
from tests.models.tiny import ids_of

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.peers.random_models import DECODERS, LINEAR, LLAMA3, V, decoder  # noqa: E402

TOLERANCE = 1e-5

# Awkward sizes: 3 heads, a prime vocabulary, heads of their own.
GPTS = {
    "tied": GPTConfig(n_layer=2, n_head=3, n_embd=24, block_size=19, vocab_size=V),
    "untied": GPTConfig(
        n_layer=2, n_head=3, n_embd=24, block_size=19, vocab_size=V, tied=False, norm_eps=1e-3
    ),
    "approximate": GPTConfig(
        n_layer=1, n_head=1, n_embd=6, block_size=19, vocab_size=V, activation="gelu_tanh"
    ),
    "without biases": GPTConfig(n_layer=2, n_head=3, n_embd=24, block_size=19, vocab_size=V, bias=False),
    "narrow inside": GPTConfig(n_layer=2, n_head=3, n_embd=24, block_size=19, vocab_size=V, n_hidden=37),
    "relu": GPTConfig(n_layer=2, n_head=3, n_embd=24, block_size=19, vocab_size=V, activation="relu"),
}
LLAMAS = {
    "tied": LlamaConfig(3, 3, 3, 24, 40, 19, V, rope_base=500.0, norm_eps=1e-3),
    "untied": LlamaConfig(2, 6, 3, 36, 52, 19, V, tied=False),
    "wide heads": LlamaConfig(2, 6, 3, 36, 52, 19, V, head_dim=10),
    "biases": LlamaConfig(2, 6, 3, 36, 52, 19, V, attention_bias="all"),
    "some biases": LlamaConfig(2, 6, 3, 36, 52, 19, V, attention_bias="qkv", head_dim=10, tied=False),
    "linear": LlamaConfig(2, 6, 3, 36, 52, 300, V, rope_scaling=LinearScaling(2.5)),
    "llama3": LlamaConfig(
        2, 6, 3, 36, 52, 300, V, head_dim=16, rope_base=500.0, rope_scaling=Llama3Scaling(8.0, 1.0, 4.0, 40)
    ),
}
LLAMAS |= {
    "qwen3": LlamaConfig(2, 6, 3, 35, 52, 19, V, head_dim=8, variant="qwen3", tied=False),
    "qwen3, tied, with biases": LlamaConfig(2, 6, 3, 36, 52, 19, V, variant="qwen3", attention_bias="all"),
    "phi3": LlamaConfig(2, 6, 3, 36, 52, 19, V, variant="phi3", tied=False),
    "gemma": LlamaConfig(2, 6, 1, 36, 52, 19, V, head_dim=10, variant="gemma"),
    "smollm3": LlamaConfig(5, 6, 3, 36, 52, 19, V, variant="smollm3", rope_base=500.0),
}
NEOXES = {
    "a quarter": NeoXConfig(n_layer=2, n_head=3, n_embd=48, block_size=19, vocab_size=V),
    "serial": NeoXConfig(
        2, 3, 48, 19, V, n_hidden=37, rotary=0.5, rope_base=500.0, parallel=False, activation="gelu_tanh"
    ),
    "tied": NeoXConfig(2, 3, 24, 19, V, rotary=1.0, tied=True, norm_eps=1e-3),
}
OURS: dict[str, tuple[type[Any], Any]] = {
    **{f"gpt, {name}": (GPT, config) for name, config in GPTS.items()},
    **{f"llama, {name}": (Llama, config) for name, config in LLAMAS.items()},
    **{f"neox, {name}": (NeoX, config) for name, config in NEOXES.items()},
}


def scattered(model: Any) -> Any:
    """Weights far from their symmetric start, so that every one of them shows."""
    rng = np.random.default_rng(3)
    model.load({name: value + 0.2 * rng.normal(size=value.shape) for name, value in model.state().items()})
    return model.eval()


def agree(ours: Any, theirs: Any) -> None:
    ids = ids_of(ours.config, B=3, T=ours.config.block_size - 2)
    with torch.no_grad():
        want = theirs.eval()(torch.tensor(ids)).logits.numpy()
    far = ours.config.block_size > 100  # they compute the angles of positions in float32
    with cr.no_grad():
        assert distance(ours(ids).numpy(), want) <= (10 if far else 1) * TOLERANCE
    prompt = ids[0, :-13]  # of scaled positions, beyond the original ones
    text = torch.tensor(prompt[None])
    greedy = theirs.generate(
        text, attention_mask=torch.ones_like(text), max_new_tokens=12, do_sample=False, pad_token_id=0
    )
    assert generate(ours, prompt, 12, temperature=0).tolist() == greedy[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", OURS)
def test_they_load_ours(name: str, tmp_path: Path) -> None:
    kind, config = OURS[name]
    model = scattered(kind(config))
    save_pretrained(model, None, tmp_path / "model")
    theirs, report = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "model", output_loading_info=True
    )
    assert not any(report.values()), report
    agree(model, theirs)
    back, tokenizer = load_pretrained(tmp_path / "model")
    assert back.config == config and tokenizer is None
    assert all((back.state()[key] == value).all() for key, value in model.state().items())


@pytest.mark.parametrize("name", DECODERS)
def test_we_load_theirs(name: str, tmp_path: Path) -> None:
    kind, more = DECODERS[name]
    theirs = decoder(kind, **more)
    theirs.save_pretrained(tmp_path / "model")
    ours, tokenizer = load_pretrained(tmp_path / "model")
    assert tokenizer is None
    agree(ours, theirs)
    save_pretrained(ours, None, tmp_path / "back")
    agree(ours, transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back"))


@pytest.mark.parametrize("kind", ["mistral", "phi3"])
def test_a_sliding_window_ends_the_context(kind: str, tmp_path: Path) -> None:
    """Up to its length it changes nothing."""
    theirs = decoder(kind, sliding_window=19, max_position_embeddings=40)
    theirs.save_pretrained(tmp_path / "model")
    with pytest.warns(cr.errors.ChainruleWarning, match="the context is 19 tokens here, not 40"):
        ours, _ = load_pretrained(tmp_path / "model")
    assert ours.config.block_size == 19
    agree(ours, theirs)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_we_load_half_precision_in_several_files(dtype: str, tmp_path: Path) -> None:
    theirs = decoder("llama").to(getattr(torch, dtype))
    theirs.save_pretrained(tmp_path / "model", max_shard_size="20KB")
    assert len(list((tmp_path / "model").glob("*.safetensors"))) > 1
    ours, _ = load_pretrained(tmp_path / "model")
    agree(ours, transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype="float32"))


@pytest.mark.parametrize(
    ("kind", "more", "rule"),
    [
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ("gpt2", {"activation_function": "silu"}, "activation_function is 'silu'"),
        ("smollm3", {"no_rope_layer_interval": 2}, "no_rope_layer_interval is 2"),
        ("gpt_neox", {"attention_bias": False}, "attention_bias is False"),
        ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before is False"),
        ("opt", {"word_embed_proj_dim": 12}, "word_embed_proj_dim is 12"),
        ("llama", {"mlp_bias": True}, "mlp_bias is True"),
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window is True"),
        ("llama", {"rope_parameters": LLAMA3 | {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ("llama", {"rope_parameters": LINEAR | {"rope_type": "dynamic"}}, "rope_type is 'dynamic'"),
    ],
)  # fmt: skip
def test_what_our_models_cannot_do_is_refused(kind: str, more: Any, rule: str, tmp_path: Path) -> None:
    decoder(kind, **more).save_pretrained(tmp_path / "model")
    with pytest.raises(cr.FormatError, match=rule) as error:
        load_pretrained(tmp_path / "model")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("tokenizer", ["char", "bpe"])
@pytest.mark.parametrize("family", ["gpt", "llama"])
def test_a_checkpoint_of_a_run_is_their_directory(family: str, tokenizer: str, tmp_path: Path) -> None:
    text = (cr.data.load("pydoc").text[:8000] + " naïve 🙂\n") * 2
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    made = (
        cr.text.BPETokenizer.train(text, 300, special_tokens=["<|endoftext|>"])
        if tokenizer == "bpe"
        else None
    )
    config = cr.train.TrainConfig(max_steps=3, batch_size=2, warmup=1)
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 16, "block_size": 24}
    run = cr.runs.Run.new(
        tmp_path / "run", cr.data.load(tmp_path / "text.txt"), config, family, made, **sizes
    )
    run.train()
    folder = tmp_path / "run" / "checkpoints" / "step_000003"
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    agree(run.model.eval(), theirs)
    words = transformers.AutoTokenizer.from_pretrained(folder)
    sample = text[300:400] + text[-30:]
    ids = run.tokenizer.encode(sample).tolist()
    assert words(sample)["input_ids"] == ids and words.decode(ids) == sample
    model, same = cr.load(folder)
    assert same == run.tokenizer and model.config == run.model.config


def test_pieces_are_cut_as_their_library_cuts_them(tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    text = cr.data.load("pydoc").text[:60_000]
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text.txt"), model_prefix=str(tmp_path / "spm"), vocab_size=600, model_type="bpe",
        byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        minloglevel=2,
    )  # fmt: skip
    spm = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    pieces = [spm.id_to_piece(i) for i in range(spm.vocab_size())]
    scores = [spm.get_score(i) for i in range(spm.vocab_size())]
    vocabulary = cr.text.Vocabulary(pieces, ["<unk>", "<s>", "</s>"])
    ours = cr.text.SentencePieceBPETokenizer.from_scores(vocabulary, scores, start="<s>")
    config = LlamaConfig(1, 2, 1, 8, 8, 16, ours.vocab_size)
    save_pretrained(Llama(config), ours, tmp_path / "model")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    for sample in (text[1000:3000], "naïve 🙂  two  spaces\n\n end ", "x", " "):
        ids = ours.encode(sample).tolist()
        assert ids[1:] == spm.encode(sample) and ids == theirs(sample)["input_ids"]
        assert ours.decode(ids) == sample == spm.decode(ids[1:])
    assert load_pretrained(tmp_path / "model")[1] == ours
