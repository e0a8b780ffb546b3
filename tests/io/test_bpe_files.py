"""Files of byte-level BPE: written and read back, and what is refused."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chainrule.errors import ChainruleError, DataError, FormatError
from chainrule.io import load_tokenizer, save_tokenizer
from chainrule.io.bpe_files import read_tiktoken, write_gpt2, write_tiktoken
from chainrule.io.hf.tokenizers import bpe
from chainrule.text import BPETokenizer, WordTokenizer
from chainrule.text.splitting.patterns import PATTERNS

TEXT = "She sells sea shells; they're 1234 shells.\n\n  Sea shells, naïve shells 中文中文 🙂🙂 \n"


def trained(pattern: str = "gpt2") -> BPETokenizer:
    return BPETokenizer.train(TEXT * 3, 330, pattern=pattern, special_tokens=["<|end|>"])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_tokenizer_json_comes_back(tmp_path: Path, pattern: str) -> None:
    tokenizer = trained(pattern)
    save_tokenizer(tokenizer, tmp_path / "tokenizer.json", hugging_face=True)
    assert load_tokenizer(tmp_path) == load_tokenizer(tmp_path / "tokenizer.json") == tokenizer


def test_both_notations_of_merges_are_read(tmp_path: Path) -> None:
    description = bpe.write(trained())
    description["model"]["merges"] = [" ".join(pair) for pair in description["model"]["merges"]]
    (tmp_path / "tokenizer.json").write_text(json.dumps(description))
    assert load_tokenizer(tmp_path / "tokenizer.json") == trained()


def test_pre_tokenizers_of_others_are_recognized() -> None:
    description = bpe.write(trained())
    description["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    assert bpe.read(description).pattern == "gpt2"
    llama = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    split = {"type": "Split", "pattern": {"Regex": llama}, "behavior": "Isolated", "invert": False}
    steps = [split, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
    description["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    assert bpe.read(description).pattern == "llama3"


def test_gpt2_files_come_back_under_both_names(tmp_path: Path) -> None:
    write_gpt2(trained(), tmp_path)
    for path in (tmp_path, tmp_path / "encoder.json", tmp_path / "vocab.bpe"):
        assert load_tokenizer(path) == trained()
    (tmp_path / "encoder.json").rename(tmp_path / "vocab.json")
    (tmp_path / "vocab.bpe").rename(tmp_path / "merges.txt")
    assert load_tokenizer(tmp_path) == trained()
    with pytest.raises(FormatError, match="pattern 'gpt4'"):
        write_gpt2(trained("gpt4"), tmp_path)


def test_ranks_come_back(tmp_path: Path) -> None:
    tokenizer = trained("gpt4")
    write_tiktoken(tokenizer, tmp_path / "mine.tiktoken")
    assert (tmp_path / "mine.tiktoken").read_text().startswith("IQ== 0\n")
    ranked = read_tiktoken(
        tmp_path / "mine.tiktoken", pattern="gpt4", special_tokens=tokenizer.special_tokens
    )
    assert ranked.ids == tokenizer.ids and ranked.vocab_size == tokenizer.vocab_size
    assert ranked.encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()
    assert load_tokenizer(tmp_path, pattern="gpt4").ids == tokenizer.ids  # type: ignore[attr-defined]
    save_tokenizer(ranked, tmp_path / "tokenizer.json", hugging_face=True)
    assert load_tokenizer(tmp_path).encode(TEXT).tolist() == tokenizer.encode(TEXT).tolist()


def test_ranks_say_no_pattern(tmp_path: Path) -> None:
    tokenizer = trained("o200k")
    for name in ("mine.tiktoken", "tokenizer.model"):  # Llama 3 calls its ranks so
        write_tiktoken(tokenizer, tmp_path / name)
        ranked = load_tokenizer(tmp_path / name, pattern="o200k")
        assert isinstance(ranked, BPETokenizer) and ranked.pattern == "o200k"
        assert ranked.encode("Don't HTTPServer").tolist() == tokenizer.encode("Don't HTTPServer").tolist()
        with pytest.raises(
            FormatError, match=rf"{name}: ranks do not say .*tokenize convert .*gpt2, gpt4, llama3"
        ):
            load_tokenizer(tmp_path / name)
    with pytest.raises(FormatError, match=r"got 'o300k' \(must be one of gpt2, .*, or a regular expression"):
        load_tokenizer(tmp_path / "mine.tiktoken", pattern="o300k")


def test_our_own_description_is_read(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(trained().to_dict()))
    assert load_tokenizer(tmp_path) == trained()
    with pytest.raises(FormatError, match="cannot hold a word tokenizer"):
        save_tokenizer(WordTokenizer.train("a b"), tmp_path / "x.json", hugging_face=True)


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    *places, last, value = path

    def change(description: dict[str, Any]) -> None:
        target: Any = description
        for place in places:
            target = target[place]
        target[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("normalizer", {"type": "Nmt"}), "normalizer Nmt is not supported"),
        (_set("decoder", {"type": "CTC"}), "decoder CTC is not supported"),
        (_set("pre_tokenizer", {"type": "UnicodeScripts"}), "pre_tokenizer UnicodeScripts is not supported"),
        (_set("pre_tokenizer", {"type": "Sequence"}), "without its steps"),
        (
            _set("pre_tokenizer", "pretokenizers", 0, "pattern", {"Regex": "(a"}),
            "must be a regular expression",
        ),
        (_set("pre_tokenizer", "pretokenizers", 0, "behavior", "Kept"), "behavior 'Kept' is not supported"),
        (_set("added_tokens", 7), "added_tokens is an int"),
        (_set("added_tokens", 0, "id", "x"), "must have a content and an id"),
        (_set("model", "dropout", 0.1), "dropout 0.1"),
        (_set("model", "merges", 0, "a b c"), "merge 0"),
        (_set("model", "merges", 0, ["a", "nothing"]), "merge 0"),
        (_set("model", "merges", 0, 5), "merge 0"),
        (_set("model", "merges", None), "no vocab and merges"),
        (_set("model", "vocab", "a", 10**12), "id 1000000000000"),
        (_set("model", "type", "Transformer"), "model type 'Transformer'"),
    ],
)
def test_what_we_do_not_do_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    description = copy.deepcopy(bpe.write(trained()))
    change(description)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description))
    with pytest.raises(FormatError, match=message) as error:
        load_tokenizer(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", b"{", "line 1 is not JSON"),
        ("tokenizer.json", b"[" * 100_000, "nested too deeply"),
        ("tokenizer.json", b"[1]", "holds a list"),
        ("tokenizer.json", b'{"type": ' + b"9" * 5000 + b"}", "digits"),
        ("tokenizer.json", b"\xff\xfe", "not UTF-8"),
        ("tokenizer.json", b"{}", "type None"),
        ("x.tiktoken", b"IQ== 0\nIQ==\n", "line 2"),
        ("x.tiktoken", b"IQ== 0\n!! 1\n", "line 2"),
        ("x.tiktoken", b"IQ== 0\nIQ== 1\n", "two ranks"),
        ("r50k_base.tiktoken", b"IQ== 99999999999\n", "id 99999999999"),
        ("x.tiktoken", b"", "no tokens"),
        ("x.model", b"IQ== 0\nIQ==\n", "line 2"),
        ("encoder.json", b"{}", "vocab.bpe: cannot be read"),
    ],
)
def test_broken_files_get_one_line(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((FormatError, DataError), match=message) as error:
        load_tokenizer(tmp_path / name)
    assert str(tmp_path) in str(error.value) and "\n" not in str(error.value)


def test_nothing_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(ChainruleError, match=r"missing\.json: no such file \(must be a tokenizer's file"):
        load_tokenizer(tmp_path / "missing.json")


def test_a_token_of_a_megabyte_costs_no_more_than_it_should(tmp_path: Path) -> None:
    tokenizer = BPETokenizer({b"a" * n: n - 1 for n in (1, 2, 3, 2**20)} | {b"a" * 2**20: 3}, None)
    write_tiktoken(tokenizer, tmp_path / "long.tiktoken")
    assert load_tokenizer(tmp_path, pattern="gpt4").encode("a" * 2**20).tolist() == [3]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32),
    st.sampled_from(["tokenizer.json", "r50k_base.tiktoken", "vocab.bpe", "encoder.json"]),
)
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, seed: int, name: str) -> None:
    """A few bytes changed, cut out or put in: a tokenizer or a ChainruleError, never anything else."""
    tokenizer = trained()
    if name == "tokenizer.json":
        save_tokenizer(tokenizer, tmp_path / name, hugging_face=True)
    elif name == "r50k_base.tiktoken":
        write_tiktoken(tokenizer, tmp_path / name)
    else:
        write_gpt2(tokenizer, tmp_path)
    rng = random.Random(seed)
    data = bytearray((tmp_path / name).read_bytes())
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data))
        piece = rng.choice([b"", b"\x00", b"\xff", b'"', b"{", b" ", b"9", b"-1", b"null", data[:20]])
        data[place : place + rng.randint(0, 30)] = piece
    (tmp_path / name).write_bytes(data)
    try:
        assert load_tokenizer(tmp_path / name).encode("").size == 0
    except ChainruleError as error:
        assert "\n" not in str(error)
