"""`chainrule align`: from a base and a file to a run that can be resumed, evaluated and sampled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.cli.main import main
from chainrule.text.chat.roles import chat_tokenizer
from chainrule.train.log import read
from tests.tasks.preferences.helpers import base, preferences


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    preferences(tmp_path)
    model, tokenizer = base()
    cr.io.save_pretrained(model, tokenizer, tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("method", ["dpo", "reward"])
def test_from_a_base_to_a_run_and_on(folder: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--max-steps", "6", "--eval-every", "3", "--json"]
    main(["align", method, "base", "preferences.jsonl", "--out", "run", *common])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["steps"] == 6 and found["model"] == {"dpo": "gpt", "reward": "gpt-reward"}[method]
    main(["align", method, "--resume", "run", "--max-steps", "9", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] == 9
    main(["align", method, "--config", "run/config.toml", "--out", "again", "--max-steps", "2", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] == 2
    main(["sample", "run", "--prompt", "say 3: ", *(["--max-new-tokens", "3"] if method == "dpo" else [])])
    assert "say 3:" in capsys.readouterr().out


def test_what_was_aligned_is_tuned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["--max-steps", "2", "--eval-every", "1", "--json"]
    main(["align", "reward", "base", "preferences.jsonl", "--out", "reward", *steps])
    policy = ["--max-new-tokens", "4", "--batch-size", "4", "--reward", "reward"]
    main(["align", "ppo", "base", "preferences.jsonl", "--out", "ppo", *policy, *steps])
    main(["align", "dpo", "base", "preferences.jsonl", "--out", "dpo", *steps])
    (folder / "text.txt").write_text("say 3: red cat " * 100, encoding="utf-8")
    for run, data in (("ppo", "text.txt"), ("dpo", "text.txt"), ("reward", "preferences.jsonl")):
        capsys.readouterr()
        main(["tune", run, data, "--method", "lora", "--rank", "1", "--out", f"tuned-{run}", *steps])
        said = capsys.readouterr()
        assert json.loads(said.out)["steps"] == 2
        assert "the old task is not measured" in said.err
        tuned, _ = cr.load(f"tuned-{run}")
        assert any("lora_A" in name for name in tuned.state())


def test_a_base_that_writes_no_text_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["align", "reward", "base", "preferences.jsonl", "--out", "reward", "--max-steps", "1", "--json"])
    said = refused(capsys, "align", "dpo", "reward", "preferences.jsonl", "--out", "no")
    assert "align dpo: BASE is a gpt-reward (must be one of gpt, llama" in said
    said = refused(capsys, "align", "ppo", "reward", "preferences.jsonl", "--reward", "reward", "--out", "no")
    assert "align ppo: BASE is a gpt-reward" in said
    assert not (folder / "no").exists()


FUNCTIONS = """
def fails(prompts, answers): raise KeyError("boom")
def text(prompts, answers): return "abc"
def nothing(prompts, answers): return [float("nan")] * len(answers)
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "rewards_of_mine:fails",
            "--reward-function rewards_of_mine:fails: rewards_of_mine.py, line 2: KeyError: 'boom'",
        ),
        ("math:sin", "--reward-function math:sin: TypeError"),
        ("rewards_of_mine:text", "could not convert string to float"),
        ("rewards_of_mine:nothing", "reward: gave nan for"),
    ],
)
def test_a_function_that_fails_is_named(
    folder: Path, name: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "rewards_of_mine.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(folder))
    words = ("align", "ppo", "base", "preferences.jsonl", "--max-new-tokens", "4", "--out", "run")
    assert said in refused(capsys, *words, "--reward-function", name)


def test_without_a_reward_the_flags_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "align", "ppo", "base", "preferences.jsonl", "--out", "run")
    assert "--reward RUN, or --reward-function" in said


@pytest.mark.parametrize("chats", [True, False])
def test_an_aligned_model_is_used_as_its_base_was(
    folder: Path, capsys: pytest.CaptureFixture[str], chats: bool
) -> None:
    model, tokenizer = base()
    if chats:
        tokenizer = chat_tokenizer(tokenizer)
        model = cr.models.make("gpt", **(vars(model.config) | {"vocab_size": tokenizer.vocab_size}))
    cr.io.save_pretrained(model, tokenizer, folder / "other")
    main(["align", "dpo", "other", "preferences.jsonl", "--out", "a run", "--max-steps", "1"])
    hint = capsys.readouterr().out.splitlines()[-1]
    assert hint.endswith("chat 'a run'" if chats else "sample 'a run'")


