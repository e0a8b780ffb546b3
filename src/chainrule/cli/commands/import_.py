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
    json: bool = False
    """Print one JSON object."""

    def run(self) -> None:
        if cr.runs.RunFolder(self.source).checkpoints.is_dir():
            fix = "sample, eval, chat and export take it as it is; to copy the model: export"
            raise ConfigError(f"{self.source}: a run of ours (must be a model of another program; {fix})")
        with Progress(f"read {self.source}"):
            model, tokenizer = cr.io.load(self.source)
        with Progress(f"write {self.out}"):
            cr.io.save_pretrained(model, tokenizer, self.out)
        if self.json:
            counts = {"parameters": model.count(), "vocabulary": tokenizer.vocab_size}
            print(json.dumps({"out": str(self.out)} | counts))
            return
        print(f"{size(model)}; {tokenizer.vocab_size:,} tokens; in {self.out}")
        print(use_of(model, f"{command_line()} {{}} {self.out}"))


def use_of(model: cr.models.Model, command: str) -> str:
    """What to do with a model: the command that uses it."""
    models = cr.models
    if isinstance(model, models.BERT | models.BERTEmbedder):
        return f"turn texts into vectors with: {command.format('embed')} FILE"
    if isinstance(model, models.BERTPretraining):
        return f'guess words with: {command.format("sample")} --prompt "... [MASK] ..."'
    if isinstance(model, models.BERTClassifier):
        return f"label texts with: {command.format('sample')} --prompt TEXT"
    if isinstance(model, models.EncoderDecoder):
        return f"translate with: {command.format('sample')} --prompt TEXT"
    return f"generate text with: {command.format('sample')}"
