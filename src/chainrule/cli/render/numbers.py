"""Large numbers for people."""

from __future__ import annotations


def amount(n: float) -> str:
    """1234567 as 1.23 M"""
    for unit in ("", " k", " M", " G", " T", " P"):
        if n < 999.5:
            return f"{n:.3g}{unit}"
        n /= 1000
    return f"{n:.3g} E"


def size(nbytes: int) -> str:
    """1536 as 1.5 KiB"""
    n = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} PiB"
