"""Variants of BERT, BART and T5 against `transformers`, with random weights, both ways; vectors of texts by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer
from tokenizers.processors import RobertaProcessing

import chainrule as cr
from chainrule.generate import Translation
from chainrule.io import load_pretrained, save_pretrained
from chainrule.models import BERTEmbedder, EncoderDecoder, make
from chainrule.models.bert.heads import body_of
from chainrule.nn.positions import distance_buckets
from chainrule.text import BPETokenizer, Marks
from tests.battery.checks import distance

V, TOLERANCE = 101, 1e-5
RNG = np.random.default_rng(0)
MASK = np.arange(9) < np.array([9, 5, 7])[:, None]
IDS = np.where(MASK, RNG.integers(3, V, size=(3, 9)), 1)  # 1 is padding, by which RoBERTa counts positions
SIZES: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "hidden_size": 24,
    "intermediate_size": 40,
    "max_position_embeddings": 21,
    "vocab_size": V,
}
DISTIL = {
    "n_layers": 2,
    "n_heads": 3,
    "dim": 24,
    "hidden_dim": 40,
    "max_position_embeddings": 21,
    "vocab_size": V,
}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "roberta": ("Roberta", SIZES | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "distilbert": ("DistilBert", DISTIL),
    "electra": ("Electra", SIZES | {"embedding_size": 16}),
    "electra, one width": ("Electra", SIZES | {"embedding_size": 24}),
    "mpnet": ("MPNet", SIZES),
}
HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")


def random_model(name: str, head: str) -> Any:
    kind, sizes = CONFIGS[name]
    labels = {"num_labels": 5} if "Classification" in head else {}
    config = getattr(transformers, f"{kind}Config")(**sizes, **labels, pad_token_id=1)
    torch.manual_seed(3)
    model = getattr(transformers, f"{kind}{head}")(config).eval()
    return shaken(model)


def shaken(model: Any) -> Any:
    """Weights larger than new ones, so that every part matters; rows of padding stay 0."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.2 * torch.randn_like(parameter)
            parameter += noise if parameter.ndim < 2 or "position" not in name else 0.5 * noise
    return model


def their_output(model: Any) -> np.ndarray:
    with torch.no_grad():
        found = model.eval()(input_ids=torch.tensor(IDS), attention_mask=torch.tensor(MASK.astype(int)))
    logits = getattr(found, "logits", None)
    return (found.last_hidden_state if logits is None else logits).numpy()


def our_output(model: Any) -> np.ndarray:
    body_alone = isinstance(model, cr.models.BERT | BERTEmbedder)
    with cr.no_grad():
        found: np.ndarray = (body_of(model) if body_alone else model)(IDS, MASK).numpy()
    return found


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    rows = MASK if ours.ndim == 3 else slice(None)
    return distance(ours[rows], theirs[rows]) <= TOLERANCE


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", CONFIGS)
def test_we_load_their_variant_and_they_ours(name: str, head: str, tmp_path: Path) -> None:
    theirs = random_model(name, head)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    want = their_output(theirs)
    assert close(our_output(ours), want)
    save_pretrained(ours, None, tmp_path / "ours")
    kind = type(theirs)
    back, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    assert close(our_output(ours), their_output(back))
    again, _ = load_pretrained(tmp_path / "ours")
    assert again.config == ours.config
    assert all((again.state()[key] == value).all() for key, value in ours.state().items())


@pytest.mark.parametrize("kind", ["XLMRoberta", "Camembert"])
def test_a_roberta_by_another_name(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    config = getattr(transformers, f"{kind}Config")(**SIZES, type_vocab_size=1, pad_token_id=1)
    theirs = shaken(getattr(transformers, f"{kind}ForMaskedLM")(config).eval())
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    assert ours.config.variant == "roberta" and close(our_output(ours), their_output(theirs))


def test_the_body_of_an_electra_discriminator(tmp_path: Path) -> None:
    theirs = random_model("electra", "ForPreTraining")
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    assert isinstance(ours, BERTEmbedder)
    with torch.no_grad():
        hidden = theirs.electra(torch.tensor(IDS), attention_mask=torch.tensor(MASK.astype(int)))
    assert close(our_output(ours), hidden.last_hidden_state.numpy())


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (32, 200), (8, 20), (64, 512)])
def test_buckets_of_distances(buckets: int, farthest: int, bidirectional: bool) -> None:
    distances = np.arange(-700, 701)
    theirs = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    want = theirs(torch.tensor(distances), bidirectional, buckets, farthest).numpy()
    got = distance_buckets(distances, buckets, farthest=farthest, causal=not bidirectional)
    assert got.tolist() == want.tolist()


