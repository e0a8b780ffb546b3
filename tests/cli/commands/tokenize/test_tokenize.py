"""`chainrule tokenize train|encode|decode|show` as a person or a script meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chainrule.cli import main
from chainrule.data import load
from chainrule.io import gguf, llama2c, load_tokenizer
from chainrule.io.bpe_files import write_tiktoken
from chainrule.models import Llama, LlamaConfig
from chainrule.text import BPETokenizer, SentencePieceBPETokenizer, Vocabulary
from chainrule.text.unigram import BYTES
from tests.vectors import vector

TEXT = load("pydoc").text[:5_000] + "Größe ☃\r\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_bytes(TEXT.encode())
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "plain-bpe"])
def test_train_encode_and_decode(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    main(["tokenize", "train", "text.txt", "--kind", kind, "--vocab-size", "500", "--json"])
    trained = json.loads(said(capsys))
    assert trained["kind"] == kind and trained["bytes"] == len(TEXT.encode()) and trained["vocab_size"] <= 500
    vocab = ["--vocab", trained["out"]]

    main(["tokenize", "encode", "text.txt", *vocab, "--json"])
    encoded = json.loads(said(capsys))
    assert encoded["tokens"] == len(encoded["ids"]) == trained["tokens"]
    assert encoded["ids"] == load_tokenizer(trained["out"]).encode(TEXT).tolist()
    assert encoded["characters"] == len(TEXT) and encoded["vocab_size"] == trained["vocab_size"]

    Path("ids.json").write_text(json.dumps(encoded))
    main(["tokenize", "encode", "text.txt", *vocab])
    Path("ids.txt").write_text(said(capsys))
    for ids in ("ids.json", "ids.txt"):
        main(["tokenize", "decode", ids, *vocab])
        assert said(capsys) == TEXT  # \r\n included
    main(["tokenize", "decode", "ids.txt", *vocab, "--json"])
    assert json.loads(said(capsys))["text"] == TEXT


def test_a_byte_order_mark_is_no_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["tokenize", "train", "text.txt", "--vocab-size", "300"])
    Path("marked.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    Path("marked.json").write_bytes(b"\xef\xbb\xbf" + Path("bpe.json").read_bytes())
    said(capsys)
    main(["tokenize", "encode", "text.txt", "--vocab", "bpe.json"])
    expected = said(capsys)
    for name, vocab in (("marked.txt", "bpe.json"), ("text.txt", "marked.json")):
        main(["tokenize", "encode", name, "--vocab", vocab])
        assert said(capsys) == expected
    with Path("marked.txt").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        main(["tokenize", "encode", "-", "--vocab", "bpe.json"])
    assert said(capsys) == expected


def test_through_a_pipe(folder: Path) -> None:
    main(["tokenize", "train", "text.txt", "--kind", "unigram", "--vocab-size", "400"])
    passed = "To be,\n or not \N{SNOWMAN}"
    for what in ("encode", "decode"):
        command = [sys.executable, "-m", "chainrule.cli", "tokenize", what, "-", "--vocab", "unigram.json"]
        done = subprocess.run(command, input=passed.encode(), capture_output=True, check=True)
        passed = done.stdout.decode()
    assert passed == "To be,\n or not \N{SNOWMAN}"


@pytest.mark.parametrize("kind", ["wordpiece", "word"])
def test_the_lossy_kinds(folder: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    main(
        [
            "tokenize",
            "train",
            "text.txt",
            "pydoc",
            "--kind",
            kind,
            "--vocab-size",
            "300",
            "--out",
            "deep/t.json",
        ]
    )
    assert said(capsys).startswith("deep/t.json: 300 tokens, ")
    main(["tokenize", "show", "text.txt", "--vocab", "deep/t.json", "--json"])
    shown = json.loads(said(capsys))
    assert len(shown["pieces"]) == shown["tokens"] and all(
        isinstance(piece, str) for piece in shown["pieces"]
    )


@pytest.mark.parametrize(
    ("kind", "size", "fewer"),
    [("bpe", 5000, True), ("word", 5000, True), ("bpe", 300, False), ("char", 5000, False)],
)
def test_a_text_that_gives_fewer_tokens_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, size: int, fewer: bool
) -> None:
    """But not of characters, which are as many as the text has."""
    main(["tokenize", "train", "text.txt", "--kind", kind, "--vocab-size", str(size)])
    told, count = said(capsys), load_tokenizer(f"{kind}.json").vocab_size
    assert f"{kind}.json: {count:,} tokens" in told and (count < size) == (fewer or kind == "char")
    assert told.endswith("; the text gives no more of the 5,000\n") == fewer


def test_a_pattern_splits_the_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tokenize", "train", "text.txt", "--pattern", "o200k", "--vocab-size", "300"])
    capsys.readouterr()
    tokenizer = load_tokenizer("bpe.json")
    assert isinstance(tokenizer, BPETokenizer) and tokenizer.pattern == "o200k"
    write_tiktoken(tokenizer, "mine.tiktoken")
    Path("line.txt").write_text("HTTPServer's 1234")
    for vocab in (["bpe.json"], ["mine.tiktoken", "--pattern", "o200k"]):
        main(["tokenize", "encode", "line.txt", "--vocab", *vocab])
        ids = [int(id) for id in said(capsys).split()]
        assert ids == tokenizer.encode("HTTPServer's 1234").tolist()
        Path("ids.txt").write_text(" ".join(map(str, ids)))
        main(["tokenize", "decode", "ids.txt", "--vocab", *vocab])
        assert said(capsys) == "HTTPServer's 1234"
        main(["tokenize", "show", "line.txt", "--vocab", *vocab])
        assert said(capsys).startswith("[")


def test_ranks_are_converted_once_and_then_say_how_they_split_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For every command that takes a tokenizer; a guess would give other tokens."""
    text = "HTTPServer's 1234 don't été\n"
    Path("h.txt").write_text(text * 20)
    tokenizer = BPETokenizer({bytes([i]): i for i in range(256)} | {b"r'": 256}, None, pattern="o200k")
    write_tiktoken(tokenizer, "company_o200k_v2.tiktoken")
    ranks = "company_o200k_v2.tiktoken"
    gpt = "train gpt h.txt --n-layer 1 --n-head 1 --n-embd 8 --block-size 8 --max-steps 1 --batch-size 1 --out run"
    for words in (f"tokenize encode h.txt --vocab {ranks}", f"{gpt} --tokenizer {ranks}"):
        with pytest.raises(SystemExit) as stop:
            main(words.split())
        error = capsys.readouterr().err
        assert stop.value.code == 2 and error.count("\n") == 1
        assert (
            f"chainrule tokenize convert {ranks} --pattern NAME --out tokenizer.json, where NAME is gpt2"
            in error
        )
    main(["tokenize", "convert", ranks, "--pattern", "o200k"])
    assert said(capsys) == "tokenizer.json: bpe, 257 tokens\n"
    main(["tokenize", "encode", "h.txt", "--vocab", "tokenizer.json"])
    assert [int(id) for id in said(capsys).split()] == tokenizer.encode(text * 20).tolist()
    main([*gpt.split(), "--tokenizer", "tokenizer.json"])
    assert load_tokenizer("run").encode(text).tolist() == tokenizer.encode(text).tolist()
    with pytest.raises(SystemExit):
        main(["tokenize", "convert", "tokenizer.json", "--pattern", "gpt2", "--out", "other.json"])
    assert "says itself how it splits words" in capsys.readouterr().err and not Path("other.json").exists()


