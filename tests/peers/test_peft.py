"""Adapters through Hugging Face's `peft` and back: the same logits, and LoRA against code of its own in PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.data import load
from chainrule.io import save_pretrained
from chainrule.models.tuning import LoRA, Method, Prefix, Prompt
from chainrule.runs import Run
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig
from tests.battery.checks import distance

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

TOLERANCE = 1e-5
SIZES: dict[str, dict[str, Any]] = {
    "gpt": {"n_layer": 2, "n_head": 3, "n_embd": 24, "block_size": 24},
    "llama": {"n_layer": 2, "n_head": 6, "n_kv_head": 3, "n_embd": 36, "n_hidden": 20, "block_size": 24},
    "neox": {"n_layer": 2, "n_head": 3, "n_embd": 48, "block_size": 24, "rotary": 0.5},
    "phi3": {
        "n_layer": 2,
        "n_head": 6,
        "n_kv_head": 3,
        "n_embd": 36,
        "n_hidden": 20,
        "block_size": 24,
        "tied": False,
    },
}
IDS = np.random.default_rng(3).integers(30, size=(2, 9))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bases as `transformers` has them, and a text."""
    made = tmp_path_factory.mktemp("peft")
    text = load("pydoc").text[:3000]
    (made / "text.txt").write_text(text, encoding="utf-8")
    tokenizer = CharTokenizer.train(text)
    for name, sizes in SIZES.items():
        cr.seed(1)
        more = {"variant": "phi3"} if name == "phi3" else {}
        family = "llama" if name == "phi3" else name
        model = cr.models.make(family, **sizes, **more, vocab_size=tokenizer.vocab_size)
        rng = np.random.default_rng(2)
        state = {n: a + 0.05 * rng.normal(size=a.shape).astype(np.float32) for n, a in model.state().items()}
        model.load(state)
        save_pretrained(model, tokenizer, made / name)
    return made


def tuned(folder: Path, base: str, name: str, method: Method) -> Any:
    """The model of a run that has learned a little, and its last checkpoint."""
    config = TrainConfig(
        max_steps=3, batch_size=2, lr=0.02, warmup=0, eval_every=3, save_every=3, eval_windows=2
    )
    family = "llama" if base == "phi3" else base
    run = Run.new(folder / name, folder / "text.txt", config, family, start=folder / base, method=method)
    run.train()
    return run.model.eval(), folder / name / "checkpoints" / "step_000003"


def theirs(folder: Path, base: str) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder / base).eval()


def logits(model: Any) -> Any:
    with torch.no_grad():
        return model(input_ids=torch.from_numpy(IDS), attention_mask=torch.ones(IDS.shape)).logits.numpy()


METHODS = [
    *((base, LoRA(rank=2, alpha=3.0)) for base in SIZES),
    *((base, LoRA(rank=2, targets=("q", "k", "o", "mlp"), dropout=0.2)) for base in SIZES),
    ("gpt", LoRA(rank=2, targets=("h.*.c_attn",), fused=True)),
    ("gpt", Prefix(length=3)),
    ("llama", Prefix(length=3)),
    ("gpt", Prompt(length=3)),
    ("llama", Prompt(length=3)),
    ("neox", Prompt(length=3)),
]


@pytest.mark.parametrize(
    ("base", "method"), METHODS, ids=[f"{b}-{m.name}-{i}" for i, (b, m) in enumerate(METHODS)]
)
def test_peft_loads_ours(folder: Path, base: str, method: Method, request: Any) -> None:
    ours, saved = tuned(folder, base, request.node.name, method)
    other = peft.PeftModel.from_pretrained(theirs(folder, base), saved).eval()
    found = logits(other)
    want = ours(IDS).numpy()
    assert distance(found[:, -IDS.shape[1] :], want) <= TOLERANCE
    assert distance(want, logits(theirs(folder, base))) > 1e-3  # or there would be nothing to compare
    again, _ = cr.load(saved)
    np.testing.assert_array_equal(again(IDS).numpy(), want)


@pytest.mark.parametrize("base", SIZES)
def test_rows_of_new_tokens_go_to_peft_and_come_back(folder: Path, tmp_path: Path, base: str) -> None:
    """With a base that was made longer, and one of PEFT whose tokens are among those that are there."""
    data = tmp_path / "talks.jsonl"
    talks = [
        [{"role": "user", "content": f"say {x}"}, {"role": "assistant", "content": x}] for x in "abcdefghi"
    ]
    data.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks), encoding="utf-8")
    family = "llama" if base == "phi3" else base
    settings = {"max_steps": 3, "batch_size": 2, "lr": 0.02, "warmup": 0, "save_every": 3, "eval_every": 3}
    run = Run.new(
        tmp_path / "run",
        data,
        TrainConfig(**settings),
        family,
        start=folder / base,
        task="instruction",
        method=LoRA(rank=2),
    )
    run.train()
    want = run.model.eval()(IDS).numpy()
    plain = theirs(folder, base)
    plain.resize_token_embeddings(run.tokenizer.vocab_size, mean_resizing=False)
    other = peft.PeftModel.from_pretrained(plain, tmp_path / "run" / "checkpoints" / "step_000003").eval()
    assert distance(logits(other), want) <= TOLERANCE
    new = torch.tensor([[*range(IDS.shape[1] - 4), *(run.method.tokens if run.method else ())]])
    with torch.no_grad():
        found = other(input_ids=new, attention_mask=torch.ones(new.shape)).logits.numpy()
    assert distance(found, run.model(new.numpy()).numpy()) <= TOLERANCE

    layers = {"gpt": "c_attn", "neox": "query_key_value", "llama": "q_proj", "phi3": "qkv_proj"}
    tokens = {"trainable_token_indices": [3, 7], "target_modules": [layers[base]], "init_lora_weights": False}
    changed = peft.get_peft_model(
        theirs(folder, base), peft.LoraConfig(task_type="CAUSAL_LM", **tokens)
    ).eval()
    with torch.no_grad():
        for name, param in changed.named_parameters():
            if "trainable_tokens_delta" in name:
                param += 0.1
    changed.save_pretrained(tmp_path / "theirs")
    model, _ = cr.load(tmp_path / "theirs")
    ids = np.array([[1, 3, 7, 2, 3]])
    with torch.no_grad():
        want = changed(input_ids=torch.from_numpy(ids)).logits.numpy()
        without = theirs(folder, base)(input_ids=torch.from_numpy(ids)).logits.numpy()
    assert distance(model(ids).numpy(), want) <= TOLERANCE < 1e-3 < distance(without, want)


