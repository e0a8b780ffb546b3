"""Models, one file each."""

from chainrule.models.gpt import GPT, GPTConfig
from chainrule.models.llama import Llama, LlamaConfig

__all__ = ["GPT", "GPTConfig", "Llama", "LlamaConfig"]