def test_files_of_other_programs_are_tokenizers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["<unk>", "<s>", "</s>", *BYTES, "▁", "l", "o", "lo", "▁lo"]
    scores = [-float(id) for id in range(len(names))]
    tokenizer = SentencePieceBPETokenizer.from_scores(Vocabulary(names, names[:3]), scores, start="<s>")
    model = Llama(LlamaConfig(1, 1, 1, 4, 8, 8, len(names)))
    llama2c.write(model, tokenizer, folder)
    gguf.write(model, tokenizer, folder / "x.gguf")
    Path("line.txt").write_text("lo lö")
    for vocab in ("tokenizer.bin", "x.gguf"):
        main(["tokenize", "encode", "line.txt", "--vocab", vocab])
        assert [int(id) for id in said(capsys).split()] == tokenizer.encode("lo lö").tolist()


def test_the_file_can_be_hugging_faces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--kind", "wordpiece", "--vocab-size", "200"]
    main(["tokenize", "train", "text.txt", *flags, "--out", "ours.json"])
    main(["tokenize", "train", "text.txt", *flags, "--out", "t/tokenizer.json", "--hugging-face"])
    said(capsys)
    assert json.loads(Path("t/tokenizer.json").read_text(encoding="utf-8"))["model"]["type"] == "WordPiece"
    assert load_tokenizer("t") == load_tokenizer("ours.json")


