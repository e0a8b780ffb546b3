"""Removing duplicates, near-duplicates and low-quality texts."""
