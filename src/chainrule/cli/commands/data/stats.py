"""`chainrule data stats`"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import chainrule as cr
from chainrule.cli.args.documents import Sources
from chainrule.cli.args.options import Reporting
from chainrule.cli.args.text import byte_count, find_tokenizer
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show
from chainrule.errors import DataError


@dataclass(frozen=True)
class Command(Reporting):
    """Count what is in documents: characters, bytes, tokens, lengths, copies.

    Example: chainrule data stats texts/ --tokenizer char --json
    """

    sources: Sources = field(default_factory=Sources)
    tokenizer: str = "char"
    """File of a tokenizer; char: every character of the documents is a token; or bpe, bpe:4000, unigram, wordpiece:
    learned from the documents."""
    near: float = 0.8
    """Jaccard similarity of 12-byte shingles from which two documents count as near copies."""

    def run(self) -> None:
        with Progress("characters") as progress:
            texts = (document.text for document in progress.documents(self.sources.read(quiet=True)))
            tokenizer = find_tokenizer(self.tokenizer, texts)
        show({"sources": ", ".join(self.sources.files), **self._count(tokenizer)}, self.json)

    def _count(self, tokenizer: cr.text.Tokenizer) -> dict[str, Any]:
        import numpy as np

        from chainrule.data.clean.dedup import COPY, NEAR

        cleaner = cr.data.Cleaner(near=self.near)
        lengths: list[int] = []
        characters = bytes = 0
        with Progress("documents") as progress:
            for document in progress.documents(self.sources.read()):
                characters += len(document.text)
                bytes += byte_count(document.text)
                lengths.append(len(tokenizer.encode(document.text)))
                for _ in cleaner([document]):
                    pass
        if not lengths:
            raise DataError(f"{', '.join(self.sources.files)}: no documents (must hold at least one)")
        tokens, dropped = sum(lengths), cleaner.report.dropped
        low, middle, high = np.percentile(lengths, [5, 50, 95]).tolist()
        spread = {"min": min(lengths), "5%": low, "median": middle, "95%": high, "max": max(lengths)}
        return {
            "documents": len(lengths), "characters": characters, "bytes": bytes, "tokens": tokens,
            "vocab_size": tokenizer.vocab_size, "bytes_per_token": bytes / max(1, tokens),
            "tokens_per_document": spread, "copies": dropped[COPY], "near_copies": dropped[NEAR],
        }  # fmt: skip
