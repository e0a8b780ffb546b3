"""Policies answer prompts as they were trained to: in the chat format of their tokenizer, if it has one."""

from __future__ import annotations

from chainrule.errors import ConfigError
from chainrule.generate import Sampling
from chainrule.generate.healing import Prompt
from chainrule.models import LanguageModel, Model, describe
from chainrule.models.registry import FAMILIES
from chainrule.tasks.instruction import InstructionTask
from chainrule.tasks.writing import WritingTask
from chainrule.text import Tokenizer


class AnsweringTask(WritingTask):
    """A task of language models that answer, with or without a chat format."""

    @property
    def talks(self) -> bool:
        return _chats(self.tokenizer)

    @classmethod
    def begun(cls, tokenizer: Tokenizer, prompt: str, special: bool) -> Prompt:
        begin = InstructionTask if _chats(tokenizer) else WritingTask
        return begin.begun(tokenizer, prompt, special)

    @classmethod
    def ended(cls, tokenizer: Tokenizer, sampling: Sampling) -> Sampling:
        return InstructionTask.ended(tokenizer, sampling) if _chats(tokenizer) else sampling


def check_policy(model: Model, method: str) -> None:
    """What is to write answers must be a language model."""
    if not isinstance(model, LanguageModel):
        rule = f"must be one of {', '.join(FAMILIES)}"
        raise ConfigError(f"align {method}: BASE is a {describe(model)['model_type']} ({rule})")


def _chats(tokenizer: Tokenizer) -> bool:
    return tokenizer.conventions.chat_template is not None
