"""Hugging Face directories: `pretrained` reads and writes one, with a module per architecture (`bert`, `gpt2`, ...).

`architectures` chooses the module, `weights` holds what they share, `tokenizers/` the kinds of `tokenizer.json`.
"""
