"""Writes docs/reference/data-cards.md from the table of the package.

python -m tools.data_cards
"""

from __future__ import annotations

from pathlib import Path

from chainrule.data import CARDS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "data-cards.md"
HEAD = """# Data cards

Every corpus that is built in or that `chainrule data get` fetches: origin, license, hash, limits. `chainrule data card
NAME` shows one, with the size and hash of what is on this machine. Written by `python -m tools.data_cards`.
"""


def page() -> str:
    parts = [HEAD]
    for card in CARDS.values():
        pinned = card.sha256 is not None
        size = f", {card.bytes:,} bytes" if pinned else ""
        parts.append(
            f"\n## {card.name}\n\n{card.about[0].upper()}{card.about[1:]}{size}.\n\n"
            f"- Origin: {f'<{card.origin}>' if pinned else card.origin}\n"
            f"- License: {card.license}\n"
            f"- SHA-256: {f'`{card.sha256}`' if pinned else 'depends on the version of Python; the command tells it'}\n"
            f"- Limits: {card.limits}\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
