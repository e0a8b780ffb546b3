"""Removing what should not be learned: `dedup` leaves out copies, near copies and poor texts, and counts them.

`minhash` finds near copies without comparing all pairs; `quality` has the rules for good text.
"""