# -- encoder-decoders --------------------------------------------------------------------------------------------

SOURCE = np.where(MASK, RNG.integers(3, V, size=(3, 9)), 1)
TARGET = RNG.integers(3, V, size=(3, 7))
BOTH = {
    f"{side}_{n}": x
    for side in ("encoder", "decoder")
    for n, x in (("layers", 2), ("attention_heads", 3), ("ffn_dim", 40))
}
BART: dict[str, Any] = BOTH | {
    "d_model": 24,
    "max_position_embeddings": 19,
    "vocab_size": V,
    "forced_eos_token_id": None,
}
T5_SIZES: dict[str, Any] = {
    "num_layers": 2, "num_heads": 3, "d_model": 24, "d_kv": 5, "d_ff": 40, "vocab_size": V, "n_positions": 19,
    "decoder_start_token_id": 0, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
}  # fmt: skip
PAIRS: dict[str, tuple[str, dict[str, Any]]] = {
    "bart": ("Bart", BART),
    "bart, scaled": ("Bart", BART | {"scale_embedding": True, "activation_function": "relu"}),
    "t5": ("T5", T5_SIZES),
    "t5, gated": ("T5", T5_SIZES | {"feed_forward_proj": "gated-gelu"}),
    "t5, tied and not scaled": ("T5", T5_SIZES | {"tie_word_embeddings": False}),
    "t5, untied": ("T5", T5_SIZES | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
}


def their_logits(model: Any) -> np.ndarray:
    source, mask = torch.tensor(SOURCE), torch.tensor(MASK.astype(int))
    with torch.no_grad():
        found: np.ndarray = model(
            input_ids=source, attention_mask=mask, decoder_input_ids=torch.tensor(TARGET)
        ).logits.numpy()
    return found


def agree(ours: EncoderDecoder, theirs: Any) -> None:
    with cr.no_grad():
        assert distance(ours(SOURCE, MASK, TARGET).numpy(), their_logits(theirs)) <= TOLERANCE
    greedy = theirs.generate(
        input_ids=torch.tensor(SOURCE), attention_mask=torch.tensor(MASK.astype(int)), max_new_tokens=8,
        do_sample=False, num_beams=1, decoder_start_token_id=2, pad_token_id=1, eos_token_id=None,
    )  # fmt: skip
    translation = Translation(ours, SOURCE, MASK)
    tokens, rows = np.full(3, 2), []
    for _ in range(8):
        tokens = translation.read(tokens).argmax(axis=-1)
        rows.append(tokens)
    assert np.stack(rows, axis=1).tolist() == greedy[:, 1:].tolist()


@pytest.mark.parametrize("name", PAIRS)
def test_encoder_decoders_both_ways(name: str, tmp_path: Path) -> None:
    kind, sizes = PAIRS[name]
    torch.manual_seed(4)
    config = getattr(transformers, f"{kind}Config")(**sizes)
    theirs = shaken(getattr(transformers, f"{kind}ForConditionalGeneration")(config).eval())
    if "untied" in name:
        theirs.lm_head.weight = torch.nn.Parameter(theirs.lm_head.weight.detach() + 0.1)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    assert isinstance(ours, EncoderDecoder) and ours.config.target_start == (
        "eos" if kind == "Bart" else "pad"
    )
    agree(ours, theirs)
    save_pretrained(ours, None, tmp_path / "ours")
    back, report = type(theirs).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    agree(ours, back.eval())
    again, _ = load_pretrained(tmp_path / "ours")
    assert again.config == ours.config
    assert all((again.state()[key] == value).all() for key, value in ours.state().items())


@pytest.mark.parametrize("family", ["t5", "seq2seq"])
def test_a_source_is_read_with_its_end(family: str, tmp_path: Path) -> None:
    words = BPETokenizer.train("the cat sat on the mat", 263, special_tokens=["<s>", "</s>", "<pad>"])
    sizes = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 16, "vocab_size": words.vocab_size}
    save_pretrained(make(family, **sizes, target_start="pad"), words, tmp_path / "ours")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    want = Marks.of(words.special_ids, "pad").around(words.encode("the cat"), 16)
    assert theirs("the cat")["input_ids"] == want.tolist()


