"""`chainrule tokenize train`"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from chainrule.cli.args.kinds import SEVERAL
from chainrule.cli.args.options import Argument
from chainrule.cli.args.text import read_input
from chainrule.cli.render.progress import Progress
from chainrule.data.corpora import DEFAULT
from chainrule.errors import DataError
from chainrule.io import save_tokenizer
from chainrule.text import (
    BPETokenizer,
    CharTokenizer,
    TextbookBPETokenizer,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)
from chainrule.validate import Check

Kind = Literal["bpe", "wordpiece", "unigram", "word", "char", "plain-bpe"]


TRAIN: dict[Kind, Callable[..., Tokenizer]] = {
    "bpe": BPETokenizer.train,
    "wordpiece": WordPieceTokenizer.train,
    "unigram": UnigramTokenizer.train,
    "word": WordTokenizer.train,
    "char": lambda texts, vocab_size, special_tokens=(): CharTokenizer.train("".join(texts), special_tokens),
    "plain-bpe": lambda texts, vocab_size, special_tokens=(): TextbookBPETokenizer.train(
        texts, vocab_size, special_tokens=[*special_tokens, "<unk>"]
    ),
}


@dataclass(frozen=True)
class Command:
    """Learn a tokenizer from texts and write it to a file.

    Example: chainrule tokenize train book.txt --kind unigram --vocab-size 8000 --out book.json
    """

    files: Annotated[tuple[str, ...], Argument("FILE")] = (DEFAULT,)
    """Text files, corpora that `chainrule data list` knows, or - for standard input."""
    kind: Kind = "bpe"
    """Kind of tokenizer."""
    vocab_size: int = 2000
    """Tokens to learn, at most; a tokenizer of characters has as many as the text."""
    special_tokens: Annotated[tuple[str, ...], SEVERAL] = ()
    """Tokens that never come from text, such as '<s>' '</s>' around what an encoder-decoder writes. Default: for
    wordpiece those of BERT, else none."""
    out: Path | None = None
    """File to write. Default: KIND.json, such as bpe.json."""
    hugging_face: bool = False
    """Write the format of Hugging Face's tokenizer.json instead of our own."""
    json: bool = False
    """Print one JSON object for machines."""

    def run(self) -> None:
        Check("tokenize", self).at_least(1, "vocab_size")
        names = self.files or (DEFAULT,)
        texts = [read_input(name) for name in names]
        for name, text in zip(names, texts, strict=True):
            if not text.strip():
                what = "standard input" if name == "-" else name
                raise DataError(f"{what}: no text in {len(text)} characters (must not be empty)")
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        out = self.out or Path(f"{self.kind}.json")
        start = time.perf_counter()
        with Progress(f"learning {self.kind} from {size / 1e6:.1f} MB"):
            special = {"special_tokens": self.special_tokens} if self.special_tokens else {}
            tokenizer = TRAIN[self.kind](texts, self.vocab_size, **special)
            tokens = sum(len(tokenizer.encode(text)) for text in texts)
        save_tokenizer(tokenizer, out, hugging_face=self.hugging_face)
        result = {
            "kind": self.kind,
            "vocab_size": tokenizer.vocab_size,
            "out": str(out),
            "bytes": size,
            "tokens": tokens,
            "bytes_per_token": round(size / max(tokens, 1), 4),
            "seconds": round(time.perf_counter() - start, 3),
        }
        if self.json:
            print(json.dumps(result))
        else:
            print(
                f"{out}: {tokenizer.vocab_size:,} tokens, {result['bytes_per_token']:.2f} bytes of the text each "
                f"({size / 1e6:.1f} MB, {result['seconds']:.1f} s)"
            )
