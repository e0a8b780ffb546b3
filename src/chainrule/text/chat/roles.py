"""The chat format of models that are tuned here: a special token before each turn that names its role.

    <|user|> What is the capital of France? <|assistant|> The capital of France is Paris.<|end|>

A model that came with a chat template keeps its own. The format is written into the tokenizer's conventions as a Jinja
template, so `chainrule chat`, exported files and transformers write conversations in the same way.
"""

from __future__ import annotations

from dataclasses import replace

from chainrule.text.chat.formats import FORMATS, Renderer
from chainrule.text.chat.template import ChatTemplate
from chainrule.text.tokenizer import Tokenizer

END = "<|end|>"
TOKENS = ("<|user|>", "<|assistant|>", "<|system|>", END)
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|> ' + message['content'] | trim }}"
    "{{ '<|end|>' if message['role'] == 'assistant' else ' ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def chat_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer for conversations: itself if it has a chat template, else with the tokens of roles and their format.

    >>> from chainrule.text import CharTokenizer
    >>> tokenizer = chat_tokenizer(CharTokenizer.train("What is it?"))
    >>> tokenizer.piece(tokenizer.vocab_size - 1), tokenizer.conventions.chat_template == TEMPLATE
    ('<|end|>', True)
    """
    if tokenizer.conventions.chat_template is not None:
        return tokenizer
    known = tokenizer.conventions
    missing = [name for name in TOKENS if name not in tokenizer.special_ids]
    found = tokenizer.extended(missing)
    end = found.special_ids[END]
    ends = (end, *(id for id in known.eos if id != end))
    found.conventions = replace(known, eos=ends, chat_template=TEMPLATE)
    return found


def own_format(tokenizer: Tokenizer) -> Renderer:
    """What writes the conversations of a tokenizer's model; it must have a chat template.

    Our own is written without Jinja, which may not be installed.
    """
    source = tokenizer.conventions.chat_template or ""
    return FORMATS["roles"] if source == TEMPLATE else ChatTemplate(source, tokenizer)
