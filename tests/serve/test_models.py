"""What is served: names, families, formats of conversations, tokens as text."""

from __future__ import annotations

from pathlib import Path

import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.errors import ConfigError
from chainrule.generate import Sampling
from chainrule.serve.models import ModelPath, Models, Served, load_models
from chainrule.text import FORMATS, BPETokenizer, CharTokenizer
from tests.generate.test_requests import model_of
from tests.serve.conftest import char_model, writing_model


@pytest.mark.parametrize(
    ("word", "name", "path"),
    [
        ("runs/demo", "demo", "runs/demo"),
        ("small=a/b", "small", "a/b"),
        ("org/m-1.5:x=d", "org/m-1.5:x", "d"),
    ],
)
def test_a_model_has_a_name(word: str, name: str, path: str) -> None:
    assert ModelPath.of(word) == ModelPath(name, Path(path))


@pytest.mark.parametrize("word", ["=a", "a b=c", "a=", '"x"=y'])
def test_a_name_is_plain(word: str) -> None:
    with pytest.raises(ConfigError, match="NAME=DIR"):
        ModelPath.of(word)


def test_names_differ() -> None:
    with pytest.raises(ConfigError, match="two models named tiny"):
        Models([char_model(), char_model()])


def test_parts_of_characters_are_written_as_bytes() -> None:
    tokenizer = BPETokenizer.train("", 257, special_tokens=["<|end|>"])
    served = Served("bytes", writing_model(257), tokenizer)
    assert [served.token_text(id) for id in tokenizer.encode("aé").tolist()] == [
        "a",
        r"bytes:\xc3",
        r"bytes:\xa9",
    ]
    assert served.token_text(256) == "<|end|>" and served.longest_token == 7


def test_an_answer_ends_where_the_format_ends_it() -> None:
    served = char_model()
    sampling = served.answering(Sampling(stop=("x",), stop_tokens=(3,)))
    assert sampling.stop == ("x",) and sampling.stop_tokens == (3, served.tokenizer.special_ids["<|end|>"])


def test_a_model_of_few_characters_is_asked_in_lines() -> None:
    names = Served("names", writing_model(5), CharTokenizer("abem\n"))
    assert names.format is FORMATS["lines"] and names.answering(Sampling()).stop == ("\n",)


def test_what_neither_writes_nor_embeds_is_refused() -> None:
    model = cr.models.make("seq2seq", n_layer=1, n_head=2, n_embd=16, vocab_size=11)
    with pytest.raises(
        ConfigError, match=r"serve: x is a .* \(must be a language model, or one with a BERT inside"
    ):
        Served("x", model, char_model().tokenizer)
    with pytest.raises(ConfigError, match="must be fp32"):
        Served("x", model_of("mlp"), char_model().tokenizer, weights="int8")


def test_runs_adapters_and_drafts_are_loaded_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * 40)
    small = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--max-steps", "2"]
    base = str(tmp_path / "base")
    main(["train", "gpt", str(tmp_path / "text.txt"), *small, "--out", base])
    tuned = ["--method", "lora", "--max-steps", "2", "--out", str(tmp_path / "tuned")]
    main(["tune", base, str(tmp_path / "text.txt"), *tuned])
    told: list[str] = []
    paths = [ModelPath.of(base), ModelPath.of(f"lora={tmp_path / 'tuned'}")]
    models = load_models(paths, weights="int8", slots=2, queue=1, draft=base, tell=told.append)
    assert list(models.by_name) == ["base", "lora"] and told == [base, "base", "lora"]
    for served in models:
        assert served.writer is not None and served.writer.capacity == 3 and served.writer.drafter is not None
    assert load_models(paths[:1], draft="ngram").first.writer.drafter is not None