THEIRS = [
    ("gpt", {"target_modules": ["c_attn"]}),
    ("gpt", {"target_modules": ["c_attn", "c_proj", "c_fc"], "use_rslora": True}),
    ("llama", {"target_modules": ["q_proj", "v_proj"]}),
    ("llama", {"target_modules": "all-linear"}),
    ("neox", {"target_modules": ["query_key_value", "dense"]}),
    ("phi3", {"target_modules": ["qkv_proj", "gate_up_proj", "down_proj"]}),
]


@pytest.mark.parametrize(("base", "options"), THEIRS)
def test_we_load_lora_of_peft(folder: Path, tmp_path: Path, base: str, options: dict[str, Any]) -> None:
    config = peft.LoraConfig(r=3, lora_alpha=5, init_lora_weights=False, task_type="CAUSAL_LM", **options)
    torch.manual_seed(0)
    other = peft.get_peft_model(theirs(folder, base), config).eval()
    other.save_pretrained(tmp_path / "adapter")
    want = logits(other)
    model, _ = cr.load(tmp_path / "adapter")
    assert distance(model(IDS).numpy(), want) <= TOLERANCE
    merged = cr.models.tuning.merged(model)
    assert distance(merged(IDS).numpy(), want) <= TOLERANCE
    assert distance(want, logits(theirs(folder, base))) > 1e-3


@pytest.mark.parametrize(
    ("base", "kind"),
    [("gpt", "PrefixTuningConfig"), ("llama", "PrefixTuningConfig"), ("gpt", "PromptTuningConfig")],
)
def test_we_load_prefixes_and_prompts_of_peft(folder: Path, tmp_path: Path, base: str, kind: str) -> None:
    config = getattr(peft, kind)(num_virtual_tokens=4, task_type="CAUSAL_LM")
    torch.manual_seed(0)
    other = peft.get_peft_model(theirs(folder, base), config).eval()
    other.save_pretrained(tmp_path / "adapter")
    model, _ = cr.load(tmp_path / "adapter")
    assert distance(model(IDS).numpy(), logits(other)[:, -IDS.shape[1] :]) <= TOLERANCE


def test_what_of_peft_is_not_here_is_refused(folder: Path, tmp_path: Path) -> None:
    for name, config, message in (
        ("dora", peft.LoraConfig(use_dora=True, target_modules=["q_proj"]), "use_dora is True"),
        ("ia3", peft.IA3Config(target_modules=["k_proj"], feedforward_modules=[]), "peft_type is 'IA3'"),
        (
            "ranks",
            peft.LoraConfig(target_modules=["q_proj"], rank_pattern={"0.self_attn.q_proj": 2}),
            "rank_pattern",
        ),
    ):
        peft.get_peft_model(theirs(folder, "llama"), config).save_pretrained(tmp_path / name)
        with pytest.raises(cr.FormatError, match=message):
            cr.load(tmp_path / name)


@pytest.mark.requirement("R-396", "R-400")
def test_lora_forward_gradient_and_merge_against_pytorch() -> None:
    """W x + b + (α/r) B A x, written out in PyTorch."""
    rng = np.random.default_rng(0)
    x, W, b, A, B = (rng.normal(size=s) for s in ((4, 6), (5, 6), (5,), (2, 6), (5, 2)))
    layer = cr.nn.LoRALinear(cr.nn.Linear(6, 5), 2, alpha=3.0).to(np.float64)
    layer.load({"base.weight": W, "base.bias": b, "lora_A": A, "lora_B": B})
    X, TW, Tb, TA, TB = (torch.tensor(each, requires_grad=True) for each in (x, W, b, A, B))
    y = X @ TW.T + Tb + (3.0 / 2) * (X @ TA.T) @ TB.T
    (y**2).sum().backward()
    inputs = cr.Tensor(x, requires_grad=True)
    out = layer(inputs)
    (out**2).sum().backward()
    assert distance(out.numpy(), y.detach().numpy()) <= 1e-12
    for ours, other in ((inputs, X), (layer.lora_A, TA), (layer.lora_B, TB)):
        assert ours.grad is not None and distance(ours.grad, other.grad.numpy()) <= 1e-12
    assert layer.base.weight.grad is None
    layer.merge()
    assert distance(layer.base.weight.array, (TW + 1.5 * TB @ TA).detach().numpy()) <= 1e-12
