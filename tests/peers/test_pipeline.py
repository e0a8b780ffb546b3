"""Pipelines, token for token as `tokenizers` runs them: read from its files, and written so that it reads ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import chainrule as cr
from chainrule.data import corpora
from chainrule.io.tokenizers import described_tokenizer, to_hugging_face
from chainrule.text import BPETokenizer, PipelineTokenizer
from tests.peers.hard_strings import HARD, texts

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:expression")

SPECIAL = ["<unk>", "[UNK]", "<s>", "</s>"]
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
P, N, D = pre_tokenizers, normalizers, decoders


def trained(model: Any, pre: Any = None, norm: Any = None, decoder: Any = None, **options: Any) -> Any:
    """A tokenizer of theirs, trained on a little text."""
    found = tokenizers.Tokenizer(model)
    for name, part in (("pre_tokenizer", pre), ("normalizer", norm), ("decoder", decoder)):
        if part is not None:
            setattr(found, name, part)
    kind = type(model).__name__
    trainer = {
        "BPE": trainers.BpeTrainer,
        "WordPiece": trainers.WordPieceTrainer,
        "Unigram": trainers.UnigramTrainer,
    }
    unknown = {"unk_token": "<unk>"} if kind == "Unigram" else {}
    text = corpora.load("pydoc").text[:40_000] + " naïve 中文 🙂 \n\n 1234 don't I'LL été ﬁne ①②Ⅳ" * 5
    settings = {"vocab_size": 600, "special_tokens": SPECIAL, "show_progress": False} | unknown | options
    found.train_from_iterator(text.splitlines(keepends=True), trainer[kind](**settings))
    return found


def byte_level(pre: Any, norm: Any = None) -> Any:
    return trained(models.BPE(), pre, norm, D.ByteLevel(), initial_alphabet=P.ByteLevel.alphabet())


def with_bytes(*steps: Any) -> Any:
    return P.Sequence([*steps, P.ByteLevel(add_prefix_space=False, use_regex=False)])


def metaspace(scheme: str) -> Any:
    norm = N.Sequence([N.NFKC(), N.Replace(Regex(" {2,}"), " ")])
    return trained(
        models.Unigram(), P.Metaspace(prepend_scheme=scheme), norm, D.Metaspace(prepend_scheme=scheme)
    )


def metaspace_bpe(scheme: str) -> Any:
    model = models.BPE(unk_token="<unk>", fuse_unk=True)
    pre = P.Sequence([P.Metaspace(prepend_scheme=scheme, split=False), P.Digits()])
    return trained(model, pre, N.Strip(), D.Metaspace(prepend_scheme=scheme))


def split(behavior: str, invert: bool) -> Any:
    pre = P.Split(Regex(r"\s+|[0-9]"), behavior, invert)
    return trained(models.BPE(unk_token="<unk>"), pre, N.Lowercase(), D.BPEDecoder())


def string(behavior: str) -> Any:
    norm = N.Sequence([N.NFKC(), N.Lowercase()])
    return trained(models.BPE(unk_token="<unk>", fuse_unk=True), P.Split(" ", behavior), norm, D.Fuse())


def punctuation(behavior: str) -> Any:
    pre, norm = (
        P.Sequence([P.WhitespaceSplit(), P.Punctuation(behavior)]),
        N.Sequence([N.NFKD(), N.StripAccents()]),
    )
    return trained(models.BPE(unk_token="<unk>"), pre, norm)


def marked(**mark: str) -> Any:
    decoder = D.BPEDecoder() if "end_of_word_suffix" in mark else D.WordPiece()
    return trained(models.BPE(unk_token="<unk>", **mark), P.Whitespace(), N.Lowercase(), decoder, **mark)


def added() -> Any:
    found = byte_level(P.ByteLevel(add_prefix_space=False), N.NFC())
    found.add_tokens([AddedToken("don't", single_word=True), AddedToken("été", normalized=True), "12"])
    found.add_special_tokens([AddedToken("CamelCase", lstrip=True, rstrip=True, special=True)])
    pair = [("<s>", found.token_to_id("<s>")), ("</s>", found.token_to_id("</s>"))]
    found.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> $B:1 </s>:1", pair)
    return found


def llama() -> Any:
    """SentencePiece's BPE with a token that no class of its own knows."""
    norm = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    back = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    options = {"vocab_size": 900, "special_tokens": [*SPECIAL, *bytes]}
    theirs = trained(
        models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True), None, norm, back, **options
    )
    described = json.loads(theirs.to_str())
    described["added_tokens"] = [entry for entry in described["added_tokens"] if entry["content"] in SPECIAL]
    return tokenizers.Tokenizer.from_str(json.dumps(described))