def test_mt5_is_a_t5(tmp_path: Path) -> None:
    torch.manual_seed(4)
    sizes = T5_SIZES | {"feed_forward_proj": "gated-gelu"}
    theirs = shaken(transformers.MT5ForConditionalGeneration(transformers.MT5Config(**sizes)).eval())
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    agree(ours, theirs)  # type: ignore[arg-type]


def test_gradients_of_t5(tmp_path: Path) -> None:
    """Of all weights, the biases by distance among them."""
    torch.manual_seed(4)
    theirs = shaken(
        transformers.T5ForConditionalGeneration(transformers.T5Config(**T5_SIZES, dropout_rate=0.0))
    )
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    targets = RNG.integers(3, V, size=TARGET.shape)
    ours.train()
    ours.parameters().zero_grad()
    ours.loss((SOURCE, MASK, TARGET), targets).backward()
    loss = theirs.train()(
        input_ids=torch.tensor(SOURCE), attention_mask=torch.tensor(MASK.astype(int)),
        decoder_input_ids=torch.tensor(TARGET), labels=torch.tensor(targets),
    ).loss  # fmt: skip
    loss.backward()
    from chainrule.io.hf import t5

    state = {name: param.grad for name, param in ours.named_parameters()}
    got = t5.write_weights(state, ours.config)
    for name, parameter in theirs.named_parameters():
        assert distance(got[name], parameter.grad.numpy()) <= 1e-4, name


# -- sentence-transformers ---------------------------------------------------------------------------------------

TEXTS = [
    "the cat sat on the mat.",
    "a dog ran",
    "",
    "the the the the the the the the the the the the the the",
]


def sentence_folder(folder: Path, pooling: str, normalize: bool) -> tuple[Any, Any]:
    """A directory as sentence-transformers writes it, and its parts by `transformers`."""
    text = "the cat sat on the mat. the dog ran to the door. " * 9
    tokenizer = cr.text.WordPieceTokenizer.train(text, 60)
    cr.seed(0)
    sizes = {"n_layer": 2, "n_head": 3, "n_embd": 24, "n_hidden": 40, "block_size": 20}
    body = cr.models.BERT(cr.models.BERTConfig(**sizes, vocab_size=tokenizer.vocab_size))
    for _, param in body.named_parameters():
        param.data += 0.2 * RNG.normal(size=param.shape).astype(np.float32)
    save_pretrained(body, tokenizer, folder)
    kinds = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": f"{i}_{kind}" if i else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for i, kind in enumerate(kinds)
    ]
    flags = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    on = {f"pooling_mode_{flag}": name == pooling for name, flag in flags.items()}
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 24} | on))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 9, "do_lower_case": False})
    )
    return (
        transformers.AutoModel.from_pretrained(folder).eval(),
        transformers.AutoTokenizer.from_pretrained(folder),
    )


