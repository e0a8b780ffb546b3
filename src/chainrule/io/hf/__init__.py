"""Hugging Face directories: one file per architecture, and its tokenizers."""