BEHAVIORS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
CASES: dict[str, Callable[[], Any]] = {
    "smollm": lambda: byte_level(P.Sequence([P.Digits(True), P.ByteLevel(add_prefix_space=False)])),
    "qwen2": lambda: byte_level(with_bytes(P.Split(Regex(QWEN2), "isolated")), N.NFC()),
    "roberta": lambda: byte_level(P.ByteLevel(add_prefix_space=True)),
    "falcon": lambda: byte_level(
        P.Sequence(
            [
                P.Punctuation("contiguous"),
                P.ByteLevel(add_prefix_space=False),
                P.Digits(False),
                P.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
            ]
        )
    ),
    "unknown expression": lambda: byte_level(
        with_bytes(P.Split(Regex(r"\d{1,2}|[a-zA-Z]+|[\p{Han}]"), "isolated"))
    ),
    "anchors": lambda: byte_level(with_bytes(P.Split(Regex(r"^\s+|\w+$|[a-z]+"), "isolated"))),
    "added tokens": added,
    "llama": llama,
    "whitespace": lambda: trained(
        models.WordPiece(unk_token="[UNK]"),
        P.Whitespace(),
        N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents()]),
        D.WordPiece(),
    ),
    "cased digits": lambda: trained(
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20),
        P.Sequence([P.BertPreTokenizer(), P.Digits(True)]),
        N.BertNormalizer(lowercase=False),
        D.WordPiece(),
    ),
    "bert normalizer": lambda: trained(
        models.WordPiece(unk_token="[UNK]"),
        P.WhitespaceSplit(),
        N.BertNormalizer(),
        D.WordPiece(cleanup=False),
    ),
    "suffix": lambda: marked(end_of_word_suffix="</w>"),
    "prefix": lambda: marked(continuing_subword_prefix="##"),
    **{f"metaspace {s}": lambda s=s: metaspace(s) for s in ("always", "first", "never")},  # type: ignore[misc]
    **{f"metaspace bpe {s}": lambda s=s: metaspace_bpe(s) for s in ("always", "first", "never")},  # type: ignore[misc]
    **{f"split {b} {i}": lambda b=b, i=i: split(b, i) for b in BEHAVIORS for i in (False, True)},  # type: ignore[misc]
    **{f"string {b}": lambda b=b: string(b) for b in BEHAVIORS},  # type: ignore[misc]
    **{f"punctuation {b}": lambda b=b: punctuation(b) for b in BEHAVIORS},  # type: ignore[misc]
}


@cache
def both(case: str) -> tuple[PipelineTokenizer | BPETokenizer, Any]:
    theirs = CASES[case]()
    ours = described_tokenizer(json.loads(theirs.to_str()))
    assert isinstance(ours, PipelineTokenizer | BPETokenizer)
    return ours, theirs


def compare(case: str, text: str) -> None:
    ours, theirs = both(case)
    ids = ours.encode(text, special="all").tolist()
    assert ids == theirs.encode(text, add_special_tokens=False).ids
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=60)
@given(texts)
def test_generated_texts_give_the_same_tokens(case: str, text: str) -> None:
    compare(case, text)


@pytest.mark.parametrize("case", CASES)
def test_hard_texts_give_the_same_tokens_also_in_the_file_that_we_write(case: str) -> None:
    ours, _ = both(case)
    again = tokenizers.Tokenizer.from_str(json.dumps(to_hugging_face(ours)))
    for text in HARD:
        compare(case, text)
        assert again.encode(text, add_special_tokens=False).ids == ours.encode(text, special="all").tolist()


@pytest.mark.parametrize(
    "case", ["smollm", "qwen2", "added tokens", "metaspace always", "whitespace", "llama"]
)
def test_transformers_reads_our_checkpoint_with_the_same_ids(case: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours, theirs = both(case)
    model = cr.models.GPT(cr.models.GPTConfig(1, 1, 4, 8, ours.vocab_size))
    cr.io.save_pretrained(model, ours, tmp_path / "x")
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "x")
    for text in HARD:
        assert read.encode(text) == theirs.encode(text).ids
        ids = ours.encode(text, special="all").tolist()
        assert read.encode(text, add_special_tokens=False) == ids
    again = cr.io.load_pretrained(tmp_path / "x")[1]
    assert again == ours
