"""Models, tokenizers and word vectors in the formats of other programs, and in Chainrule's own.

`hf/` reads and writes Hugging Face directories, `gguf/` the files of llama.cpp; a module here for each other format.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.io.hf.pretrained import load_pretrained, save_pretrained
    from chainrule.io.loading import convert, load
    from chainrule.io.tokenizers import load_tokenizer, save_tokenizer
    from chainrule.io.vectors import read_vectors, write_vectors

__all__ = [
    "convert", "load", "load_pretrained", "load_tokenizer", "read_vectors", "save_pretrained", "save_tokenizer",
    "write_vectors"
]  # fmt: skip

lazy.names(
    __name__,
    rooms=(
        "binary bpe_files files gguf hf lazy left_out llama2c loading opened protobuf safetensors "
        "sentencepiece settings tokenizers vectors weights"
    ),
    **{
        "hf.pretrained": "load_pretrained save_pretrained",
        "loading": "convert load",
        "tokenizers": "load_tokenizer save_tokenizer",
        "vectors": "read_vectors write_vectors",
    },
)
