"""GGUF, the format of llama.cpp: `read` and `write` a model with its tokenizer.

`file` is the container, `blocks` and `k_blocks` the formats of numbers. `models` reads and writes, with a module for
each kind of model; they share `names`, `rope` and `tokenizers`.
"""

from chainrule.io.gguf.file import MAGIC
from chainrule.io.gguf.models import open_file, read, write

__all__ = ["MAGIC", "open_file", "read", "write"]
