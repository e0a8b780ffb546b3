"""Instruction tuning: what is learned, from a base of any kind, with the same bits after a stop, and its use."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli.render.result import next_command
from chainrule.data import Conversation, ConversationCorpus, load_conversations
from chainrule.errors import ConfigError, DataError
from chainrule.io.hf.pretrained import save_pretrained
from chainrule.models import tuning
from chainrule.models.suited import TUNING_RATES, for_tuning, tuning_warning
from chainrule.models.tuning import BitFit, BottleneckAdapter, LoRA, Method, Prefix, Prompt
from chainrule.models.tuning.parts import base_name
from chainrule.runs import Run, checkpoint
from chainrule.runs.load import open_model, task_of_run
from chainrule.tasks import AnswerOptions, InstructionTask
from chainrule.text import BPETokenizer, CharTokenizer, Conventions
from chainrule.text.chat.roles import TEMPLATE
from chainrule.train import TrainConfig
from chainrule.types import IGNORE
from tests.models.tiny import tiny
from tests.runs.helpers import losses, validations
from tests.runs.test_run import interrupt
from tests.text.chat.test_template import CHATML
from tests.vectors import vector

CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Peru": "Lima", "Cuba": "Havana",
    "Egypt": "Cairo", "Kenya": "Nairobi", "Chile": "Santiago", "Norway": "Oslo",
}  # fmt: skip
TALKS = tuple(Conversation.of(f"Capital of {land}?", city) for land, city in CAPITALS.items())
CORPUS = ConversationCorpus("capitals", "test", TALKS)
TOKENIZER = CharTokenizer.train("".join(InstructionTask.texts(CORPUS, held_out=True)))
IDS = np.arange(12)[None]
SETTINGS = {"max_steps": 30, "batch_size": 4, "lr": 1e-2, "warmup": 3, "eval_every": 10, "save_every": 10}


def base(family: str = "gpt", block_size: int = 48, **more: Any) -> Any:
    sizes = {
        "n_layer": 1,
        "n_head": 2,
        "n_embd": 16,
        "block_size": block_size,
        "vocab_size": TOKENIZER.vocab_size,
    }
    cr.seed(0)
    return cr.models.make(family, **sizes | more)


def written(folder: Path) -> Path:
    path = folder / "capitals.jsonl"
    records = [{"messages": talk.messages} for talk in TALKS]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def new_run(folder: Path, name: str = "run", start: Any = None, **settings: Any) -> Run:
    config = TrainConfig(**SETTINGS | settings)
    data = written(folder)
    start = start or base()
    return Run.new(folder / name, data, config, "gpt", TOKENIZER, start, task="instruction")


@pytest.mark.requirement("R-378")
def test_the_loss_is_the_mean_over_answers() -> None:
    """The worked example: four tokens of known probability, of which the last two are answers."""
    example = vector("der-instruction-mask")
    p, mask = np.array(example.inputs["p"]), np.array(example.inputs["mask"], bool)
    rest = np.log((1 - p)[:, None] / 2 * np.ones((4, 2)))
    logits = cr.Tensor(np.concatenate([np.log(p)[:, None], rest], axis=1), requires_grad=True)
    targets = np.where(mask, 0, IGNORE)
    loss = cr.ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE)
    example.check({"sum": 2 * loss.item(), "mean_over_response": loss.item()})
    loss.backward()
    assert not logits.grad[~mask].any() and logits.grad[mask].any()


@pytest.mark.requirement("R-378")
def test_given_tokens_get_no_gradient_of_their_logits() -> None:
    task = InstructionTask.of(CORPUS, TOKENIZER)
    model = task.begun_with(base(), 0)
    task = task.fitted(model)
    inputs, targets = task.batches(model, batch_size=2).batch(0)
    with cr.autograd.no_grad():
        computed = cr.ops.linear(model.hidden(*inputs), model.head.weight).numpy()
    logits = cr.Tensor(computed, requires_grad=True)
    cr.ops.cross_entropy(logits, targets=targets, ignore_index=IGNORE).backward()
    given = targets == IGNORE
    assert not logits.grad[given].any() and np.abs(logits.grad[~given]).sum(axis=-1).all()
    learned = "".join(task.tokenizer.decode(row[row != IGNORE]) for row in targets)
    assert all(city in "".join(CAPITALS.values()) for city in learned.replace(" ", "").split("<|end|>"))


@pytest.mark.requirement("R-377")
def test_token_counts_of_both_parts_are_stored(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=1)
    run.train()
    stored = open_model(run.folder).checkpoint.training["conversations"]  # type: ignore[union-attr]
    training, held_out = load_conversations(tmp_path / "capitals.jsonl").parts()
    for name, talks in (("training", training), ("validation", held_out)):
        given = sum(len(f"u {talk.question} a") for talk in talks)  # a token for each role
        answers = sum(len(f" {talk.answer}e") for talk in talks)
        want = {"conversations": len(talks), "prompt_tokens": given, "response_tokens": answers}
        assert stored[name] == want
    assert (stored["cut"], stored["dropped"]) == (0, 0)


@pytest.mark.parametrize("family", ["gpt", "llama", "neox"])
def test_the_loss_on_answers_falls_for_every_transformer(tmp_path: Path, family: str) -> None:
    start = base(family, **{} if family != "llama" else {"n_kv_head": 1, "n_hidden": 24})
    run = Run.new(
        tmp_path / "run",
        written(tmp_path),
        TrainConfig(**SETTINGS),
        family,
        TOKENIZER,
        start,
        task="instruction",
    )
    before = run.model.eval().mean_loss(run.trainer.eval_batches)
    run.train()
    model, tokenizer = cr.load(run.folder)
    assert model.config.vocab_size == tokenizer.vocab_size == TOKENIZER.vocab_size + 4
    assert model.mean_loss(run.trainer.eval_batches) < before - 0.5
    assert task_of_run(open_model(run.folder)) is InstructionTask


def test_a_stopped_run_continues_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = new_run(tmp_path, "whole")
    whole.train()
    stopped = new_run(tmp_path, "stopped")
    interrupt(stopped, 17, monkeypatch)
    resumed = Run.resume(stopped.folder)
    resumed.train()
    assert losses(resumed) == losses(whole) and validations(resumed) == validations(whole)
    for name, value in whole.model.state().items():
        assert np.array_equal(resumed.model.state()[name], value), name


def test_rows_hold_several_conversations_and_say_what_was_cut() -> None:
    long = Conversation.of("Tell me all.", "x" * 60)
    hopeless = Conversation.of("y" * 70, "no")
    corpus = ConversationCorpus("some", "test", (*TALKS, long, hopeless))
    tokenizer = CharTokenizer.train("".join(InstructionTask.texts(corpus, held_out=True)))
    task = InstructionTask.of(corpus, tokenizer, eval_only=False)
    model = task.begun_with(base(vocab_size=tokenizer.vocab_size, block_size=64), 0)
    task = task.fitted(model)
    kept = task.kept
    lost = len(kept.cut) + len(kept.dropped)
    assert lost == sum(talk in task_training(corpus) for talk in (long, hopeless)) and lost
    assert f"rows of 64 tokens: {kept}; " in task.amount()
    batches = task.batches(model, batch_size=1)
    assert len(batches.rows) < len(batches.documents)
    assert "tokens of answers are learned" in task.amount()


def task_training(corpus: ConversationCorpus) -> list[Conversation]:
    return corpus.parts()[0]


def test_a_model_with_a_chat_template_keeps_it_and_its_vocabulary(tmp_path: Path) -> None:
    tokenizer = BPETokenizer.train("", 258, special_tokens=["<|im_start|>", "<|im_end|>"])
    tokenizer.conventions = Conventions(eos=(257,), chat_template=CHATML)
    start = base(vocab_size=264, block_size=96)  # rows to spare
    run = Run.new(
        tmp_path / "run",
        written(tmp_path),
        TrainConfig(**SETTINGS),
        "gpt",
        tokenizer,
        start,
        task="instruction",
    )
    assert run.task.added == 0 and run.model.config.vocab_size == 264  # type: ignore[attr-defined]
    _, targets = run.trainer.batches.batch(0)
    answers = tokenizer.decode(targets[targets != IGNORE]).split("<|im_end|>")
    assert set(answers) <= {*CAPITALS.values(), ""}
    run.train()
    loaded, own = cr.load(run.folder)
    assert own.conventions.chat_template == CHATML and loaded.config.vocab_size == 264


def test_answers_are_those_of_a_user_turn(tmp_path: Path) -> None:
    run = new_run(tmp_path, max_steps=150, batch_size=8)
    run.train()
    model, tokenizer = run.model.eval(), run.tokenizer
    options = AnswerOptions(sampling=cr.generate.Sampling(max_new_tokens=30, temperature=0))
    trained = run.task.corpus.parts()[0][:3]  # type: ignore[attr-defined]
    found = list(InstructionTask.answer(model, tokenizer, [talk.question for talk in trained], options))
    assert [answer["text"].strip() for answer in found] == [talk.answer for talk in trained]
    assert {answer["finish"] for answer in found} == {"stop"}
    streamed = "".join(InstructionTask.stream(model, tokenizer, trained[0].question, options))
    assert streamed == found[0]["text"]
    asked = [([{"role": "user", "content": talk.question}], options.sampling) for talk in trained]
    assert [r.text for r in cr.generate.answers(model, tokenizer, asked)] == [a["text"] for a in found]
    question = run.task.questions[0]  # type: ignore[attr-defined]
    assert run.sample().startswith(f"{question}\n")
    assert next_command(run).startswith("talk with it: ")
    assert tokenizer.conventions.chat_template == TEMPLATE


@pytest.mark.requirement("R-383", "R-390")
def test_rate_and_passes_suit_a_model_that_knows_its_language(tmp_path: Path) -> None:
    run = Run.new(tmp_path / "run", written(tmp_path), None, "gpt", TOKENIZER, base(), task="instruction")
    config = run.trainer.config
    pretraining = cr.train.config.defaults("gpt").lr
    assert 10 <= pretraining / config.lr <= 100  # type: ignore[operator]
    rows = len(run.trainer.batches.rows)
    assert 1 <= config.max_steps * config.batch_size / rows <= 3 + config.batch_size
    settings = for_tuning(rows=1000, rate=1e-4).training
    assert 1e-6 <= settings["lr"] <= 1e-5 and settings["max_steps"] * settings["batch_size"] == 3000
    assert tuning_warning(1e-5, 1e-4) == ""
    assert tuning_warning(2e-5, 1e-4).startswith(
        "learning rate 2e-05, in the pretraining 0.0001 (must be at most a tenth"
    )
    assert TUNING_RATES.keys() == tuning.METHODS.keys()
    assert all(TUNING_RATES[name] > TUNING_RATES["full"] == 0.1 for name in TUNING_RATES if name != "full")
    assert not any(tuning_warning(1.0, 1e-4, name) for name in TUNING_RATES if name != "full")


@pytest.mark.parametrize(
    ("family", "said"),
    [("lstm", "takes no new tokens (must be a transformer that writes"), ("mlp", "takes no new tokens")],
)
def test_models_that_do_not_attend_are_refused(tmp_path: Path, family: str, said: str) -> None:
    start = tiny(family, vocab_size=TOKENIZER.vocab_size)
    with pytest.raises(ConfigError) as error:
        Run.new(
            tmp_path / "run",
            written(tmp_path),
            TrainConfig(**SETTINGS),
            family,
            TOKENIZER,
            start,
            task="instruction",
        )
    assert said in str(error.value)


def test_a_new_model_may_begin_with_conversations(tmp_path: Path) -> None:
    run = Run.new(
        tmp_path / "run", written(tmp_path), TrainConfig(**SETTINGS), "gpt", task="instruction",
        n_layer=1, n_head=2, n_embd=16, block_size=40,
    )  # fmt: skip
    first = run.model.eval().mean_loss(run.trainer.eval_batches)
    assert first == pytest.approx(math.log(run.tokenizer.vocab_size), rel=0.05)
    run.train()
    assert validations(run)[-1][1] < first
    other = Run.new(
        tmp_path / "lstm", written(tmp_path), TrainConfig(**SETTINGS), "gpt", "bpe:300", task="instruction", n_embd=16,
        n_head=2,
    )  # fmt: skip
    assert other.tokenizer.vocab_size <= 304 and "<|end|>" in other.tokenizer.special_ids
    with pytest.raises(ConfigError, match="a LSTMLM does not learn from conversations"):
        Run.new(tmp_path / "x", written(tmp_path), TrainConfig(**SETTINGS), "lstm", task="instruction")


def test_a_window_that_holds_no_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none of \d+ to evaluate on has an answer within 8 tokens"):
        new_run(tmp_path, start=base(block_size=8))


def tuned(folder: Path, method: Method, base_sizes: dict[str, Any], **settings: Any) -> tuple[Any, Run]:
    """A base whose rows are as large as learned ones, and a run that tunes it."""
    start = base(**base_sizes)
    tables = {
        name: 25 * array for name, array in start.state().items() if name.startswith(("wte", "lm_head"))
    }
    start.load(start.state() | tables)
    save_pretrained(start, TOKENIZER, folder / "base")
    config = TrainConfig(**SETTINGS | {"max_steps": 60, "lr": 3e-2} | settings)
    places = folder / "run", written(folder), config, "gpt", None, folder / "base"
    return start, Run.new(*places, task="instruction", method=method)


@pytest.mark.requirement("R-386")
@pytest.mark.parametrize("sizes", [{}, {"tied": False}])
def test_with_lora_the_base_stays_as_it_was_and_rows_of_new_tokens_learn(
    tmp_path: Path, sizes: dict[str, Any]
) -> None:
    start, run = tuned(tmp_path, LoRA(rank=4, targets=("q", "v", "o", "mlp")), sizes)
    fresh, rows = run.model.state(), TOKENIZER.vocab_size
    grown = cr.models.with_tokens(start, run.tokenizer.vocab_size, run.tokenizer.vocab_size - rows, 0).eval()
    np.testing.assert_array_equal(run.model.eval()(IDS).numpy(), grown(IDS).numpy())
    answers = [run.trainer.batches.batch(step) for step in range(4)]
    before = run.model.mean_loss(answers)
    run.train()
    model, tokenizer = cr.load(run.folder)
    assert model.mean_loss(answers) < before - 0.5
    tables = {"wte"} if not sizes else {"wte", "lm_head"}
    learned = {f"{table}.token_rows" for table in tables}
    for name, array in model.arrays().items():
        if name.removesuffix(".base.weight") in tables:
            plain = start.arrays()[base_name(name)]
            assert np.array_equal(array[:rows], plain) and not np.array_equal(array, fresh[name])
        else:
            assert np.array_equal(array, fresh[name]) != ("lora" in name or name in learned), name
    again, _ = cr.load(tmp_path / "base")
    assert all(np.array_equal(array, start.arrays()[name]) for name, array in again.arrays().items())
    assert tokenizer.conventions.chat_template == TEMPLATE


@pytest.mark.parametrize(
    "method", [LoRA(rank=2), BottleneckAdapter(bottleneck=2), Prefix(length=2), Prompt(length=2), BitFit()]
)
def test_the_adapter_holds_rows_of_new_tokens_and_no_table(
    tmp_path: Path, method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, run = tuned(tmp_path, method, {}, max_steps=10)
    added = run.tokenizer.vocab_size - TOKENIZER.vocab_size
    new = tuple(range(TOKENIZER.vocab_size, run.tokenizer.vocab_size))
    assert run.method == replace(method, tokens=new) and added > 1
    plain = method.n_params(start)
    assert run.model.count(trainable=True) == plain + added * start.config.n_embd
    interrupt(run, 5, monkeypatch)
    Run.resume(run.folder).train()
    loaded, _ = cr.load(run.folder / "checkpoints" / "step_000010")
    saved = checkpoint.load(run.folder / "checkpoints" / "step_000010").adapter_model
    shapes = [np.shape(array) for array in saved.values()]
    assert (added, start.config.n_embd) in shapes and run.model.config.vocab_size not in map(max, shapes)
    (tmp_path / "whole").mkdir()
    whole = tuned(tmp_path / "whole", method, {}, max_steps=10)[1]
    whole.train()
    np.testing.assert_array_equal(loaded(IDS).numpy(), whole.model.eval()(IDS).numpy())
    assert replace(Run.resume(run.folder).method, tokens=()) == method


def test_merged_and_decoded_a_model_has_its_rows_of_new_tokens(tmp_path: Path) -> None:
    _, run = tuned(tmp_path, LoRA(rank=2), {"tied": False}, max_steps=20)
    run.train()
    tuned_model, tokenizer = cr.load(run.folder)
    merged = tuning.merged(tuned_model)
    ids = np.concatenate([IDS, np.arange(TOKENIZER.vocab_size, tokenizer.vocab_size)[None]], axis=1)
    np.testing.assert_allclose(merged(ids).numpy(), tuned_model(ids).numpy(), rtol=0, atol=1e-5)
    rows = tuned_model.lm_head.token_rows.array
    np.testing.assert_array_equal(merged.lm_head.weight.array[TOKENIZER.vocab_size :], rows)
    decoder = cr.generate.Decoder(run.model)  # of a model whose last step was not yet read
    np.testing.assert_allclose(
        decoder.prefill(ids[0])[0], run.model.eval()(ids).numpy()[0, -1], rtol=0, atol=1e-4
    )


def test_rows_that_a_model_has_to_spare_learn_in_their_place(tmp_path: Path) -> None:
    spare = TOKENIZER.vocab_size + 9
    start, run = tuned(tmp_path, LoRA(rank=2), {"vocab_size": spare}, max_steps=10)
    run.train()
    model, tokenizer = cr.load(run.folder)
    new = np.arange(TOKENIZER.vocab_size, tokenizer.vocab_size)
    changed = (model.wte.base.weight.array != start.wte.weight.array).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(changed), new)
