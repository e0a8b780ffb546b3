"""Alignment in worlds whose best policy is known: how near methods come, and what a poor reward does."""
