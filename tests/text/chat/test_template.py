"""Chat templates: what they may use, and what a hostile one cannot do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from chainrule.errors import ChainruleError, ConfigError, FormatError
from chainrule.text import BPETokenizer, ChatTemplate, Conventions
from chainrule.text.chat import template

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
    "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def tokenizer() -> BPETokenizer:
    made = BPETokenizer.train("", 258, special_tokens=["<s>", "</s>"])
    made.conventions = Conventions(bos=256, eos=(257,))
    return made


def rendered(source: str, talk: list[dict[str, Any]] | None = None, **more: Any) -> str:
    return ChatTemplate(source, tokenizer()).render(TALK if talk is None else talk, **more)


def test_a_conversation_is_written_as_the_template_says() -> None:
    text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
    assert rendered(CHATML, add_generation_prompt=False) == text
    assert rendered(CHATML) == text + "<|im_start|>assistant\n"
    both = ChatTemplate(CHATML, tokenizer()).render_all([TALK, TALK[:1]])
    assert both == [text, "<|im_start|>user\nHi<|im_end|>\n"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ bos_token }}{{ eos_token }}[{{ pad_token }}]", "<s></s>[]"),
        ("{{ tools is none and documents is none }}", "True"),
        ('{{ {"a": "é<"} | tojson }}', '{"a": "é<"}'),
        ("{{ [1] | tojson(indent=1) }}", "[\n 1\n]"),
        ("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}", "01"),
        (
            "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
            "2",
        ),
        ("{% if true %}\n    {{ 'a' }}\n    {% endif %}\nb", "    a\nb"),  # trim_blocks and lstrip_blocks
        ("a{% generation %}{{ messages[1].content }}{% endgeneration %}b", "aHellob"),
        ("{{ nothing }}{{ messages[0].tool_calls is defined }}", "False"),
    ],
)
def test_what_templates_of_hugging_face_count_on(source: str, text: str) -> None:
    assert rendered(source) == text


def test_the_date_is_that_of_today() -> None:
    before = datetime.now().strftime("%d %b %Y")
    assert rendered("{{ strftime_now('%d %b %Y') }}") in (before, datetime.now().strftime("%d %b %Y"))


REFUSED = {
    "unknown tag": ("{% call_tool %}", "line 1: Encountered unknown tag 'call_tool'"),
    "unknown filter": ("{{ 1 | shell }}", "No filter named 'shell'"),
    "unknown function": ("{{ get_weather() }}", "'get_weather' is undefined"),
    "its own words": (
        "{{ raise_exception('Roles must\x1b[31m\nalternate') }}",
        r"Roles must \[31m alternate \(",
    ),
    "syntax": ("{% if %}", "line 1: "),
    "a file": ("{% include '/etc/passwd' %}", "no loader"),
    "a module": ("{% import 'os' as os %}", "no loader"),
    "classes": ("{{ ''.__class__.__mro__ }}", "unsafe"),
    "classes by filter": ("{{ (''|attr('__class__')).mro() }}", "unsafe|undefined"),
    "functions": ("{{ raise_exception.__globals__['sys'].exit() }}", "unsafe|undefined"),
    "format": ("{{ '{0.__class__.__mro__}'.format(1)[0] }}", "undefined|unsafe|no attribute"),
    "internals in a namespace": ("{{ namespace(__class__=1) }}", "a namespace cannot hold '__class__'"),
    "changes": ("{{ messages.append(1) }}", "unsafe"),
    "a long range": ("{% for i in range(10**9) %}{% endfor %}", "Range too big"),
    "a long output": ("{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", "more than 4,194,304 char"),
    "a long text": ("{{ ('x' * 10**10) | length }}", "needs too much memory|takes more than"),
    "a long constant": ("{{ '%10000000000s' % 1 }}", "needs too much memory|takes more than"),
    "a text that doubles": (
        "{% set ns = namespace(x='x'*1000) %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "needs too much memory|takes more than",
    ),
    "deep nesting": ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "recursion|nested|takes more than"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_template_may_not_do_is_refused_in_one_line(name: str) -> None:
    source, why = REFUSED[name]
    with pytest.raises(FormatError, match=f"^chat template: .*({why})") as error:
        rendered(source)
    said = str(error.value)
    assert said.endswith(
        "(choose a format instead: format plain, chatml, llama2, llama3, zephyr, gemma, roles, lines)"
    )
    assert said.isprintable() and len(said) < 400


def test_loops_inside_loops_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "SECONDS", 1)
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(FormatError, match="takes more than 1 s or 512 MB to render"):
        rendered(endless)


def test_no_file_can_be_opened_while_a_template_runs(changed_worker: ChangedWorker) -> None:
    """Even by what has left the sandbox: an import on first use is one that fails."""
    changed_worker('"raise_exception": raise_exception', '"raise_exception": open')
    with pytest.raises(FormatError, match="Too many open files"):
        rendered("{{ raise_exception('/etc/passwd') }}")


def test_the_process_has_no_secrets_and_no_preloaded_libraries(
    changed_worker: ChangedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed_worker('"raise_exception": raise_exception', '"environment": __import__("os").environ')
    for name, value in {"API_KEY": "abc", "LD_PRELOAD": "/nowhere.so", "TZ": "Asia/Tokyo"}.items():
        monkeypatch.setenv(name, value)
    seen = set(rendered("{% for name in environment %}{{ name }} {% endfor %}").split())
    assert "TZ" in seen and not seen & {"API_KEY", "LD_PRELOAD", "PATH", "HOME"}


ChangedWorker = Callable[[str, str], None]


@pytest.fixture
def changed_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangedWorker:
    """Runs the worker with a part of its source replaced: what a template could do outside of the sandbox."""

    def change(old: str, new: str) -> None:
        source = template.WORKER.read_text()
        assert old in source
        path = tmp_path / "worker.py"
        path.write_text(source.replace(old, new))
        monkeypatch.setattr(template, "WORKER", path)

    return change


def test_jinja_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    for found, has in (("3.1.5", "jinja2 is 3.1.5"), (None, "jinja2 is not installed")):

        def version(_: str, found: str | None = found) -> str:
            if found is None:
                raise metadata.PackageNotFoundError
            return found

        monkeypatch.setattr(metadata, "version", version)
        with pytest.raises(
            ConfigError, match=rf"{has} \(must be 3.1.6 or later: pip install 'chainrule\[chat\]'"
        ):
            rendered("x")


def test_without_a_second_process_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(ChainruleError, match="/nowhere/python cannot be started"):
        rendered("x")
