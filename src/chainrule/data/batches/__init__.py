"""Batches of every kind: windows of a stream, padded or packed documents, pairs, labels, hidden words."""