@pytest.mark.requirement("R-274")
def test_the_merge_table_of_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["tokenize", "show", "--kind", "plain-bpe", "--trace"])
    rows = [line.split() for line in said(capsys).splitlines()[1:]]
    assert [[row[1], row[3], int(row[4])] for row in rows] == vector("der-bpe-full").recomputed["merges"]
    main(["tokenize", "show", "--kind", "plain-bpe", "--trace", "--merges", "2", "--json"])
    assert [step["count"] for step in json.loads(said(capsys))["merges"]] == [3, 3]


def test_the_trace_of_a_long_text_shows_ten_words_in_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("words.txt").write_text("\n".join(f"word{i} the" for i in range(50)))
    main(["tokenize", "show", "words.txt", "--trace", "--merges", "3"])
    lines = said(capsys).splitlines()
    assert len(lines) == 1 + 3 and all(line.count(" | ") == 10 for line in lines[1:])
    assert "␣ (50x)" in lines[1] and "\\n (49x)" in lines[1] and lines[1].endswith("43 more")
    main(["tokenize", "show", "words.txt", "--trace", "--merges", "1", "--words", "2"])
    assert said(capsys).endswith("␣ (50x) | t he (50x) | 51 more\n")


def test_bytes_inside_a_character_are_shown_in_hex(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tokenize", "train", "text.txt", "--vocab-size", "256", "--out", "bytes.json"])
    Path("e.txt").write_text("é!", encoding="utf-8")
    said(capsys)
    main(["tokenize", "show", "e.txt", "--vocab", "bytes.json"])
    assert said(capsys).startswith(r"[\xc3][\xa9][!]")


def test_pieces_are_shown_in_brackets_where_there_is_no_color(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["tokenize", "show", "text.txt", "--length", "3"])
    assert said(capsys) == "".join(f"[{c}]" for c in TEXT[:3]) + "\n3 tokens for 3 characters, 1.00 each\n"


def test_without_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tokenize", "encode"])
    ids = said(capsys)
    Path("ids.txt").write_text(ids)
    main(["tokenize", "decode", "ids.txt"])
    assert said(capsys) == load("pydoc").text
    main(["tokenize", "show"])
    assert "600 tokens for 600 characters" in said(capsys)
    main(["tokenize", "decode"])
    assert len(said(capsys)) > 90


BAD = {
    "no such file": (["train", "none.txt"], "none.txt: no such file"),
    "no such kind": (["train", "--kind", "bp"], "--kind: got 'bp' (must be one of bpe, char,"),
    "no text": (["train", "text.txt", "empty.txt"], "empty.txt: no text in 0 characters (must not be empty)"),
    "a blank text": (["train", "blank.txt", "--kind", "char"], "blank.txt: no text in 2 characters"),
    "no size": (["train", "text.txt", "--vocab-size", "0"], "--vocab-size is 0 (must be at least 1)"),
    "too small": (
        ["train", "text.txt", "--kind", "unigram", "--vocab-size", "9"],
        "--vocab-size is 9 (must be at least",
    ),
    "unwritable": (["train", "text.txt", "--kind", "char", "--out", "text.txt/a"], "cannot be written"),
    "not UTF-8": (["encode", "latin.txt"], "latin.txt: line 2 is not UTF-8, byte 0xe9"),
    "no vocab": (["encode", "text.txt", "--vocab", "none"], "none: no such file (must be a tokenizer's file"),
    "no tokenizer": (["encode", "text.txt", "--vocab", "."], "holds no tokenizer"),
    "a text as vocab": (["encode", "text.txt", "--vocab", "bad.json"], "bad.json: line 1 is not JSON"),
    "prose as vocab": (
        ["encode", "text.txt", "--vocab", "text.txt"],
        "no token (must be BERT's vocab.txt, one token a line, [UNK] among them; a tokenizer is learned from a text "
        "by chainrule tokenize train)",
    ),
    "a list as vocab": (
        ["encode", "text.txt", "--vocab", "far.txt"],
        "far.txt: line 1 is '3, 99999', no token",
    ),
    "no unknown token": (["encode", "text.txt", "--vocab", "list.txt"], "no token [UNK] in 2 lines (must be"),
    "strange character": (["encode", "text.txt"], "unknown character"),
    "no ids": (["decode", "text.txt"], "is not an id (must be integers)"),
    "ids outside": (["decode", "far.txt"], "id 99999 at position 1"),
    "huge ids": (["decode", "huge.json"], "more than 64 bits"),
    "endless ids": (["decode", "endless.json"], "more than 64 bits"),
    "deep ids": (["decode", "deep.json"], "nested too deeply (must be a list of integers"),
    "broken ids": (["decode", "bad.json"], "line 1 is not JSON"),
    "other JSON": (["decode", "other.json"], "holds no ids"),
    "no pattern": (["train", "text.txt", "--pattern", "gpt5"], "pattern: got 'gpt5' (must be one of gpt2,"),
    "empty pattern": (
        ["train", "text.txt", "--pattern", ""],
        "pattern: got '' (must be a name, or a list of",
    ),
    "broken pattern": (["train", "text.txt", "--pattern", "(a"], "must be a regular expression"),
    "pattern of letters": (
        ["train", "text.txt", "--kind", "char", "--pattern", "gpt2"],
        "--pattern with char",
    ),
    "pattern without ranks": (
        ["encode", "text.txt", "--pattern", "gpt2"],
        "--pattern without a file of tiktoken",
    ),
    "a kind without its trace": (
        ["show", "--kind", "plain-bpe"],
        "--kind is plain-bpe without trace (must be with",
    ),
    "no words": (["show", "--trace", "--words", "0"], "--words is 0 (must be at least 1)"),
    "no length": (["show", "--length", "0"], "--length is 0 (must be at least 1)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    Path("latin.txt").write_bytes("a\nd\xe9j\xe0".encode("latin-1"))
    Path("empty.txt").write_bytes(b"")
    Path("blank.txt").write_bytes(b"\xef\xbb\xbf \n")  # and a byte order mark
    Path("list.txt").write_text("low\n##er\n")
    Path("bad.json").write_text("{bad")
    Path("far.txt").write_text("3, 99999")
    Path("huge.json").write_text(f"[{10**30}]")
    Path("endless.json").write_text(f"[{'7' * 5_000}]")
    Path("deep.json").write_text("[" * 100_000)
    Path("other.json").write_text('{"ids": "many"}')
    before = sorted(folder.iterdir())
    args, message = BAD[case]
    with pytest.raises(SystemExit) as stop:
        main(["tokenize", *args])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert sorted(folder.iterdir()) == before  # nothing half-written is left behind
