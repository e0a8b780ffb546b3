"""Conversations as Hugging Face's `transformers` writes them: the same text, the same ids, from the files we write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.io import load, save_pretrained
from chainrule.text import FORMATS, BPETokenizer, ChatTemplate, Conventions, chat_ids, prompt_ids
from chainrule.text.chat.roles import END, chat_tokenizer, own_format

transformers = pytest.importorskip("transformers")

SPECIAL = [
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
    "<start_of_turn>", "<end_of_turn>", "<|user|>", "<|assistant|>", "<pad>", "<unk>",
]  # fmt: skip

# The usual formats, written here as their models' templates are: with loops, trimming, namespaces, errors and tools.
TEMPLATES = {
    "chatml": """
{%- for m in messages %}
    {{- '<|im_start|>' ~ m['role'] ~ '\\n' ~ m['content'] ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}""",
    "llama2": """
{%- if messages[0].role == 'system' %}
    {% set talk = messages[1:] %}
    {% set told = '<<SYS>>\\n' + messages[0].content.strip() + '\\n<</SYS>>\\n\\n' %}
{% else %}
    {% set talk, told = messages, '' %}
{% endif %}
{% for m in talk -%}
    {% if (m.role == 'user') != (loop.index is odd) %}{{ raise_exception('Roles must alternate') }}{% endif -%}
    {% if m.role == 'user' %}{{ bos_token + '[INST] ' + (told if loop.first else '') + m.content | trim + ' [/INST]' -}}
    {% else %}{{ ' ' + m.content | trim + ' ' + eos_token }}{% endif -%}
{% endfor %}""",
    "llama3": """
{%- set ns = namespace(text='') -%}
{%- for m in messages -%}
    {%- set head = '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' -%}
    {%- set ns.text = ns.text + head + m.content | trim + '<|eot_id|>' -%}
{%- endfor -%}
{{- ns.text -}}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}""",
    "zephyr": """
{%- for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}{% endfor -%}
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}""",
    "gemma": """
{%- set told = messages[0].content | trim + '\\n\\n' if messages[0].role == 'system' else '' -%}
{%- for m in messages if m.role != 'system' -%}
    {{- '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' -}}
    {{- (told if loop.first else '') + m.content | trim + '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}""",
    "mistral": """
{{- bos_token }}
{%- for m in messages %}
    {%- if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}
    {%- elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}
    {%- endif %}
{%- endfor %}""",
    "qwen": """
{%- if tools %}{{ '<tools>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}
{%- for m in messages %}
    {%- if m.tool_calls is defined and m.tool_calls %}{% continue %}{% endif %}
    {%- set content = m.content.split('</think>')[-1].lstrip('\\n') if m.role == 'assistant' else m.content %}
    {{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}""",
    "with marks": """
{%- for m in messages %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}
{% endfor %}""",
}
TALKS: dict[str, list[dict[str, Any]]] = {
    "a question": [{"role": "user", "content": "What is 2 < 3?"}],
    "turns": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello, naïve 🙂"},
        {"role": "user", "content": "\n two\nlines "},
    ],
    "a system": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
}


def tokenizer(template: str, **more: Any) -> BPETokenizer:
    made = BPETokenizer.train("hello there, who are you? " * 9, 300, special_tokens=SPECIAL)
    ids = made.special_ids
    end = {
        "bos": ids["<s>"],
        "eos": (ids["</s>"], ids["<|im_end|>"]),
        "pad": ids["<pad>"],
        "unk": ids["<unk>"],
    }
    made.conventions = Conventions(chat_template=template, **(end | more))
    return made


def theirs(mine: BPETokenizer, folder: Path) -> Any:
    config = cr.models.LlamaConfig(1, 2, 2, 8, 8, 16, mine.vocab_size)
    save_pretrained(cr.models.Llama(config), mine, folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("name", TEMPLATES)
def test_conversations_have_the_same_text_and_ids(name: str, tmp_path: Path) -> None:
    mine = tokenizer(TEMPLATES[name])
    other, format = theirs(mine, tmp_path / "x"), ChatTemplate(TEMPLATES[name], mine)
    for talk in TALKS.values():
        for begins in (True, False):
            text = other.apply_chat_template(talk, add_generation_prompt=begins, tokenize=False)
            assert format.render(talk, add_generation_prompt=begins) == text
            ids = other.apply_chat_template(talk, add_generation_prompt=begins, return_dict=False)
            assert chat_ids(mine, format, talk, add_generation_prompt=begins).tolist() == list(ids)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() & TEMPLATES.keys()))
def test_our_formats_are_those_of_their_models(name: str, tmp_path: Path) -> None:
    other = theirs(tokenizer(TEMPLATES[name]), tmp_path / "x")
    for talk in TALKS.values():
        said = [{**message, "content": message["content"].strip()} for message in talk]
        for begins in (True, False):
            text = other.apply_chat_template(said, add_generation_prompt=begins, tokenize=False)
            assert FORMATS[name].render(said, add_generation_prompt=begins) == text


@pytest.mark.requirement("R-379")
def test_a_model_that_is_tuned_here_is_asked_in_the_same_way(tmp_path: Path) -> None:
    """The template in the files, by `transformers`, against our format without Jinja."""
    mine = chat_tokenizer(BPETokenizer.train("What is the capital of France?", 300))
    other, format = theirs(mine, tmp_path / "x"), own_format(mine)
    assert format is FORMATS["roles"] and other.eos_token == END
    for talk in TALKS.values():
        for begins in (True, False):
            ids = other.apply_chat_template(talk, add_generation_prompt=begins, return_dict=False)
            assert chat_ids(mine, format, talk, add_generation_prompt=begins).tolist() == list(ids)


@pytest.mark.parametrize("add_bos", [True, False])
def test_they_read_what_we_write_and_we_read_what_they_write(add_bos: bool, tmp_path: Path) -> None:
    generation = {
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.9,
        "repetition_penalty": 1.1,
        "max_new_tokens": 64,
    }
    mine = tokenizer(TEMPLATES["chatml"], add_bos=add_bos, generation=generation)
    other = theirs(mine, tmp_path / "x")
    special = mine.special_ids
    assert (other.bos_token, other.eos_token, other.pad_token, other.unk_token) == (
        "<s>",
        "</s>",
        "<pad>",
        "<unk>",
    )
    assert other("hello you")["input_ids"] == prompt_ids(mine, "hello you").tolist()
    marked = "hello<|im_end|>you"
    assert other(marked)["input_ids"] == prompt_ids(mine, marked, special=True).tolist()
    config = transformers.GenerationConfig.from_pretrained(tmp_path / "x")
    assert config.eos_token_id == [special["</s>"], special["<|im_end|>"]] and config.do_sample
    assert {name: getattr(config, name) for name in generation} == generation
    other.save_pretrained(tmp_path / "again")
    config.save_pretrained(tmp_path / "again")
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "x").save_pretrained(tmp_path / "again")
    assert (tmp_path / "again" / "chat_template.jinja").exists()  # where newer versions write it
    assert load(tmp_path / "again")[1].conventions == mine.conventions
