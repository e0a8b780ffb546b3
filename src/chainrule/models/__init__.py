"""Models, one file each."""

from chainrule.models.gpt import GPT, GPTConfig

__all__ = ["GPT", "GPTConfig"]
