"""Models, tokenizers and word vectors in the formats of other programs, and in Chainrule's own.

`hf/` reads and writes Hugging Face directories, `gguf/` the files of llama.cpp; a module here for each other format.
"""

from chainrule.io.hf.pretrained import load_pretrained, save_pretrained
from chainrule.io.loading import convert, load
from chainrule.io.tokenizers import load_tokenizer, save_tokenizer
from chainrule.io.vectors import read_vectors, write_vectors
from chainrule.lazy import names

__all__ = [
    "convert", "load", "load_pretrained", "load_tokenizer", "read_vectors", "save_pretrained", "save_tokenizer",
    "write_vectors"
]  # fmt: skip

names(__name__)
