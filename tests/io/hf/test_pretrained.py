"""A model and its tokenizer in a Hugging Face directory: there and back, and what is refused."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import ChainruleError, DataError, FormatError
from chainrule.io import load, load_pretrained, safetensors, save_pretrained, save_tokenizer
from chainrule.models import FAMILIES, GPT, GPTConfig, make
from chainrule.nn.positions import sinusoidal
from chainrule.text import BPETokenizer, CharTokenizer, Tokenizer, UnigramTokenizer, WordTokenizer
from tests.io.sentencepiece_files import UNIGRAM
from tests.io.sentencepiece_files import model as sentencepiece
from tests.models.tiny import SIZES, tiny

TEXT = "the lower lowest of the low newer widest — naïve 🙂\n" * 9
TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "char": lambda: CharTokenizer.train(TEXT),
    "bpe": lambda: BPETokenizer.train(TEXT, 270, special_tokens=["<|endoftext|>"]),
    "ranks": lambda: BPETokenizer(BPETokenizer.train(TEXT, 270).ids, None),
    "unigram": lambda: UnigramTokenizer.train(TEXT, 290),
    "word": lambda: WordTokenizer.train(TEXT),
    "a lone surrogate": lambda: CharTokenizer("ab\ud800"),
}


def gpt(vocab_size: int = 11, **more: Any) -> GPT:
    cr.seed(3)
    return GPT(GPTConfig(n_layer=2, n_head=3, n_embd=12, block_size=7, vocab_size=vocab_size, **more))


def same(one: cr.models.Model, other: cr.models.Model) -> bool:
    a, b = one.state(), other.state()
    return one.config == other.config and a.keys() == b.keys() and all((a[k] == b[k]).all() for k in a)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_comes_back_bit_for_bit(family: str, tmp_path: Path) -> None:
    model, tokenizer = tiny(family), CharTokenizer("abcdefghijk")
    save_pretrained(model, tokenizer, tmp_path / "x")
    back, read = cr.load(tmp_path / "x")
    assert same(back, model) and read == tokenizer and not back.training


ENCODER: dict[str, Any] = {
    "n_layer": 1, "n_head": 2, "n_embd": 8, "n_hidden": 12, "block_size": 7, "vocab_size": 11, "dropout": 0.2,
}  # fmt: skip
OTHERS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "bert": ("bert", {"norm": "post", "next_sentence": True}, "BertForPreTraining"),
    "bert without next sentence": ("bert", {"norm": "post"}, "BertForMaskedLM"),
    "classifier": ("bert-classifier", {"classes": 5}, "BertForSequenceClassification"),
    "tagger": ("bert-tagger", {"classes": 2}, "BertForTokenClassification"),
    "embedder": ("bert-embedder", {"temperature": 0.3}, "BertModel"),
    "marian": ("seq2seq", {"norm": "post", "tied": True, "scale_embedding": True}, "MarianMTModel"),
    "marian with biases": (
        "seq2seq",
        {"norm": "post", "bias": True, "label_smoothing": 0.1},
        "MarianMTModel",
    ),
    "two vocabularies": ("seq2seq", {"norm": "post", "source_vocab_size": 9}, "MarianMTModel"),
    "pegasus": ("seq2seq", {"norm": "pre", "activation": "silu"}, "PegasusForConditionalGeneration"),
    "bart": (
        "seq2seq",
        {"norm": "post", "positions": "learned", "embedding_norm": True, "target_start": "eos"},
        "BartForConditionalGeneration",
    ),
    "t5": ("t5", {"target_start": "pad", "head_size": 3}, "T5ForConditionalGeneration"),
    "t5 1.1": (
        "t5",
        {"gated": True, "activation": "gelu_tanh", "tied": False, "scale_output": False},
        "T5ForConditionalGeneration",
    ),
    "t5 with a gate of its own": ("t5", {"gated": True, "activation": "gelu"}, None),
    "roberta": ("bert", {"norm": "post", "variant": "roberta", "n_segments": 1}, "RobertaForMaskedLM"),
    "electra": ("bert-tagger", {"variant": "electra", "embedding_size": 4}, "ElectraForTokenClassification"),
    "mpnet": (
        "bert-classifier",
        {"variant": "mpnet", "n_segments": 0, "relative_buckets": 32},
        "MPNetForSequenceClassification",
    ),
    "distilbert": ("bert-embedder", {"variant": "distilbert", "n_segments": 0}, "DistilBertModel"),
    "bert, pre-norm": ("bert", {"norm": "pre"}, None),
    "bert with distances": ("bert-classifier", {"relative_buckets": 32}, None),
    "roberta with pairs": ("bert", {"variant": "roberta"}, None),
    "learned positions": ("seq2seq", {"positions": "learned"}, None),
    "another epsilon": ("seq2seq", {"norm_eps": 1e-6}, None),
    "pre-norm with two vocabularies": ("seq2seq", {"norm": "pre", "source_vocab_size": 9}, None),
}


@pytest.mark.parametrize("name", OTHERS)
def test_encoders_come_back_in_their_form_or_ours(name: str, tmp_path: Path) -> None:
    family, more, kind = OTHERS[name]
    cr.seed(2)
    model = make(family, **ENCODER | more)
    save_pretrained(model, CharTokenizer("abcdefghijk"), tmp_path / "x")
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    assert config.get("architectures") == (None if kind is None else [kind])
    back, _ = cr.load(tmp_path / "x")
    assert type(back) is type(model) and same(back, model)


@pytest.mark.parametrize(
    ("family", "values", "rule"),
    [
        ("bert", {"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        (
            "bert",
            {"architectures": ["BertForQuestionAnswering"]},
            r"architectures is .'BertForQuestionAns.*; AutoModel\.from_pretrained\(DIR\)\.save_pretrained\(NEW\)",
        ),
        ("bert", {"architectures": [[]]}, "architectures is"),
        ("bert", {"is_decoder": True}, "is_decoder is True"),
        ("seq2seq", {"decoder_layers": 2}, r"decoder_layers is 2 \(is not supported, must be 1\)"),
        ("seq2seq", {"d_model": None}, "d_model is missing"),
        ("seq2seq", {"activation_function": "tanh"}, "activation_function is 'tanh'"),
    ],
)
def test_an_encoder_that_ours_cannot_be_is_refused(
    family: str, values: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    save_pretrained(make(family, **ENCODER), None, tmp_path / "x")
    change_config(tmp_path / "x", **values)
    with pytest.raises(FormatError, match=rule) as error:
        load_pretrained(tmp_path / "x")
    assert "\n" not in str(error.value)


def test_a_file_that_does_not_say_where_its_norms_are_keeps_them(tmp_path: Path) -> None:
    """Before they came first, they came last."""
    cr.seed(2)
    model = make("seq2seq", **ENCODER | {"norm": "post", "positions": "learned"})
    save_pretrained(model, None, tmp_path / "x")
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    del config["norm"]
    (tmp_path / "x" / "config.json").write_text(json.dumps(config))
    back, _ = load_pretrained(tmp_path / "x")
    assert same(back, model)


def test_padding_decides_where_the_positions_of_a_roberta_begin(tmp_path: Path) -> None:
    sizes = ENCODER | {"variant": "roberta", "norm": "post", "n_segments": 1}
    tokenizer = CharTokenizer.train("abcdefgh", ("<pad>", "<s>", "</s>"))
    with pytest.raises(FormatError, match=r"pad_token_id is 8 in the tokenizer \(must be 1 for roberta"):
        save_pretrained(make("bert", **sizes), tokenizer, tmp_path / "x")


def test_copies_and_positions_in_a_file_must_agree(tmp_path: Path) -> None:
    save_pretrained(make("seq2seq", **ENCODER | {"norm": "post", "tied": True}), None, tmp_path / "x")
    path = tmp_path / "x" / "model.safetensors"
    arrays = dict(safetensors.read(path))
    table = sinusoidal(7, 8, layout="half").astype(np.float32)
    copies = {
        "lm_head.weight": arrays["model.shared.weight"],
        "model.encoder.embed_tokens.weight": arrays["model.shared.weight"],
        "model.decoder.embed_positions.weight": table,
    }
    path.write_bytes(safetensors.encode(arrays | copies))
    load_pretrained(tmp_path / "x")
    for name, value in copies.items():
        path.write_bytes(safetensors.encode(arrays | copies | {name: value + 1}))
        with pytest.raises(FormatError, match=name):
            load_pretrained(tmp_path / "x")


@pytest.mark.parametrize(
    "options",
    [
        {"bias": False},
        {"tied": False},
        {"dropout": 0.1, "norm_eps": 3e-7},
        {"activation": "gelu_tanh"},
        {"n_hidden": 7},
    ],
)
def test_every_option_of_gpt_comes_back(options: dict[str, Any], tmp_path: Path) -> None:
    save_pretrained(gpt(**options), None, tmp_path / "x")
    assert same(load_pretrained(tmp_path / "x")[0], gpt(**options))


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    model = gpt()
    save_pretrained(model, None, tmp_path / "x")
    cr.seed(3)
    load_pretrained(tmp_path / "x")
    assert same(GPT(model.config), model)  # the next model is what it would have been


@pytest.mark.parametrize("name", TOKENIZERS)
def test_every_tokenizer_comes_back(name: str, tmp_path: Path) -> None:
    tokenizer = TOKENIZERS[name]()
    save_pretrained(gpt(tokenizer.vocab_size), tokenizer, tmp_path / "x")
    assert load(tmp_path / "x")[1] == tokenizer


def test_what_other_programs_find(tmp_path: Path) -> None:
    tokenizer = TOKENIZERS["bpe"]()
    save_pretrained(gpt(tokenizer.vocab_size), tokenizer, tmp_path / "x")
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    assert config["architectures"] == ["GPT2LMHeadModel"] and config["model_type"] == "gpt2"
    assert (
        config["eos_token_id"] == tokenizer.special_tokens["<|endoftext|>"] and config["bos_token_id"] is None
    )
    arrays = safetensors.read(tmp_path / "x" / "model.safetensors")
    assert arrays["transformer.h.0.attn.c_attn.weight"].shape == (12, 36)  # (in, out)
    assert "lm_head.weight" not in arrays
    assert b'"format":"pt"' in (tmp_path / "x" / "model.safetensors").read_bytes()[:200]


def test_nothing_is_left_of_a_directory_that_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").write_text("")
    with pytest.raises(cr.ConfigError, match="exists already"):
        save_pretrained(gpt(), None, tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_weights_in_several_files(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    shard(tmp_path / "x")
    assert same(load_pretrained(tmp_path / "x")[0], gpt())


def shard(folder: Path) -> dict[str, str]:
    arrays = safetensors.read(folder / "model.safetensors")
    places = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(arrays)}
    for file in set(places.values()):
        part = {name: arrays[name] for name in arrays if places[name] == file}
        (folder / file).write_bytes(safetensors.encode(part))
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return places


def test_only_the_weights_of_a_directory_stand_for_it(tmp_path: Path) -> None:
    save_pretrained(gpt(), CharTokenizer("abcdefghijk"), tmp_path / "x")
    other = tmp_path / "x" / "other.safetensors"
    other.write_bytes(b"garbage")
    whole = safetensors.read(tmp_path / "x" / "model.safetensors")

    def refused(path: Path) -> None:
        with pytest.raises(FormatError, match=rf"{path.name}: not the weights of its directory") as error:
            load(path)
        assert "\n" not in str(error.value)

    assert same(load(tmp_path / "x" / "model.safetensors")[0], gpt())
    refused(other)
    shard(tmp_path / "x")
    assert same(load(tmp_path / "x" / "part-1.safetensors")[0], gpt())
    refused(other)
    (tmp_path / "x" / "model.safetensors").write_bytes(safetensors.encode(whole))
    refused(tmp_path / "x" / "part-1.safetensors")  # the whole file would be read instead


def test_an_index_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    places = shard(tmp_path / "x")
    first, second = list(places)[:2]
    shutil.copy(tmp_path / "x" / "part-0.safetensors", tmp_path / "secret.safetensors")
    for changed, rule in [
        (places | {first: "../secret.safetensors"}, "must be a .safetensors file beside it"),
        (places | {first: str(tmp_path / "secret.safetensors")}, "must be a .safetensors file beside it"),
        (places | {first: "part-0.bin"}, "must be a .safetensors file beside it"),
        (places | {"more": "part-2.safetensors"}, "cannot be read"),
        (places | {first: places[second]}, "which is not listed in the index"),
        (places | {"more": "part-1.safetensors"}, "'more' is in the index, but not in its file"),
        ([], "has no weight_map"),
        ({first: 3}, "has no weight_map"),
    ]:
        index = {"weight_map": changed}
        (tmp_path / "x" / "model.safetensors.index.json").write_text(json.dumps(index))
        with pytest.raises(ChainruleError, match=rule):
            load_pretrained(tmp_path / "x")


def test_a_name_twice_in_the_index_is_refused(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    first, place = next(iter(shard(tmp_path / "x").items()))
    index = tmp_path / "x" / "model.safetensors.index.json"
    index.write_text(f'{{"weight_map": {{"{first}": "{place}", "{first}": "{place}"}}}}')
    with pytest.raises(FormatError, match=rf"index.json: '{first}' occurs twice") as error:
        load_pretrained(tmp_path / "x")
    assert "\n" not in str(error.value)


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (
            {"model_type": "gtp2"},
            r"model_type is 'gtp2' \(is not known; must be one of gpt2, [^()]{1,60} and [0-9]+ others, see docs/",
        ),
        ({"model_type": None}, "model_type is None"),
        ({"n_layer": 3}, "ask for .* parameters"),
        ({"n_layer": 1}, r"does not fit GPT \(unknown h.1"),
        ({"n_layer": 10**15}, "n_layer is 1000000000000000"),
        (
            {"vocab_size": 2**30},
            "vocab_size is 1073741824 .must be at most .*, the number of values in the file",
        ),
        ({"n_layer": 2.0}, "n_layer is 2.0"),
        ({"n_layer": -1}, "n_layer is -1"),
        ({"n_layer": True}, "n_layer is True"),
        ({"layer_norm_epsilon": "small"}, "layer_norm_epsilon is 'small'"),
        ({"layer_norm_epsilon": 0}, "norm_eps is 0.0"),
        ({"n_head": 5}, "heads must divide the width"),
        ({"n_inner": 13}, r"c_fc.weight has shape \(13, 12\)"),
        ({"n_inner": 0}, "n_hidden is 0"),
        ({"n_inner": "wide"}, "n_inner is 'wide'"),
        ({"add_cross_attention": True}, "add_cross_attention is True"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings is 'no'"),
        ({"tie_word_embeddings": False}, "ask for .* parameters"),
        ({"chainrule": 3}, r"chainrule is 3 \(must be an object\)"),
        ({"chainrule": {"bias": False}}, "bias is not 0"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(values: dict[str, Any], rule: str, tmp_path: Path) -> None:
    model = gpt()
    model.load({name: value + 1 for name, value in model.state().items()})
    save_pretrained(model, None, tmp_path / "x")
    change_config(tmp_path / "x", **values)
    with pytest.raises(FormatError, match=rule) as error:
        load_pretrained(tmp_path / "x")
    assert "\n" not in str(error.value)


def test_many_empty_layers_are_refused(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    change_config(tmp_path / "x", n_embd=1, n_head=1, n_layer=10_000)
    content = safetensors.encode({"x": np.zeros(300_000, np.float32)})
    (tmp_path / "x" / "model.safetensors").write_bytes(content)
    with pytest.raises(FormatError, match=r"ask for 10000 layers, the weights are 1 arrays"):
        load_pretrained(tmp_path / "x")


def test_a_head_of_its_own_beside_tied_weights_is_refused(tmp_path: Path) -> None:
    save_pretrained(gpt(tied=False), None, tmp_path / "x")
    change_config(tmp_path / "x", tie_word_embeddings=True)
    with pytest.raises(FormatError, match=r"lm_head\.weight is not wte\.weight"):
        load_pretrained(tmp_path / "x")


def test_weights_of_older_files_are_read(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    path = tmp_path / "x" / "model.safetensors"
    arrays = {name.removeprefix("transformer."): array for name, array in safetensors.read(path).items()}
    arrays["h.0.attn.bias"] = np.ones((1, 1, 7, 7), np.uint8)  # the causal mask
    path.write_bytes(safetensors.encode(arrays))
    assert same(load_pretrained(tmp_path / "x")[0], gpt())


def test_our_own_form_of_a_config_is_read(tmp_path: Path) -> None:
    model = make("llama", **SIZES["llama"], vocab_size=11)
    save_pretrained(model, None, tmp_path / "x")
    (tmp_path / "x" / "config.json").write_text(json.dumps(cr.models.describe(model)))
    (tmp_path / "x" / "model.safetensors").write_bytes(safetensors.encode(model.state()))
    assert same(load_pretrained(tmp_path / "x")[0], model)


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    save_pretrained(gpt(), CharTokenizer("abcdefghijkl"), tmp_path / "x")
    with pytest.raises(FormatError, match="tokenizer of 12 tokens, model of 11"):
        load(tmp_path / "x")
    save_pretrained(gpt(), CharTokenizer("abcdefghij"), tmp_path / "y")  # a row that no token uses
    assert load(tmp_path / "y")[1].vocab_size == 10


def test_no_tokenizer_no_weights_no_directory(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    with pytest.raises(DataError, match="holds no tokenizer"):
        load(tmp_path / "x")
    (tmp_path / "x" / "model.safetensors").unlink()
    with pytest.raises(FormatError, match="holds no weights"):
        load_pretrained(tmp_path / "x")
    with pytest.raises(DataError, match=r"no such directory or file \(nothing is downloaded; give a"):
        load(tmp_path / "y")


def test_a_tokenizer_is_given_for_weights_without_one(tmp_path: Path) -> None:
    save_pretrained(gpt(), None, tmp_path / "x")
    words = CharTokenizer("abcdefghijk")
    cr.io.save_tokenizer(words, tmp_path / "words.json")
    for source in (tmp_path / "x", tmp_path / "x" / "model.safetensors"):
        model, tokenizer = load(source, tmp_path / "words.json")
        assert same(model, gpt()) and tokenizer == words
    cr.io.save_tokenizer(CharTokenizer("abcdefghijkl"), tmp_path / "more.json")
    with pytest.raises(FormatError, match="tokenizer of 12 tokens, model of 11"):
        load(tmp_path / "x", tmp_path / "more.json")
    with pytest.raises(DataError, match="holds no tokenizer"):
        load(tmp_path / "x" / "model.safetensors")


PIECES = [
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("</s>", 0.0, 3),
    *((f"\u2581{c}", -1.0, 1) for c in "abcdefgh"),
]


@pytest.mark.parametrize(
    ("kind", "about", "refused"),
    [
        ("xlm-roberta", {}, True),
        ("camembert", {}, True),
        ("roberta", {"tokenizer_class": "XLMRobertaTokenizerFast"}, True),
        ("roberta", {"tokenizer_class": "T5Tokenizer"}, False),
    ],
)
def test_a_sentencepiece_file_whose_ids_are_not_those_of_the_model_is_refused(
    kind: str, about: dict[str, Any], refused: bool, tmp_path: Path
) -> None:
    save_pretrained(make("bert-embedder", **ENCODER, variant="roberta", n_segments=1), None, tmp_path / "x")
    change_config(tmp_path / "x", model_type=kind, architectures=None)
    (tmp_path / "x" / "tokenizer_config.json").write_text(json.dumps(about))
    (tmp_path / "x" / "sentencepiece.bpe.model").write_bytes(sentencepiece(PIECES, kind=UNIGRAM))
    if not refused:
        assert load(tmp_path / "x")[1].vocab_size == len(PIECES)
        return
    with pytest.raises(
        FormatError, match=rf"bpe.model: its ids are not those of {kind}.*needs tokenizer.json"
    ):
        load(tmp_path / "x")
    cr.io.save_tokenizer(CharTokenizer("abcdefghijk"), tmp_path / "x" / "tokenizer.json")
    assert load(tmp_path / "x")[1].vocab_size == 11  # the file beside it is not read


def test_a_tokenizer_comes_back_without_the_end_that_other_programs_need(tmp_path: Path) -> None:
    """A run that is resumed with the file of its tokenizer finds the same one."""
    (tmp_path / "spiece.model").write_bytes(sentencepiece([("<pad>", 0.0, 3), *PIECES], kind=UNIGRAM))
    given = cr.io.load_tokenizer(tmp_path / "spiece.model")
    save_pretrained(make("t5", **ENCODER | {"vocab_size": 12}, target_start="pad"), given, tmp_path / "x")
    described = json.loads((tmp_path / "x" / "tokenizer.json").read_text())
    assert described["post_processor"]["special_tokens"].keys() == {"</s>"}
    assert load(tmp_path / "x")[1] == given


def test_a_tokenizer_that_is_not_read_is_refused_before_the_weights(tmp_path: Path) -> None:
    save_pretrained(gpt(), CharTokenizer("abcdefghijk"), tmp_path / "x")
    (tmp_path / "x" / "tokenizer.json").write_text('{"model": {"type": "WordLevel"}}')
    (tmp_path / "x" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(FormatError, match="WordLevel"):
        load(tmp_path / "x")


class Harm:
    """What a pickle can do."""

    ran = False

    def __reduce__(self) -> Any:
        return setattr, (Harm, "ran", True)


def test_files_that_are_something_else_than_their_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.whl", "w") as archive:
        archive.writestr("model.gguf", b"GGUF")
    with pytest.raises(FormatError, match=r"model.whl: a zip archive \(unpack it first"):
        load(tmp_path / "model.whl")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    with pytest.raises(FormatError, match="a pickle"):
        load(tmp_path / "model.zip")
    (tmp_path / "a.gguf").write_bytes(b"<html>")
    with pytest.raises(FormatError, match=r"a.gguf: begins with b'<htm' \(a GGUF file begins with b'GGUF'"):
        load(tmp_path / "a.gguf")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt"])
def test_pickles_are_refused_with_the_way_to_convert_them(name: str, tmp_path: Path) -> None:
    save_pretrained(gpt(), CharTokenizer("abcdefghijk"), tmp_path / "x")
    (tmp_path / "x" / "model.safetensors").unlink()
    path = tmp_path / "x" / name
    for content in (pickle.dumps(Harm()), b"PK\x03\x04 a zip file", pickle.dumps(Harm(), protocol=2)):
        path.write_bytes(content)
        for source in (path, tmp_path / "x"):
            with pytest.raises(
                FormatError, match=r"a pickle, .*save_pretrained\(NEW\) writes model.safetensors"
            ):
                load(source)
    assert not Harm.ran


def test_import_names_the_tokenizer_whose_padding_does_not_fit(tmp_path: Path) -> None:
    sizes = ENCODER | {"variant": "roberta", "norm": "post", "n_segments": 1}
    save_pretrained(make("bert", **sizes), None, tmp_path / "x")
    save_tokenizer(CharTokenizer.train("abcdefgh", ("<pad>", "<s>", "</s>")), tmp_path / "mine.json")
    with pytest.raises(FormatError, match=r"mine\.json: pad_token_id is 8 in the tokenizer") as error:
        cr.io.convert(tmp_path / "x", tmp_path / "y", tmp_path / "mine.json")
    assert "\n" not in str(error.value) and not (tmp_path / "y").exists()
