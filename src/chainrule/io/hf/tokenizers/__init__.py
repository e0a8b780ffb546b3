"""Hugging Face's `tokenizer.json`, one file for each kind of tokenizer."""