@pytest.mark.requirement("R-411")
def test_ppo_with_a_reward_model_and_with_a_function(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["align", "reward", "base", "preferences.jsonl", "--out", "reward", "--max-steps", "4", "--json"])
    common = [
        "base",
        "preferences.jsonl",
        "--max-new-tokens",
        "4",
        "--batch-size",
        "4",
        "--max-steps",
        "3",
        "--json",
    ]
    capsys.readouterr()
    main(["align", "ppo", *common, "--reward", "reward", "--out", "ppo", "--target-kl", "0.5"])
    assert json.loads(capsys.readouterr().out)["steps"] == 3
    main(["align", "ppo", "--resume", "ppo", "--max-steps", "4", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] == 4
    main(["align", "ppo", "--config", "ppo/config.toml", "--out", "again", "--json"])
    assert json.loads(capsys.readouterr().out)["steps"] == 4
    (folder / "my_rewards.py").write_text(
        "def short(prompts, answers):\n    return [-len(answer) for answer in answers]\n", encoding="utf-8"
    )
    main(
        [
            "align",
            "ppo",
            *common,
            "--reward-function",
            "my_rewards:short",
            "--method",
            "grpo",
            "--out",
            "grpo",
        ]
    )
    assert json.loads(capsys.readouterr().out)["steps"] == 3
    assert "my_rewards" not in (folder / "grpo" / "config.toml").read_text(encoding="utf-8")
    said = refused(capsys, "align", "ppo", "--resume", "grpo", "--max-steps", "4")
    assert "give it again: --reward-function my_rewards:short" in said
    main(
        [
            "align",
            "ppo",
            "--resume",
            "grpo",
            "--max-steps",
            "4",
            "--reward-function",
            "my_rewards:short",
            "--json",
        ]
    )
    assert json.loads(capsys.readouterr().out)["steps"] == 4
    for name, rule in (
        ("my_rewards", "must be MODULE:NAME"),
        ("my_rewards:long", "no such function"),
        ("no_such:x", "No module"),
    ):
        said = refused(capsys, "align", "ppo", *common, "--reward-function", name, "--out", "none")
        assert "--reward-function" in said and rule in said


def test_runs_are_examined_like_any_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--max-steps", "4", "--eval-every", "2", "--json"]
    for method in ("reward", "dpo"):
        main(["align", method, "base", "preferences.jsonl", "--out", method, *few])
    main(
        [
            "align",
            "ppo",
            "base",
            "preferences.jsonl",
            "--reward",
            "reward",
            "--out",
            "ppo",
            "--max-new-tokens",
            "4",
            *few,
        ]
    )
    capsys.readouterr()
    for method, score in (("dpo", "rewards/margins"), ("reward", "calibration_error")):
        main(["eval", method, "--json"])
        found = json.loads(capsys.readouterr().out)
        logged = [record for record in read(folder / method / "log.jsonl") if record.get("validation")]
        assert any(
            found["nats_per_pair"] == pytest.approx(record["validation"], rel=1e-5) for record in logged
        )
        assert score in found
        for command in (["doctor", method], ["diagnose", method], ["replay", method, "--step", "3"]):
            main(command)
            assert "finite" in (said := capsys.readouterr().out) or "gradient" in said
    main(["doctor", "ppo"])
    assert "are finite" in capsys.readouterr().out
    for command in (["diagnose", "ppo"], ["replay", "ppo", "--step", "2"]):
        assert refused(capsys, *command).startswith("error: ")


def test_a_policy_is_evaluated_by_the_reward_model_of_its_training(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["--max-steps", "4", "--eval-every", "2", "--save-every", "2", "--json"]
    main(["align", "reward", "base", "preferences.jsonl", "--out", "reward", *steps])
    policy = ["--max-new-tokens", "4", "--batch-size", "8", "--reward", "reward"]
    main(["align", "ppo", "base", "preferences.jsonl", "--out", "ppo", *policy, *steps])
    capsys.readouterr()
    main(["eval", "ppo", "--json"])
    found = json.loads(capsys.readouterr().out)
    logged = [record["validation"] for record in read(folder / "ppo" / "log.jsonl") if "validation" in record]
    assert any(found["objective"] == pytest.approx(-each, rel=1e-5) for each in logged)
    assert found["evaluated"] == found["available"] and "objective/kl" in found
    (folder / "prompts.txt").write_text("say 3: \nsay 4: \nsay 5: \n", encoding="utf-8")
    main(["eval", "ppo", "prompts.txt", "--json"])
    other = json.loads(capsys.readouterr().out)
    assert other["evaluated"] == 3 and other["objective"] != found["objective"]


def test_the_head_of_a_reward_model_learns_beside_a_frozen_body(folder: Path) -> None:
    config = cr.train.TrainConfig(max_steps=3, batch_size=4, lr=1e-2, eval_every=3, save_every=3)
    places = "reward", "preferences.jsonl", config, "gpt-reward", None, "base"
    method = cr.models.tuning.LoRA(rank=1)
    run = cr.runs.Run.new(*places, method=method)
    before = run.model.state()
    assert run.model.count(trainable=True) == method.n_params(cr.models.Reward.on(cr.load("base")[0]))
    run.train()
    after = cr.load("reward")[0].state()
    changed = {name for name, array in after.items() if (array != before[name]).any()}
    assert "score.weight" in changed and all("lora" in name for name in changed - {"score.weight"})


def test_ties_are_counted_and_prompts_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = folder / "preferences.jsonl"
    tie = json.dumps({"prompt": "say 1: ", "chosen": "red", "rejected": "red"}) + "\n"
    text = pairs.read_text(encoding="utf-8")
    pairs.write_text(text + 3 * tie, encoding="utf-8")
    for method in ("dpo", "reward"):
        main(["align", method, "base", str(pairs), "--skip-ties", "--max-steps", "1", "--out", method])
        assert "3 whose answers are the same are left out" in capsys.readouterr().out
        main(["eval", method, str(pairs), "--json"])
        found = json.loads(capsys.readouterr().out)
        assert found["ties"] == 3 and found["evaluated"] == len(text.splitlines())
    ties = folder / "ties.jsonl"
    ties.write_text(5 * tie, encoding="utf-8")
    for words in (["align", "dpo", "base", "ties.jsonl", "--skip-ties"], ["eval", "dpo", "ties.jsonl"]):
        assert "the answers of all 5 pairs are the same (some must differ)" in refused(capsys, *words)
    one = {"prompt": "say 1: ", "chosen": "red", "rejected": "cat"}
    (folder / "one.jsonl").write_text(50 * (json.dumps(one) + "\n"), encoding="utf-8")
    said = refused(capsys, "align", "dpo", "base", "one.jsonl")
    assert "50 pairs of 1 prompt (must be enough prompts to hold back one in ten)" in said


def test_a_reward_that_is_gone_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["--max-steps", "1", "--json"]
    main(["align", "reward", "base", "preferences.jsonl", "--out", "reward", *steps])
    policy = ["--max-new-tokens", "4", "--batch-size", "8", "--reward", "reward"]
    main(["align", "ppo", "base", "preferences.jsonl", "--out", "ppo", *policy, *steps])
    (folder / "reward").rename(folder / "elsewhere")
    capsys.readouterr()
    for words in (["align", "ppo", "--resume", "ppo", "--max-steps", "2"], ["eval", "ppo"]):
        said = refused(capsys, *words)
        assert "error: ppo: its reward " in said and "reward is not there (put it back" in said


def test_the_settings_suit_the_number_of_pairs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["align", "dpo", "base", "preferences.jsonl"])
    saved = cr.runs.Run.resume("runs/dpo").trainer.config
    assert (saved.max_steps, saved.batch_size, saved.lr, saved.weight_decay) == (21, 16, 5e-5, 0.0)
    out = capsys.readouterr().out
    assert "(a guess: 0.6931)" in out and "generate text with" in out


def test_what_is_refused_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "align", "dpo", "base")
    assert said == "error: align dpo: FILE is missing (give BASE and FILE, or --resume RUN)\n"
    said = refused(capsys, "align", "dpo", "base", "preferences.jsonl", "--loss", "ipoo")
    assert "--loss" in said and "did you mean ipo?" in said
    with (folder / "preferences.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"prompt": "say 1: ", "chosen": "red", "rejected": "red"}\n')
    said = refused(capsys, "align", "reward", "base", "preferences.jsonl")
    assert "line 121: chosen and rejected are the same" in said and "--skip-ties" in said
    main(["align", "reward", "base", "preferences.jsonl", "--skip-ties", "--out", "run", "--max-steps", "2"])
    said = refused(capsys, "align", "dpo", "--resume", "run")
    assert "run is not a run of align dpo" in said and "align reward --resume run" in said
    said = refused(capsys, "align", "reward", "--resume", "run", "--center", "0.5")
    assert "--center is 0.5, in the run 0.0 (leave it out)" in said
    said = refused(capsys, "align", "reward", "base", "preferences.jsonl", "--resume", "run")
    assert "BASE is base, the run in run has its own (leave it out)" in said
