"""Copies, near copies and poor texts: how they are found and left out."""
