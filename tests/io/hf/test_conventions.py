"""Special tokens, chat template and generation defaults in the files of a Hugging Face directory, both ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.errors import ChainruleWarning, FormatError
from chainrule.io import load, save_pretrained
from chainrule.runs import Run
from chainrule.text import BPETokenizer, Conventions, UnigramTokenizer, Vocabulary
from chainrule.train import TrainConfig

FULL = Conventions(
    bos=256,
    eos=(258, 257),
    pad=259,
    unk=260,
    add_bos=True,
    chat_template="{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
    generation={
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.9,
        "repetition_penalty": 1.1,
        "max_new_tokens": 64,
    },
)


def tokenizer(conventions: Conventions | None = None) -> BPETokenizer:
    names = ["<s>", "</s>", "<|im_end|>", "<pad>", "<unk>"]
    made = BPETokenizer.train("the lower lowest of the low", 261, special_tokens=names)
    if conventions:
        made.conventions = conventions
    return made


def model() -> cr.models.GPT:
    cr.seed(0)
    return cr.models.GPT(cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=8, block_size=16, vocab_size=261))


def directory(folder: Path, **files: Any) -> Path:
    """A model whose small files are `files`: by name, without .json; others are as they are written, None for none."""
    save_pretrained(model(), tokenizer(), folder)
    files = {"tokenizer_config": None, "generation_config": None} | files
    for name, value in files.items():
        path = folder / f"{name}.json"
        if value is None:
            path.unlink()
        else:
            old = json.loads(path.read_text()) if name in ("config", "tokenizer") else {}
            path.write_text(json.dumps(old | value))
    return folder


def conventions(folder: Path) -> Conventions:
    return load(folder)[1].conventions


@pytest.mark.parametrize(
    "given", [FULL, Conventions(), Conventions(eos=(257,), generation={"temperature": 0.0})]
)
def test_what_is_written_comes_back(given: Conventions, tmp_path: Path) -> None:
    save_pretrained(model(), tokenizer(given), tmp_path / "x")
    assert conventions(tmp_path / "x") == given


def test_files_of_other_programs_are_read(tmp_path: Path) -> None:
    about = {
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "add_bos_token": False,
        "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}],
    }
    generation = {
        "eos_token_id": [257, 258],
        "pad_token_id": 259,
        "do_sample": True,
        "top_k": 0,
        "min_p": None,
    }
    folder = directory(tmp_path / "x", tokenizer_config=about, generation_config=generation)
    want = Conventions(bos=256, eos=(257, 258), pad=259, chat_template="d", generation={"temperature": 1.0})
    assert conventions(folder) == want
    (folder / "chat_template.jinja").write_text("newer")
    assert conventions(folder).chat_template == "newer"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"generation_config": {"eos_token_id": [258, 999999]}},
            "eos_token_id is 999999, the tokenizer has 261",
        ),
        ({"tokenizer_config": {"eos_token": "<|nope|>"}}, r"eos_token is '<\|nope\|>', which is no special"),
    ],
)
def test_an_end_that_the_tokenizer_does_not_have_is_warned_of(
    files: dict[str, Any], said: str, tmp_path: Path
) -> None:
    folder = directory(tmp_path / "x", **files)
    with pytest.warns(ChainruleWarning, match=said) as warned:
        conventions(folder)
    assert len(warned) == 1 and str(folder) in str(warned[0].message)


def test_older_directories_are_read(tmp_path: Path) -> None:
    """Tokens in special_tokens_map.json, or as ids in config.json; -1 for none."""
    ids = {"bos_token_id": 256, "eos_token_id": 258, "pad_token_id": -1}
    folder = directory(tmp_path / "x", config=ids)
    assert conventions(folder) == Conventions(bos=256, eos=(258,))
    (folder / "special_tokens_map.json").write_text(json.dumps({"eos_token": "</s>", "unk_token": "<unk>"}))
    assert conventions(folder) == Conventions(bos=256, eos=(257, 258), unk=260)
    (folder / "tokenizer_config.json").write_text('{"bos_token": null}')  # as in Qwen: it begins with nothing
    assert conventions(folder).bos is None


def test_the_post_processor_puts_bos_first(tmp_path: Path) -> None:
    """As in Llama 3, whose tokenizer_config.json says nothing about it."""
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}]}
    steps = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}
    about = {"bos_token": "<s>"}
    one = directory(tmp_path / "one", tokenizer={"post_processor": steps}, tokenizer_config=about)
    assert conventions(one).add_bos
    said = about | {"add_bos_token": False}
    other = directory(tmp_path / "other", tokenizer={"post_processor": steps}, tokenizer_config=said)
    assert not conventions(other).add_bos


def test_a_model_that_is_not_sampled_has_temperature_0(tmp_path: Path) -> None:
    files = {"do_sample": False, "temperature": 0.7}
    assert conventions(directory(tmp_path / "x", generation_config=files)).generation == {"temperature": 0.0}


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"generation_config": {"temperature": "hot"}}, "temperature is 'hot' (must be a number)"),
        ({"generation_config": {"top_k": 1.5}}, "top_k is 1.5 (must be a natural number"),
        ({"generation_config": {"eos_token_id": ["</s>"]}}, "eos_token_id is ['</s>'] (must be an id"),
        ({"tokenizer_config": {"chat_template": 3}}, "chat_template is an int (must be a text)"),
    ],
)
def test_wrong_values_are_refused_in_one_line(files: dict[str, Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        load(directory(tmp_path / "x", **files))
    assert rule in str(error.value) and str(tmp_path / "x") in str(error.value)


SIZES: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 16, "vocab_size": 261}


@pytest.mark.parametrize("family", ["t5", "seq2seq"])
def test_a_source_of_a_model_whose_targets_begin_with_padding_ends_with_eos(
    family: str, tmp_path: Path
) -> None:
    """As `text.Marks` reads it."""
    for start, ends in (("pad", True), ("bos", False)):
        made = cr.models.make(family, **SIZES, target_start=start)
        save_pretrained(made, tokenizer(), tmp_path / start)
        processor = json.loads((tmp_path / start / "tokenizer.json").read_text())["post_processor"]
        assert (processor is not None) == ends
        assert load(tmp_path / start)[1] == tokenizer()
        if ends:
            first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
            end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
            assert processor["type"] == "TemplateProcessing" and processor["single"] == [first, end]
            assert processor["pair"] == [first, end, second, end]
            assert processor["special_tokens"]["</s>"]["ids"] == [257]


def test_a_roberta_names_its_tokens_as_transformers_does(tmp_path: Path) -> None:
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = Vocabulary([*names, *"abcdefgh"], {name: id for id, name in enumerate(names)})
    words = UnigramTokenizer(vocabulary, [0.0] * 13)
    made = cr.models.make(
        "bert", **SIZES | {"vocab_size": 13}, variant="roberta", next_sentence=False, n_segments=1
    )
    save_pretrained(made, words, tmp_path / "x")
    about = json.loads((tmp_path / "x" / "tokenizer_config.json").read_text())
    want = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "mask": "<mask>", "pad": "<pad>"}
    assert want.items() <= {name.removesuffix("_token"): value for name, value in about.items()}.items()


def test_a_run_keeps_what_its_initial_model_expects(tmp_path: Path) -> None:
    save_pretrained(model(), tokenizer(FULL), tmp_path / "start")
    (tmp_path / "text.txt").write_text("the lower lowest of the low " * 40)
    config = TrainConfig(max_steps=1, batch_size=2)
    run = Run.new(tmp_path / "run", tmp_path / "text.txt", config, "gpt", start=tmp_path / "start")
    run.train()
    assert cr.load(tmp_path / "run")[1].conventions == FULL
    resumed = Run.resume(tmp_path / "run")
    assert resumed.tokenizer.conventions == FULL
    assert resumed.task.training[0] == resumed.task.validation[0] == FULL.bos  # each text begins with it


@pytest.mark.parametrize("id", [999, -1, 2**64, -(10**30)])
def test_ids_that_the_tokenizer_lacks_are_left_out(id: int, tmp_path: Path) -> None:
    """transformers writes its default 50256 beside any vocabulary."""
    save_pretrained(model(), tokenizer(Conventions()), tmp_path / "x")
    path = tmp_path / "x" / "config.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps(written | {f"{role}_token_id": id for role in ("bos", "eos", "pad")}))
    found = load(tmp_path / "x")[1].conventions
    assert found.bos is None and found.eos == () and found.pad is None and not found.add_bos
