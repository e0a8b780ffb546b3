"""`chainrule tokenize train`"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import chainrule as cr
from chainrule.cli.args.documents import TextColumns, say_reading
from chainrule.cli.args.kinds import Several
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.args.text import byte_count, read_input
from chainrule.cli.render.progress import Progress
from chainrule.columns import Columns
from chainrule.errors import ConfigError, DataError, Setting
from chainrule.files import check_new_file
from chainrule.validate import Check

COUNTED = ("bpe", "wordpiece", "unigram")  # learned from counts of words, which can be added up
Kind = Literal["bpe", "wordpiece", "unigram", "word", "char", "plain-bpe"]


@dataclass(frozen=True)
class Command(Reporting):
    """Learn a tokenizer from texts and write it to a file.

    Example: chainrule tokenize train book.txt --kind unigram --vocab-size 8000 --out book.json
    """

    files: Annotated[tuple[str, ...], Argument("FILE")] = ("pydoc",)
    """Text files, tables with a column of texts, corpora that `chainrule data list` knows, or - for standard input."""
    columns: TextColumns = field(default_factory=Columns)
    kind: Kind = "bpe"
    """Kind of tokenizer."""
    vocab_size: int = 2000
    """Tokens to learn, at most; a tokenizer of characters has as many as the text."""
    pattern: str | None = None
    """For bpe, how words are split: a name such as gpt2, o200k or qwen2, or a regular expression. Default: gpt4."""
    special_tokens: Annotated[tuple[str, ...], Several] = ()
    """Tokens that never come from text, such as '<s>' '</s>' around what an encoder-decoder writes. Default: for
    wordpiece those of BERT, else none."""
    out: Annotated[Path | None, NewFile] = None
    """The new file. Default: KIND.json, such as bpe.json."""
    hugging_face: bool = False
    """Write the format of Hugging Face's tokenizer.json instead of our own."""
    workers: int = 1
    """Processes that count words at the same time (bpe, wordpiece and unigram), with the same result. Under mpiexec the
    ranks are these."""

    def run(self) -> None:
        Check("tokenize", self).at_least(1, "vocab_size", "workers")
        if self.pattern is not None and self.kind != "bpe":
            raise ConfigError(
                "tokenize: ", Setting("pattern"), f" with {self.kind} (must be bpe, which splits words so)"
            )
        out = self.out or Path(f"{self.kind}.json")
        check_new_file(out)
        texts = [self._text(name) for name in self.files]
        for name, text in zip(self.files, texts, strict=True):
            if not text.strip():
                what = "standard input" if name == "-" else name
                raise DataError(f"{what}: no text in {len(text)} characters (must not be empty)")
        size = sum(map(byte_count, texts))
        start = time.perf_counter()
        with Progress(f"learning {self.kind} from {size / 1e6:.1f} MB"):
            tokenizer = self._learned(texts)
            tokens = sum(len(tokenizer.encode(text)) for text in texts)
        cr.io.save_tokenizer(tokenizer, out, hugging_face=self.hugging_face)
        result = {
            "kind": self.kind,
            "vocab_size": tokenizer.vocab_size,
            "out": str(out),
            "bytes": size,
            "tokens": tokens,
            "bytes_per_token": round(size / max(tokens, 1), 4),
            "seconds": round(time.perf_counter() - start, 3),
        }
        count, each = tokenizer.vocab_size, f"{result['bytes_per_token']:.2f} bytes of the text each"
        fewer = f"; the text gives no more of the {self.vocab_size:,}" if count < self.vocab_size else ""
        fewer = "" if self.kind == "char" else fewer
        said = f"{out}: {count:,} tokens, {each} ({size / 1e6:.1f} MB, {result['seconds']:.1f} s){fewer}"
        self.report(result, lambda: said)

    def _text(self, name: str) -> str:
        """The text of a file as it is; of a table that of its rows."""
        from chainrule.data.read.tabular.columns import no_table
        from chainrule.data.read.tabular.table import is_table

        if not any(map(is_table, map(Path, self.files))):
            no_table(name, self.columns)
        if name == "-" or not (Path(name).is_file() and is_table(Path(name))):
            return read_input(name)
        corpus = cr.data.load(name, self.columns)
        say_reading(corpus.reading)
        return corpus.text

    def _learned(self, texts: list[str]) -> cr.text.Tokenizer:
        Check("tokenize", self).distinct("special_tokens")
        special = {"special_tokens": self.special_tokens} if self.special_tokens else {}
        if self.kind == "char":
            return cr.text.CharTokenizer.train("".join(texts), **special)
        if self.kind == "plain-bpe":
            special = {"special_tokens": (*self.special_tokens, "<unk>")}
        kinds: dict[str, Any] = {
            "bpe": cr.text.BPETokenizer,
            "wordpiece": cr.text.WordPieceTokenizer,
            "unigram": cr.text.UnigramTokenizer,
            "word": cr.text.WordTokenizer,
            "plain-bpe": cr.text.TextbookBPETokenizer,
        }
        pattern = {} if self.pattern is None else {"pattern": self.pattern}
        counted = {"workers": self.workers} if self.kind in COUNTED else {}
        options = {**special, **pattern, **counted}
        tokenizer: cr.text.Tokenizer = kinds[self.kind].train(texts, self.vocab_size, **options)
        return tokenizer
