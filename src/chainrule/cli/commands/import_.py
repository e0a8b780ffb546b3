"""`chainrule import`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.options import Argument
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line, size
from chainrule.errors import ConfigError


@dataclass(frozen=True)
class Command:
    """Import a model of another program: Hugging Face's GPT-2, Llama and others, llama.cpp's GGUF, llama2.c's .bin.

    Nothing is downloaded, and no code in the files is run. The result is a directory that `sample` and `export` take,
    and that `transformers` loads.

    Example: chainrule import downloads/tiny-llama --out models/tiny-llama
    """

    source: Annotated[Path, Argument("SOURCE")]
    """A directory with config.json, model.safetensors and tokenizer.json; a .gguf or .bin file, or its directory."""
    out: Path
    """Directory to write, new or empty."""
    tokenizer: Path | None = None
    """A tokenizer's file, for weights that come without one or with one that is not read."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        if cr.runs.RunFolder(self.source).checkpoints.is_dir():
            fix = "sample, eval, chat and export take it as it is; to copy the model: export"
            raise ConfigError(f"{self.source}: a run of ours (must be a model of another program; {fix})")
        with Progress(f"write {self.out}"):
            model, tokenizer = cr.io.convert(self.source, self.out, self.tokenizer)
        if self.json:
            counts = {"parameters": model.count(), "vocabulary": tokenizer.vocab_size}
            print(json.dumps({"out": str(self.out)} | counts))
            return
        print(f"{size(model)}; {tokenizer.vocab_size:,} tokens; in {self.out}")
        print(f"generate text with: {command_line()} sample {self.out}")
