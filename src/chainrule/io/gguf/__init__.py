"""GGUF, the format of llama.cpp: `read` and `write` a model with its tokenizer.

`file` is the container, `blocks` and `k_blocks` the formats of numbers, `models` with a module for each kind, `rope` and
`tokenizers` its content.
"""

from chainrule.io.gguf.file import MAGIC
from chainrule.io.gguf.models import read, write

__all__ = ["MAGIC", "read", "write"]