def by_hand(model: Any, tokenizer: Any, pooling: str, normalize: bool) -> np.ndarray:
    """As the documentation of sentence-transformers computes it from `transformers`."""
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=9, return_tensors="pt")
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).float()
    if pooling == "cls":
        vectors = hidden[:, 0]
    elif pooling == "max":
        vectors = hidden.masked_fill(mask == 0, -1e9).max(1).values
    else:
        vectors = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    return (torch.nn.functional.normalize(vectors, dim=1) if normalize else vectors).numpy()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_vectors_of_a_sentence_transformers_directory(pooling: str, normalize: bool, tmp_path: Path) -> None:
    want = by_hand(*sentence_folder(tmp_path / "x", pooling, normalize), pooling, normalize)
    model, tokenizer = cr.load(tmp_path / "x")
    assert isinstance(model, BERTEmbedder) and model.config.max_length == 9
    assert distance(cr.generate.embed(model, tokenizer, TEXTS, batch_size=3), want) <= TOLERANCE
    save_pretrained(model, tokenizer, tmp_path / "y")
    back, _ = cr.load(tmp_path / "y")
    assert back.config == model.config
    (tmp_path / "y" / "config.json").write_text((tmp_path / "x" / "config.json").read_text())
    other, _ = cr.load(tmp_path / "y")  # by the files alone, without our section
    assert other.config == replace(model.config, temperature=0.05)


def test_a_roberta_with_its_tokenizer(tmp_path: Path) -> None:
    """Byte-level BPE between <s> and </s>: vectors, guesses at masks, and the directory that is written."""
    text = "the cat sat on the mat. the dog ran to the door of the house. " * 50
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learned = ByteLevelBPETokenizer()
    learned.train_from_iterator([text], vocab_size=300, special_tokens=special)
    learned._tokenizer.post_processor = RobertaProcessing(("</s>", 2), ("<s>", 0))
    roles = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"}
    roles["mask"] = "<mask>"
    names = {f"{role}_token": name for role, name in roles.items()}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=learned._tokenizer, **names)
    sizes = SIZES | {"vocab_size": len(tokenizer), "type_vocab_size": 1}
    torch.manual_seed(5)
    theirs = shaken(transformers.RobertaForMaskedLM(transformers.RobertaConfig(**sizes)).eval())
    for part in (theirs, tokenizer):
        part.save_pretrained(tmp_path / "theirs")
    ours, ids_of = cr.load(tmp_path / "theirs")
    texts = ["the cat sat", "the dog ran to the door"]
    batch = tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        hidden = theirs.roberta(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).float()
    want = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    assert distance(cr.generate.embed(ours, ids_of, texts, normalize=False), want) <= TOLERANCE
    guess = transformers.pipeline("fill-mask", model=theirs, tokenizer=tokenizer, top_k=4)
    (filled,) = cr.generate.fill_masks(ours, ids_of, ["the [MASK] sat on"], k=4)  # type: ignore[arg-type]
    assert [each.id for each in filled.gaps[0]] == [each["token"] for each in guess("the<mask> sat on")]
    save_pretrained(ours, ids_of, tmp_path / "ours")
    back = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert back(texts[0])["input_ids"] == tokenizer(texts[0])["input_ids"]
    assert {role: getattr(back, f"{role}_token") for role in roles} == roles
    assert transformers.AutoModel.from_pretrained(tmp_path / "ours").config.pad_token_id == 1


def test_a_head_on_a_body(tmp_path: Path) -> None:
    """A new head leaves the body as it is."""
    theirs = random_model("mpnet", "Model")
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    for kind, sizes in (
        (cr.models.BERTClassifier, {"classes": 3}),
        (cr.models.BERTPretraining, {}),
        (BERTEmbedder, {}),
    ):
        model = cr.models.fine_tune(ours, kind, **sizes).eval()
        with cr.no_grad():
            hidden = body_of(model)(IDS, MASK).numpy()  # type: ignore[misc]
        assert close(hidden, their_output(theirs)), kind


def test_a_new_variant_is_like_theirs_when_it_learns() -> None:
    """Dropout aside, a step changes what it should: every family of BERT learns with distances too."""
    cr.seed(0)
    model = make(
        "bert-classifier",
        n_layer=1,
        n_head=2,
        n_embd=16,
        vocab_size=V,
        block_size=9,
        relative_buckets=8,
        classes=2,
    )
    model.parameters().zero_grad()
    model.loss((IDS, MASK, None), np.array([0, 1, 0])).backward()
    assert model.bert.encoder.relative_attention_bias.weight.grad.any()
