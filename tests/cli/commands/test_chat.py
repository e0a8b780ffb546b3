"""`chainrule chat`: a play with two speakers, or the model's own template; what `sample` does with special tokens."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.cli import main
from chainrule.cli.commands.chat import Command, Conversation
from chainrule.generate import complete
from chainrule.generate.sampling import Sampling
from chainrule.io import save_pretrained
from chainrule.runs import load_language_model
from chainrule.text import BPETokenizer, CharTokenizer, Conventions, chat_ids
from tests.cli.commands.test_sample import SIZE, TEXT

Talk = Callable[..., str]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
START, END, TEXT_END = 256, 257, 258  # <|im_start|>, <|im_end|>, <|endoftext|>


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat")
    (folder / "text.txt").write_text(TEXT)
    main(["train", "gpt", str(folder / "text.txt"), *SIZE, "--out", str(folder / "run")])
    return folder / "run"


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Talk:
    def call(model: Path, typed: str, *flags: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        main(["chat", str(model), "--temperature", "0", "--max-new-tokens", "30", *flags])
        return capsys.readouterr().out

    return call


# -- a play with two speakers -------------------------------------------------------------------------------


def test_a_conversation(run_folder: Path, talk: Talk, capsys: pytest.CaptureFixture[str]) -> None:
    def answers(typed: str) -> list[str]:
        return [line for line in talk(run_folder, typed, "--stop", "\nThe").split("Assistant:") if line]

    one = answers("hi\n")
    assert one == [" hello\n"]
    several = answers("hi\n\nhi\n/reset\nhi\n/quit\nhi\n")
    assert len(several) == 3 and several[0] == several[2] == one[0]
    with pytest.raises(SystemExit) as stop:
        answers("hi ☃\nhi\n")
    out, err = capsys.readouterr()
    assert (
        stop.value.code == 2 and "unknown character '☃'" in err and "1 of the questions had no answer" in err
    )
    assert out.split("Assistant:")[1:] == ["\n", *one]  # what was not understood was not said


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_ctrl_c_ends_an_answer_and_sigterm_the_conversation(
    number: str,
    run_folder: Path,
    talk: Talk,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(self: Conversation, message: str) -> Iterator[str]:
        yield f"to {message}"
        os.kill(os.getpid(), getattr(signal, number))
        yield "never"

    monkeypatch.setattr(Conversation, "answer", answer)
    if number == "SIGINT":
        assert talk(run_folder, "one\ntwo\n") == "Assistant:to one\nAssistant:to two\n"
        return
    with pytest.raises(SystemExit) as stop:
        talk(run_folder, "one\ntwo\n")
    assert stop.value.code == 130
    assert capsys.readouterr() == ("Assistant:to one", "interrupted\n")


def test_the_context_is_kept(run_folder: Path) -> None:
    conversation = Conversation(Command(run_folder), *load_language_model(run_folder))
    first = "".join(conversation.answer("hi"))
    assert conversation.text == f"User: hi\nAssistant:{first}\n" and "\nUser:" not in first
    answer = conversation.answer("lazy dog")
    begun = next(answer)
    answer.close()  # as Ctrl-C does
    assert conversation.text == f"User: hi\nAssistant:{first}\nUser: lazy dog\nAssistant:{begun}\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--user", ""], "user is ''"),
        (["--assistant", "☃"], "does not know '☃' of the format plain (choose --format lines: each turn is"),
        (["--logit-bias", "999", "1"], "error: chat: --logit-bias has token 999 (must be from 0 to "),
        (["--user", "A", "--format", "chatml"], "--user is given with the format chatml (leave it out"),
        (["--format", "vicuna"], "--format: got 'vicuna' (must be one of chatml, gemma, lines, llama2"),
    ],
)
def test_options_that_do_not_fit(
    run_folder: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["chat", str(run_folder), *flags], capsys)


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(words)
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1
    return err


def characters(folder: Path, known: str) -> Path:
    """A model of these characters alone."""
    tokenizer = CharTokenizer(known)
    cr.seed(3)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 8, "block_size": 16, "vocab_size": tokenizer.vocab_size}
    save_pretrained(cr.models.GPT(cr.models.GPTConfig(**sizes)), tokenizer, folder)
    return folder


def test_a_model_that_cannot_read_names_of_speakers_sees_lines(
    tmp_path: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = characters(tmp_path / "names", "abem\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("em\nab\n"))
    five = ["--max-new-tokens", "5", "--logit-bias", "4", "-99"]  # letters, no line end
    main(["chat", str(names), "--temperature", "0", *five])
    out, err = capsys.readouterr()
    assert err.count("note: the model does not know 'U', 's', 'r', ':'") == 1 and err.count("\n") == 1
    assert out == talk(names, "em\nab\n", "--format", "lines", *five) and len(out) == 2 * 6
    conversation = Conversation(Command(names, format="lines"), *load_language_model(names))
    first = "".join(conversation.answer("em"))
    assert conversation.text == f"em\n{first}\n" and "\n" not in first
    for flags in (["--format", "plain"], ["--user", "a"]):
        err = refused(["chat", str(names), *flags], capsys)
        assert "of the format plain (choose --format lines: each turn is a line)" in err
    err = refused(["chat", str(characters(tmp_path / "letters", "abc"))], capsys)
    assert "train on text with these characters and line ends, or use `chainrule sample`" in err


# -- the model's own template -------------------------------------------------------------------------------


def saved(folder: Path, block_size: int = 300, **conventions: Any) -> Path:
    """A model of random weights for conversations."""
    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
    tokenizer = BPETokenizer.train("", 259, special_tokens=special)
    expected = {"eos": (TEXT_END,), "chat_template": TEMPLATE} | conventions
    tokenizer.conventions = Conventions(**expected)
    cr.seed(3)
    config = cr.models.GPTConfig(n_layer=1, n_head=2, n_embd=16, block_size=block_size, vocab_size=259)
    save_pretrained(cr.models.GPT(config), tokenizer, folder)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "model")


def test_the_answers_are_those_to_the_rendered_conversation(model: Path, talk: Talk) -> None:
    questions = "hello\nwho are you?\n"
    found = [
        json.loads(line) for line in talk(model, questions, "--system", "Be kind.", "--json").splitlines()
    ]
    loaded, tokenizer = load_language_model(model)
    format = cr.text.ChatTemplate(TEMPLATE, tokenizer)
    messages = [{"role": "system", "content": "Be kind."}]
    sampling = Sampling(max_new_tokens=30, temperature=0, stop_tokens=(TEXT_END, END))
    for record in found:
        messages.append({"role": "user", "content": record["question"]})
        prompt = tokenizer.decode(chat_ids(tokenizer, format, messages))
        (request,) = complete(loaded, tokenizer, [prompt], sampling, special=True)
        assert record["answer"] == request.text and record["finish"] == request.finish
        messages.append({"role": "assistant", "content": request.text})
    assert [record["question"] for record in found] == questions.splitlines()
    plain = talk(model, questions, "--system", "Be kind.")
    assert plain == "".join(f"{record['answer']}\n" for record in found)  # the answers alone


def test_an_answer_ends_at_the_end_tokens_and_at_the_end_of_the_turn(model: Path, talk: Talk) -> None:
    for end in (END, TEXT_END):
        record = json.loads(talk(model, "hello\n", "--json", "--logit-bias", str(end), "99"))
        assert (record["answer"], record["tokens"], record["finish"]) == ("", 0, "stop")
    record = json.loads(talk(model, "hello\n", "--json", "--logit-bias", str(START), "99"))
    assert (record["answer"], record["tokens"]) == ("", 30)  # special tokens are not printed
    shown = talk(model, "hello\n", "--special", "--logit-bias", str(START), "99")
    assert shown == "<|im_start|>" * 30 + "\n"


def test_a_conversation_is_read_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from chainrule.generate.session import DecoderSession

    read: list[int] = []
    inner = DecoderSession.read
    monkeypatch.setattr(
        DecoderSession, "read", lambda self, pieces: read.append(len(pieces[0])) or inner(self, pieces)
    )
    conversation = Conversation(
        Command(model, sampling=Sampling(temperature=0, max_new_tokens=3)), *load_language_model(model)
    )
    for message in ("hello", "and you?"):
        "".join(conversation.answer(message))
    whole = chat_ids(conversation.tokenizer, conversation.format, conversation.messages[:-1])
    first, *_, second, _, _ = read
    assert first + second < len(whole) + 3  # not twice the first turn


def test_a_long_conversation_forgets_its_oldest_turns(
    tmp_path: Path, talk: Talk, capsys: pytest.CaptureFixture[str]
) -> None:
    short = saved(tmp_path / "short", block_size=120)
    conversation = Conversation(Command(short, system="Be kind."), *load_language_model(short))
    for number in range(5):
        "".join(conversation.answer(f"question {number}"))
    assert conversation.messages[0]["content"] == "Be kind." and len(conversation.messages) < 11
    assert conversation.messages[-2]["content"] == "question 4"
    assert "its oldest turn is forgotten" in capsys.readouterr().err
    for flags in ((), ("--json",)):
        with pytest.raises(SystemExit):
            talk(short, "x" * 200 + "\nhello\n", *flags)  # and the conversation continues
        out, err = capsys.readouterr()
        assert "a message of 2" in (out if flags else err) and "1 of the questions had no answer" in err
        assert len(out.splitlines()) >= 2  # an untrained model may write line ends


def test_another_format_can_be_chosen(model: Path, talk: Talk) -> None:
    same = talk(model, "hello\n", "--format", "chatml")
    assert same == talk(model, "hello\n") != talk(model, "hello\n", "--format", "zephyr")
    assert talk(model, "hello\n", "--format", "plain", "--assistant", "Bot").startswith("Bot:")


def test_a_template_that_needs_more_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = saved(tmp_path / "broken", chat_template="{% tool %}")
    err = refused(["chat", str(broken)], capsys)
    assert "chat template: line 1: Encountered unknown tag 'tool'" in err and "--format plain, chatml" in err
    err = refused(["chat", str(saved(tmp_path / "x")), "--user", "A"], capsys)
    assert "--user is given for a model with a chat template" in err


def test_a_template_may_write_the_last_message_alone(tmp_path: Path, talk: Talk) -> None:
    """And so nothing around an empty one."""
    alone = saved(tmp_path / "alone", chat_template="{{ messages[-1].content }}")
    answers = talk(alone, "hello\nhello\n")
    model, tokenizer = load_language_model(alone)
    sampling = Sampling(temperature=0, max_new_tokens=30)
    [expected] = complete(model, tokenizer, ["hello"], sampling)
    assert answers.splitlines() == 2 * expected.text.splitlines()


@pytest.mark.parametrize("template", ["{# #}", "{{ '' if messages | length == 1 else 'x' }}"])
def test_a_template_that_writes_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], template: str
) -> None:
    err = refused(["chat", str(saved(tmp_path / "silent", chat_template=template))], capsys)
    assert (
        "chat template: gives no text for this conversation (choose a format instead: --format plain" in err
    )


def test_the_defaults_of_the_model_count_unless_a_flag_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = {"temperature": 0.0, "max_new_tokens": 5}
    own = saved(tmp_path / "own", generation=defaults)
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\n"))
    main(["chat", str(own), "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["tokens"] == 5
    assert err == "note: the model's own defaults: max new tokens 5, temperature 0 (flags change them)\n"
    main(["sample", str(own), "--prompt", "a", "--json"])
    assert json.loads(capsys.readouterr().out) == json.loads(sampled(own, capsys, "--max-new-tokens", "5"))
    assert json.loads(sampled(own, capsys, "--max-new-tokens", "500"))["text"] != json.loads(out)["answer"]


def sampled(model: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    capsys.readouterr()
    main(["sample", str(model), "--prompt", "a", "--temperature", "0", "--json", *flags])
    return capsys.readouterr().out


def test_no_question_at_all_is_an_error(
    run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for typed in ("", "\n  \n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert (
            "chat: standard input is empty (must be a terminal, or have a question on each line)"
            in refused(["chat", str(run_folder)], capsys)
        )


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # in a UTF-8 locale, and in that of C
def test_bytes_that_are_no_text_are_refused(
    errors: str, run_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bytes_ = io.BytesIO(b"\xff\xfe\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(bytes_, encoding="utf-8", errors=errors))
    err = refused(["chat", str(run_folder)], capsys)
    assert "chat: standard input is not UTF-8 (must be text in it)" in err


# -- special tokens in prompts ------------------------------------------------------------------------------


def test_special_tokens_in_a_prompt(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def prompt_of(model: Path, *flags: str) -> tuple[list[int], str]:
        capsys.readouterr()
        words = ["--prompt", "a<|im_end|>", "--logprobs", "--json", "--max-new-tokens", "1", *flags]
        main(["sample", str(model), *words])
        out, err = capsys.readouterr()
        return [token["id"] for token in json.loads(out)["prompt_logprobs"]], err

    _, tokenizer = load_language_model(model)
    read, plain = [*tokenizer.encode("a").tolist(), END], tokenizer.encode("a<|im_end|>").tolist()
    assert prompt_of(model) == (read, NOTE)
    assert prompt_of(model, "--special") == (read, "") and prompt_of(model, "--no-special") == (plain, "")
    other = saved(tmp_path / "other", chat_template=None)
    assert prompt_of(other) == (plain, "") and prompt_of(other, "--special") == (read, "")


NOTE = (
    "note: special tokens named in the prompt are read as such (with --no-special they are ordinary text)\n"
)


def test_special_tokens_are_printed_when_asked_for(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def text(*flags: str) -> str:
        return str(json.loads(sampled(model, capsys, "--max-new-tokens", "3", *flags))["text"])

    assert text("--logit-bias", str(START), "99") == ""
    assert text("--logit-bias", str(START), "99", "--special") == "<|im_start|>" * 3
    assert text("--logit-bias", str(TEXT_END), "99", "--special") == ""  # there it ends
    assert text("--logit-bias", str(TEXT_END), "99", "--special", "--stop-tokens", "0") == "<|endoftext|>" * 3
    beam = ["--beam", "2", "--logit-bias"]
    assert "--logit-bias is given with beam" in refused(["sample", str(model), *beam, "1", "1"], capsys)


# -- evaluation, and models that are not there ----------------------------------------------------------------


def test_a_text_shorter_than_the_context_is_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.txt").write_text("a short text")
    begins = saved(tmp_path / "begins", bos=START, add_bos=True)
    for place, tokens in ((saved(tmp_path / "model"), 11), (begins, 12)):
        capsys.readouterr()
        main(["eval", str(place), str(tmp_path / "short.txt"), "--json"])
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert found["tokens"] == tokens and found["nats_per_token"] > 0
        assert (
            err == f"note: {tokens} tokens to predict, the context of the model is 300: one partial window\n"
        )
        loaded, tokenizer = load_language_model(place)
        ids = cr.text.prompt_ids(tokenizer, "a short text")
        assert -cr.generate.score(loaded, ids).mean() == pytest.approx(found["nats_per_token"], rel=1e-5)


@pytest.mark.parametrize("command", ["chat", "sample", "eval", "export", "import"])
def test_a_name_of_a_hub_is_not_downloaded(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--out", "x"] if command in ("export", "import") else []
    err = refused([command, "openai/gpt2", *more], capsys)
    assert "openai/gpt2: no such directory or file (nothing is downloaded; give a directory or a file)" in err


def test_import_recommends_chat_for_a_model_that_can_talk(
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    talk: Talk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main(["import", str(model), "--out", str(tmp_path / "in")])
    said = capsys.readouterr().out
    assert "tokenizer: bpe, 259 tokens; end tokens: <|endoftext|>; chat template: yes\n" in said
    assert f" chat {tmp_path / 'in'}\n" in said and f" sample {tmp_path / 'in'}\n" in said
    assert talk(tmp_path / "in", "hello\n") == talk(model, "hello\n")

    def version(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    with monkeypatch.context() as without_jinja:
        without_jinja.setattr(metadata, "version", version)
        main(["import", str(model), "--out", str(tmp_path / "silent")])
    said = capsys.readouterr().out
    assert f" chat {tmp_path}" not in said and f" sample {tmp_path / 'silent'}\n" in said
    assert (
        "cannot talk yet: chat template: jinja2 is not installed (must be 3.1.6 or later: pip install" in said
    )
    for format, file in (("gguf", "model.gguf"), ("hf", "")):
        main(["export", str(tmp_path / "in"), "--out", str(tmp_path / format), "--format", format])
        assert talk(tmp_path / format / file, "hello\n") == talk(model, "hello\n")
