"""Batches: windows of a text, padded or packed documents, pairs, labeled and tagged texts, masked words."""
