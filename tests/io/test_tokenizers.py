"""Tokenizers in files: what is written is read again, and what is not understood is refused by name."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ChainruleError, ConfigError, FormatError
from chainrule.io import load_tokenizer, save_tokenizer
from chainrule.io.hf.tokenizers.wordpiece import write_vocab_txt
from chainrule.io.tokenizers import described_tokenizer, to_hugging_face
from chainrule.text import (
    BertRules,
    BPETokenizer,
    CharTokenizer,
    LowercaseWordTokenizer,
    PipelineTokenizer,
    TextbookBPETokenizer,
    Tokenizer,
    UnigramTokenizer,
    Vocabulary,
    WordPieceTokenizer,
    WordTokenizer,
)

TEXT = "low lower lowest newer newest wider, low! " * 5
KINDS: dict[str, Tokenizer] = {
    "char": CharTokenizer.train(TEXT + "\ud800"),
    "bare-word": LowercaseWordTokenizer.train(TEXT),
    "bpe": BPETokenizer.train(TEXT, 270, special_tokens=["<s>"]),
    "word": WordTokenizer.train(TEXT),
    "plain-bpe": TextbookBPETokenizer.train(TEXT, 30),
    "wordpiece": WordPieceTokenizer.train(TEXT, 40),
    "cased": WordPieceTokenizer.train(TEXT, 40, rules=BertRules(lowercase=False, strip_accents=False)),
    "unigram": UnigramTokenizer.train(TEXT, 300, special_tokens=["<s>", "</s>"]),
    "raw": UnigramTokenizer.train(TEXT, 30, byte_fallback=False, prefix=False),
}
OTHER_PARTS: dict[str, dict[str, Any]] = {
    "bpe": {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "NFC"}, {"type": "Strip", "strip_left": False}],
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": True},
            ],
        },
    },
    "wordpiece": {
        "normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        "pre_tokenizer": {"type": "Punctuation", "behavior": "Isolated"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]},
    },
    "unigram": {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": ""},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        "decoder": {
            "type": "Sequence",
            "decoders": [{"type": "Strip", "content": "▁", "start": 1, "stop": 0}],
        },
    },
}
KINDS |= {
    f"{kind} pipeline": described_tokenizer(to_hugging_face(KINDS[kind]) | parts)
    for kind, parts in OTHER_PARTS.items()
}


@pytest.mark.parametrize("kind", KINDS)
def test_our_json_comes_back(kind: str, tmp_path: Path) -> None:
    save_tokenizer(KINDS[kind], tmp_path / "deep" / "tokenizer.json")
    assert load_tokenizer(tmp_path / "deep" / "tokenizer.json") == KINDS[kind]
    assert load_tokenizer(str(tmp_path / "deep")) == KINDS[kind]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["tokenizer.json"]  # nothing half-written


@pytest.mark.parametrize(
    "kind", ["wordpiece", "cased", "unigram", "raw", *(f"{kind} pipeline" for kind in OTHER_PARTS)]
)
def test_hugging_face_json_comes_back(kind: str, tmp_path: Path) -> None:
    save_tokenizer(KINDS[kind], tmp_path / "t.json", hugging_face=True)
    assert load_tokenizer(tmp_path / "t.json") == KINDS[kind]


def test_vocab_txt(tmp_path: Path) -> None:
    tokenizer = WordPieceTokenizer.train(TEXT, 40)
    (tmp_path / "vocab.txt").write_text(write_vocab_txt(tokenizer), encoding="utf-8")
    assert load_tokenizer(tmp_path) == tokenizer
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased = load_tokenizer(tmp_path / "vocab.txt")
    assert isinstance(cased, WordPieceTokenizer) and not cased.rules.lowercase
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(FormatError, match=r"tokenizer_config.json beside it is not a JSON object"):
        load_tokenizer(tmp_path / "vocab.txt")


def test_other_kinds_have_no_hugging_face_form(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot hold a word tokenizer"):
        save_tokenizer(KINDS["word"], tmp_path / "t.json", hugging_face=True)
    assert not list(tmp_path.iterdir())


BROKEN = {
    b"": "line 1 is not JSON",
    b"\xff\xfe": "not UTF-8",
    b"[1]": "holds a list",
    b"{}": "type None",
    b'{"type": "none"}': "type 'none' (must be one of",
    b'{"model": {"type": "Word"}}': "model type 'Word'",
    b'{"model": {"type": "WordPiece"}}': "has no vocab",
    b'{"model": {"type": "Unigram", "vocab": [["a"]]}}': "has no vocab",
    b'{"type": []}': "type [] (must be one of",
    b'{"model": {"type": []}}': "model type [] (must be one of",
    b'{"model": {"type": {}}}': "model type {} (must be one of",
    b'{"type": "unigram", "prefix": true, "tokens": ["<unk>"], "special": ["<unk>"], "scores": [1%s]}'
    % (b"0" * 400): "too large",
    b"[" * 100_000: "nested too deeply",
}


@pytest.mark.parametrize("content", BROKEN, ids=range(len(BROKEN)))
def test_broken_files_are_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(FormatError) as error:
        load_tokenizer(tmp_path / "t.json")
    assert BROKEN[content] in str(error.value) and str(tmp_path / "t.json") in str(error.value)


SPLIT = {"type": "Split", "pattern": {"Regex": []}, "behavior": "Isolated"}
CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("wordpiece", {"normalizer": {"type": "Nmt"}}, "normalizer Nmt is not supported"),
    (
        "wordpiece",
        {"normalizer": {"type": "BertNormalizer", "lowercase": []}},
        "lowercase is [] (must be true or false)",
    ),
    ("bpe", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [SPLIT]}}, "pattern is {'Regex': []}"),
    (
        "wordpiece",
        {"pre_tokenizer": {"type": "UnicodeScripts"}},
        "pre_tokenizer UnicodeScripts is not supported (",
    ),
    ("wordpiece", {"decoder": {"type": "CTC"}}, "decoder CTC is not supported"),
    ("wordpiece", {"decoder": "x"}, "decoder is a str"),
    ("wordpiece", {"model": {"type": "WordPiece", "continuing_subword_prefix": 3}}, "the model has no vocab"),
    (
        "bpe",
        {"normalizer": {"type": "NFC"}, "post_processor": {"type": "Other"}},
        "post_processor Other is not supported",
    ),
    ("wordpiece", {"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": "b"}}}, "id 'b' of token 'a'"),
    ("wordpiece", {"added_tokens": [3]}, "added token 3"),
    (
        "unigram",
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"}},
        "normalizer Precompiled: precompiled_charsmap is not base64",
    ),
    ("unigram", {"added_tokens": [{"id": 2, "content": "x", "special": True}]}, "which is not its place"),
    ("unigram", {"model": {"type": "Unigram", "vocab": [["<unk>", 0]]}}, "unk_id is None"),
    ("unigram", {"model": {"type": "Unigram", "vocab": [["<unk>", 0]], "unk_id": 5}}, "unk_id is 5"),
]


@pytest.mark.parametrize(("kind", "change", "message"), CHANGES)
def test_parts_that_are_not_known_are_refused(
    kind: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "t.json").write_text(json.dumps(to_hugging_face(KINDS[kind]) | change))
    with pytest.raises(FormatError) as error:
        load_tokenizer(tmp_path / "t.json")
    assert message in str(error.value)


READ: list[tuple[str, dict[str, Any]]] = [
    ("wordpiece", {"normalizer": {"type": "NFC"}}),
    ("wordpiece", {"normalizer": None}),
    ("wordpiece", {"pre_tokenizer": {"type": "Whitespace"}}),
    ("wordpiece", {"decoder": {"type": "BPEDecoder"}}),
    ("wordpiece", {"added_tokens": [{"id": 90, "content": "x", "special": False}]}),
    ("unigram", {"normalizer": {"type": "Precompiled"}}),
    ("unigram", {"normalizer": None}),
    ("bpe", {"normalizer": {"type": "NFC"}, "post_processor": {"type": "ByteLevel"}}),
    ("bpe", {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True}}),
]


@pytest.mark.parametrize(("kind", "change"), READ)
def test_other_parts_run_as_a_pipeline_and_survive_a_checkpoint(
    kind: str, change: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "t.json").write_text(json.dumps(to_hugging_face(KINDS[kind]) | change))
    tokenizer = load_tokenizer(tmp_path / "t.json")
    assert isinstance(tokenizer, PipelineTokenizer)
    ids = tokenizer.encode("low Newer lowest")
    assert len(ids) and "low" in tokenizer.decode(ids)
    save_tokenizer(tokenizer, tmp_path / "again.json", hugging_face=True)
    assert load_tokenizer(tmp_path / "again.json") == tokenizer
    model = cr.models.GPT(cr.models.GPTConfig(1, 1, 4, 8, tokenizer.vocab_size))
    cr.io.save_pretrained(model, tokenizer, tmp_path / "checkpoint")
    assert cr.io.load_pretrained(tmp_path / "checkpoint")[1] == tokenizer


AROUND: list[tuple[dict[str, Any] | None, Any]] = [
    (None, ((), ())),
    ({"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}, (("[CLS]",), ("[SEP]",))),
    ({"type": "RobertaProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}, (("[CLS]",), ("[SEP]",))),
    (
        {
            "type": "TemplateProcessing",
            "single": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
        },
        ((), ("[SEP]",)),
    ),
    (
        {
            "type": "Sequence",
            "processors": [
                {"type": "ByteLevel"},
                {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]},
            ],
        },
        (("[CLS]",), ("[SEP]",)),
    ),
]


@pytest.mark.parametrize(("processor", "around"), AROUND)
def test_the_tokens_around_a_text_are_read_and_written(processor: Any, around: Any, tmp_path: Path) -> None:
    changed = {"normalizer": {"type": "NFC"}, "post_processor": processor}
    (tmp_path / "t.json").write_text(json.dumps(to_hugging_face(KINDS["wordpiece"]) | changed))
    tokenizer = load_tokenizer(tmp_path / "t.json")
    assert isinstance(tokenizer, PipelineTokenizer) and tokenizer.around == around
    save_tokenizer(tokenizer, tmp_path / "again.json", hugging_face=True)
    assert load_tokenizer(tmp_path / "again.json") == tokenizer


@pytest.mark.parametrize(
    "single", [None, [], [{"Sequence": {"id": "A"}}] * 2, [{"Other": {}}], [{"Sequence": 3}]]
)
def test_a_template_of_another_form_is_refused(single: Any, tmp_path: Path) -> None:
    processor = {"type": "TemplateProcessing", "single": single}
    changed = {"normalizer": {"type": "NFC"}, "post_processor": processor}
    (tmp_path / "t.json").write_text(json.dumps(to_hugging_face(KINDS["wordpiece"]) | changed))
    with pytest.raises(FormatError, match="post_processor TemplateProcessing: single is"):
        load_tokenizer(tmp_path / "t.json")


def test_a_pattern_is_for_ranks_only(tmp_path: Path) -> None:
    save_tokenizer(KINDS["bpe"], tmp_path / "t.json")
    with pytest.raises(FormatError, match="says itself how it splits words"):
        load_tokenizer(tmp_path / "t.json", pattern="gpt2")


def test_the_tokenizer_is_refused_before_the_weights_are_read(tmp_path: Path) -> None:
    model = cr.models.GPT(cr.models.GPTConfig(1, 1, 4, 8, 60))
    cr.io.save_pretrained(model, KINDS["wordpiece"], tmp_path / "x")
    (tmp_path / "x" / "model.safetensors").write_bytes(b"not weights")
    described = to_hugging_face(KINDS["wordpiece"]) | {"pre_tokenizer": {"type": "UnicodeScripts"}}
    (tmp_path / "x" / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(FormatError, match=r"tokenizer.json: pre_tokenizer UnicodeScripts is not supported"):
        cr.io.load_pretrained(tmp_path / "x")


@pytest.mark.parametrize(("scheme", "prefix"), [("always", True), ("first", True), ("never", False)])
def test_metaspace_is_read(scheme: str, prefix: bool, tmp_path: Path) -> None:
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True}
    parts = {"normalizer": None, "pre_tokenizer": metaspace, "decoder": metaspace}
    (tmp_path / "t.json").write_text(json.dumps(to_hugging_face(KINDS["unigram"]) | parts))
    assert load_tokenizer(tmp_path / "t.json").to_dict()["prefix"] is prefix


@settings(max_examples=100)
@given(st.data())
def test_damaged_files_never_crash(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """The fuzz test: bytes of a good file changed at random give a tokenizer or one of our errors."""
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    hugging_face = kind.startswith(("wordpiece", "unigram")) and data.draw(st.booleans())
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    save_tokenizer(KINDS[kind], path, hugging_face=hugging_face)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        tokenizer = load_tokenizer(path)
        ids = tokenizer.encode("low newer ☃")
    except ChainruleError as error:
        assert "\n" not in str(error)
    else:
        assert ((ids >= 0) & (ids < tokenizer.vocab_size)).all()


OTHER_TYPES: list[Any] = [None, True, -1, 1.5, 10**400, "x", [], [[]], {}, {"x": []}]
HELD = [(kind, False) for kind in KINDS] + [(kind, True) for kind in ("bpe", "wordpiece", "unigram")]
HELD += [(f"{kind} pipeline", True) for kind in OTHER_PARTS]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of the values in a JSON tree; of long lists and tables the first few stand for the rest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in islice(items, 12):
        yield value, key
        yield from places(inner)


@pytest.mark.parametrize(("kind", "hugging_face"), HELD)
def test_values_of_other_types_never_crash(kind: str, hugging_face: bool, tmp_path: Path) -> None:
    """Every value of a good file in turn becomes a value of each other type: a tokenizer, or one line."""
    tree = to_hugging_face(KINDS[kind]) if hugging_face else KINDS[kind].to_dict()
    tree, path = copy.deepcopy(tree), tmp_path / "t.json"
    for container, key in list(places(tree)):
        kept = container[key]
        for other in OTHER_TYPES:
            container[key] = other
            path.write_text(json.dumps(tree))
            try:
                load_tokenizer(path).encode("low newer!")
            except ChainruleError as error:
                assert "\n" not in str(error)
        container[key] = kept


def test_a_directory_without_tokenizer_and_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ChainruleError, match="holds no tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(ChainruleError, match=r"none\.json: no such file"):
        load_tokenizer(tmp_path / "none.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        save_tokenizer(CharTokenizer("a"), tmp_path / "file" / "t.json")


def test_the_tokenizer_of_a_run_is_that_of_its_newest_checkpoint(tmp_path: Path) -> None:
    for step, kind in (("step_000900", "char"), ("step_001000", "word"), ("step_x", "cased")):
        save_tokenizer(KINDS[kind], tmp_path / "checkpoints" / step / "tokenizer.json")
    (tmp_path / "log.jsonl").write_text("")
    assert load_tokenizer(tmp_path) == KINDS["word"]
    assert load_tokenizer(tmp_path / "checkpoints" / "step_000900") == KINDS["char"]


def test_special_tokens_after_the_vocabulary_are_added(tmp_path: Path) -> None:
    description = to_hugging_face(UnigramTokenizer(Vocabulary(["<unk>", "a"], ["<unk>"]), [0, -1]))
    description["added_tokens"].append({"id": 2, "content": "<mask>", "special": True})
    (tmp_path / "t.json").write_text(json.dumps(description))
    assert load_tokenizer(tmp_path / "t.json").vocab_size == 3
