"""GGUF, the file of llama.cpp: models, tokenizers and block formats."""
