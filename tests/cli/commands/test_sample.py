"""`chainrule sample`: every option by its flag, for people and machines; errors in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule.cli import main
from chainrule.cli.commands.sample import DRAWN
from chainrule.generate import Decoder, score
from chainrule.generate.score import Scorer
from chainrule.models import Seq2Seq
from chainrule.runs import load_language_model
from chainrule.runs.load import load
from chainrule.tasks.pairs.translation import translate_texts

TEXT = "The quick brown fox jumps over the lazy dog.\nUser: hi\nAssistant: hello\n" * 40
SIZE = [
    "--n-layer", "1", "--n-head", "2", "--n-embd", "32", "--block-size", "32", "--max-steps", "120", "--lr", "0.02",
    "--seed", "1",
]  # fmt: skip


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    (folder / "text.txt").write_text(TEXT)
    main(["train", "gpt", str(folder / "text.txt"), *SIZE, "--out", str(folder / "run")])
    return folder / "run"


@pytest.fixture
def sample(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*flags: str) -> str:
        capsys.readouterr()
        main(["sample", str(run_folder), *flags])
        return capsys.readouterr().out

    return call


def test_the_scripted_call_is_greedy_and_repeatable(sample: Any) -> None:
    flags = ("--prompt", "The ", "--temperature", "0", "--max-new-tokens", "50")
    text = sample(*flags)
    assert text.startswith("The ") and len(text) == 4 + 50 + 1
    assert sample(*flags) == text == sample(*flags, "--seed", "9")
    assert json.loads(sample(*flags, "--json"))["text"] == text[4:-1]


def test_every_option_of_sampling_has_a_flag(sample: Any) -> None:
    flags = [
        "--prompt", "The", "--max-new-tokens", "40", "--temperature", "5", "--top-k", "20", "--top-p", "0.95",
        "--min-p", "0.001", "--typical", "0.99", "--repetition-penalty", "1.1", "--frequency-penalty", "0.1",
        "--presence-penalty", "0.1", "--logit-bias", "5", "-inf", "--logit-bias", "3", "2", "--stop", "zz",
        "--stop", "qq", "--stop-tokens", "4", "--seed", "3", "--weights", "q8_0",
        "--cache", "int8",
    ]  # fmt: skip
    assert sample(*flags) == sample(*flags)
    assert sample(*flags) != sample(*flags, "--seed", "4")


def test_pairs_of_a_bias_follow_one_flag_or_several(sample: Any, run_folder: Path) -> None:
    third = load_language_model(run_folder)[1].decode([3])
    flags = ("--prompt", "The", "--max-new-tokens", "9", "--temperature", "0", "--logit-bias")
    assert sample(*flags, "5", "90", "7", "-inf", "3", "99") == f"The{9 * third}\n"
    assert sample(*flags, "5", "90", "--logit-bias", "3", "99") == sample(*flags, "5", "90", "3", "99")


def test_the_help_names_what_asks_a_translator_to_draw(capsys: pytest.CaptureFixture[str]) -> None:
    """And says of a seed by itself that it does not."""
    with pytest.raises(SystemExit):
        main(["sample", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    _, listed = said.split("what asks it to draw: ", 1)
    names = listed.partition(".")[0].replace(" or ", ", ").split(", ")
    assert {name.strip().lstrip("-").replace("-", "_") for name in names} == DRAWN
    assert "where nothing is drawn it does not count" in said


def test_a_stop_string_ends_the_text_before_it(sample: Any) -> None:
    result = json.loads(sample("--prompt", "The quick ", "--temperature", "0", "--stop", "jumps", "--json"))
    assert result["text"] == "brown fox " and result["finish"] == "stop"


def test_several_prompts_and_seeds_are_those_of_single_calls(sample: Any, tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("The\nUser: hi there old dog and fox and dog\n\n")
    flags = ("--max-new-tokens", "15", "--temperature", "1", "--json")
    many = sample(
        "--prompts-file", str(tmp_path / "prompts.txt"), "--num-samples", "2", "--seed", "7", *flags
    )
    found = [json.loads(line) for line in many.splitlines()]
    assert [(r["prompt"], r["seed"]) for r in found][1:3] == [
        ("The", 8),
        ("User: hi there old dog and fox and dog", 7),
    ]
    assert len(found) == 6
    for r in found:
        assert json.loads(sample("--prompt", r["prompt"], "--seed", str(r["seed"]), *flags)) == r
    people = sample("--prompt", "The", "--num-samples", "2", "--seed", "7", *flags[:-1])
    assert f"--- 2: seed 8\nThe{found[1]['text']}\n" in people


def test_log_probabilities_of_prompt_and_text(sample: Any, run_folder: Path) -> None:
    flags = ("--prompt", "The", "--max-new-tokens", "5", "--logprobs")
    r = json.loads(sample(*flags, "--json"))
    tokens = [*r["prompt_logprobs"], *r["logprobs"]]
    model, tokenizer = load_language_model(run_folder)
    assert tokenizer.decode([t["id"] for t in tokens]) == "The" + r["text"]
    assert tokens[0]["logprob"] is None
    want = score(model, [t["id"] for t in tokens])
    np.testing.assert_allclose([t["logprob"] for t in tokens[1:]], want, atol=1e-4)
    assert f"{tokens[1]['logprob']:.4f}  'h'" in sample(*flags)
    assert (
        json.loads(sample("--prompt", "The", "--max-new-tokens", "0", "--logprobs", "--json"))["text"] == ""
    )


@pytest.mark.parametrize("options", ["--num-samples 3", "--num-samples 3 --beam 3"])
def test_log_probabilities_pack_the_weights_once(
    sample: Any, run_folder: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    """Of many texts too: by one decoder beside the one that writes."""
    made: list[Decoder] = []
    packed = Decoder.__init__

    def counted(decoder: Decoder, *given: Any, **options: Any) -> None:
        packed(decoder, *given, **options)
        made.append(decoder)

    monkeypatch.setattr(Decoder, "__init__", counted)
    flags = ("--prompt", "The", *options.split(), "--max-new-tokens", "4", "--logprobs", "--weights", "int8")
    rows = [json.loads(line) for line in sample(*flags, "--json").splitlines()]
    assert len(rows) == 3 and len(made) == 2
    model, tokenizer = load_language_model(run_folder)
    before = tokenizer.encode("The").tolist()
    for row in rows:
        ids = [*before, *(token["id"] for token in row["logprobs"])]
        want = score(model, ids, weights="int8")[len(before) - 1 :]
        np.testing.assert_allclose([token["logprob"] for token in row["logprobs"]], want, atol=1e-4)


def test_samples_of_a_prompt_share_its_scores(sample: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[int] = []
    alone = Scorer.score

    def counted(scorer: Scorer, ids: Any) -> Any:
        scored.append(len(ids))
        return alone(scorer, ids)

    monkeypatch.setattr(Scorer, "score", counted)
    sample("--prompt", "The", "--num-samples", "20", "--max-new-tokens", "1", "--logprobs")
    assert scored == [3]


def test_a_search_gives_the_best_first(sample: Any) -> None:
    flags = ["--prompt", "The", "--max-new-tokens", "12", "--beam", "3", "--num-samples", "2", "--logprobs"]
    first, second = (json.loads(line) for line in sample(*flags, "--json").splitlines())
    assert first["score"] >= second["score"] and first["text"] != second["text"]
    assert sum(t["logprob"] for t in first["logprobs"]) == pytest.approx(first["logprob"], abs=1e-4)
    assert sample(*flags).startswith("--- 1: logprob ")
    greedy = sample("--prompt", "The", "--max-new-tokens", "12", "--temperature", "0")
    narrow = json.loads(sample(*["--prompt", "The", "--max-new-tokens", "12", "--beam", "1", "--json"]))
    assert "The" + narrow["text"] + "\n" == greedy


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--top-p 2", "--top-p is 2.0 (must be from 0 to 1)"),
        ("--logit-bias 500 1", "--logit-bias has token 500 (must be from 0 to"),
        ("--num-samples 0", "--num-samples is 0"),
        (
            "--num-samples 1000000000000",
            "--num-samples is 1000000000000 (must be an integer, from 1 to 1000000000)",
        ),
        ("--beam 2 --num-samples 3", "--num-samples is 3, --beam 2"),
        ("--beam 0", "--beam is 0 (must be an integer, from 1 to 1000)"),
        ("--beam 1000000", "--beam is 1000000 (must be an integer, from 1 to 1000)"),
        ("--logit-bias 3 2 5", "--logit-bias"),
        ("--beam 2 --stop a", "--stop is given with beam"),
        ("--beam 2 --temperature 0.5", "--temperature is given with beam (a search does not draw"),
        ("--beam 2 --top-k 5", "--top-k is given with beam"),
        ("--beam 2 --repetition-penalty 1.1", "--repetition-penalty is given with beam"),
        ("--beam 2 --logit-bias 3 2", "--logit-bias is given with beam"),
        ("--length-penalty 1", "--length-penalty is given without beam"),
        ("--beam 2 --seed 7", "--seed is given with beam"),
        ("--prompts-file none.txt", "none.txt: no such file"),
        ("--prompts-file .", "is a directory (must be a file with a prompt on each line)"),
        (
            "--repetition-penalty 1e308",
            "--repetition-penalty is 1e+308 (must be from 1e-6 to 1e6; 1 is none)",
        ),
        ("--prompt a --prompts-file none.txt", "must be one of them"),
    ],
)
def test_bad_options_are_one_line(
    run_folder: Path, capsys: pytest.CaptureFixture[str], flags: str, message: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sample", str(run_folder), *flags.split()])
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1 and message in err


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has begun to learn capital letters."""
    folder = tmp_path_factory.mktemp("translate")
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcd"), size=rng.integers(2, 6))) for _ in range(200)]
    (folder / "pairs.tsv").write_text("".join(f"{word}\t{word.upper()}\n" for word in words))
    size = ["--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "8", "--max-steps", "40"]
    size += ["--lr", "0.01", "--tokenizer", "char"]
    main(["train", "seq2seq", str(folder / "pairs.tsv"), *size, "--out", str(folder / "run")])
    return folder / "run"


def test_an_encoder_decoder_translates(translator: Path, tmp_path: Path, capsys: Any) -> None:
    def call(*flags: str) -> str:
        capsys.readouterr()
        main(["sample", str(translator), *flags])
        return str(capsys.readouterr().out)

    model, tokenizer = load(translator)
    assert isinstance(model, Seq2Seq)
    sources = ["abc", "d", "abcdabcd"]  # the last fills the context
    (tmp_path / "sources.txt").write_text("\n".join(sources))
    many = ("--prompts-file", str(tmp_path / "sources.txt"))
    assert call(*many, "--temperature", "0").splitlines() == translate_texts(model, tokenizer, sources)
    assert call(*many) == call(*many, "--temperature", "0")  # the likeliest, unless drawing is asked for
    assert call(*many, "--seed", "7") == call(*many, "--temperature", "0")
    assert len({*call("--prompt", "abcd", "--num-samples", "9", "--temperature", "9").splitlines()[1::2]}) > 1
    best = [
        json.loads(line) for line in call(*many, "--beam", "3", "--num-samples", "2", "--json").splitlines()
    ]
    assert [r["prompt"] for r in best] == [source for source in sources for _ in range(2)]
    assert all(one["score"] >= two["score"] for one, two in zip(best[::2], best[1::2], strict=True))
    drawn = call(*many, "--temperature", "2", "--num-samples", "2", "--seed", "5", "--json").splitlines()
    alone = call("--prompt", "d", "--temperature", "2", "--seed", "6", "--json")
    assert json.loads(drawn[3]) == json.loads(alone)
    assert len(call(*many, "--temperature", "0", "--weights", "bf16").splitlines()) == 3
    people = call("--prompt", "abc", "--logprobs", "--temperature", "0")
    assert people.startswith(f"--- 1: seed 0\nabc -> {translate_texts(model, tokenizer, ['abc'])[0]}\n")
    for flags, message in (
        (["--prompt", ""], "at least one token"),
        (
            ["--prompt", "abc" * 30],
            "bcabc…' of 90 tokens (must be at most 8, the context of the model: make it",
        ),
        (["--prompt", "abc", "--beam", "2", "--logprobs"], "--logprobs is given with beam"),
        (["--prompt", "abc", "--beam", "2", "--top-p", "0.5"], "--top-p is given with beam"),
    ):
        with pytest.raises(SystemExit):
            call(*flags)
        assert message in capsys.readouterr().err
