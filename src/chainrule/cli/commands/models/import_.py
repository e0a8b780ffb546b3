"""`chainrule import`"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import New
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line, size
from chainrule.errors import ConfigError, DataError


@dataclass(frozen=True)
class Command(Reporting):
    """Import a model of another program: Hugging Face's GPT-2, Llama and others, llama.cpp's GGUF, llama2.c's .bin.

    Nothing is downloaded, and no code in the files is run. The result is a directory that `sample`, `chat`, `eval` and
    `export` take, and that `transformers` loads.

    Example: chainrule import downloads/tiny-llama --out models/tiny-llama
    """

    source: Annotated[Path, Argument("SOURCE")]
    """A directory with config.json, model.safetensors and tokenizer.json; a .gguf or .bin file, or its directory."""
    out: Annotated[Path | None, New] = None
    """Directory to write, new or empty. Default: models/NAME, by the name of the source."""
    tokenizer: Path | None = None
    """A tokenizer's file, for weights that come without one or with one that is not read."""

    def run(self) -> None:
        if cr.runs.RunFolder(self.source).checkpoints.is_dir():
            fix = "sample, eval, chat and export take it as it is; to copy the model: export"
            raise ConfigError(f"{self.source}: a run of ours (must be a model of another program; {fix})")
        out = self.out or Path(
            "models", self.source.stem if self.source.is_file() else self.source.resolve().name
        )
        with Progress(f"write {out}"):
            model, tokenizer = cr.io.convert(self.source, out, self.tokenizer)
        facts = found(model, tokenizer)
        if self.json:
            print(json.dumps({"out": str(out)} | facts))
            return
        print(f"{size(model)}; in {out}")
        print(f"tokenizer: {facts['tokenizer']}, {tokenizer.vocab_size:,} tokens", end="")
        print(f"; end tokens: {' '.join(facts['end_tokens']) or 'none'}", end="")
        print(f"; chat template: {'yes' if facts['chat_template'] else 'no'}")
        for what, words, missing in uses(model, tokenizer, out):
            print(f"cannot {what} yet: {missing}" if missing else f"{what} with: {command_line()} {words}")


def found(model: cr.models.Model, tokenizer: cr.text.Tokenizer) -> dict[str, Any]:
    """What was in the files, for machines."""
    c = tokenizer.conventions
    return {
        "architecture": type(model).__name__,
        "parameters": model.count(),
        "context": getattr(model.config, "block_size", None),
        "tokenizer": tokenizer.kind,
        "vocabulary": tokenizer.vocab_size,
        "end_tokens": [tokenizer.piece(id) for id in c.eos],
        "chat_template": c.chat_template is not None,
    }


def uses(
    model: cr.models.Model, tokenizer: cr.text.Tokenizer, folder: Path
) -> Iterator[tuple[str, str, str]]:
    """What this model can do, the command for it, and what it lacks so far."""
    models, out = cr.models, shlex.quote(str(folder))
    lacks = lacking(model, tokenizer)
    if isinstance(model, models.BERT | models.BERTEmbedder):
        yield "turn texts into vectors", f"embed {out} FILE", lacks
    elif isinstance(model, models.BERTPretraining):
        yield "guess words", f'sample {out} --prompt "The [MASK] is here."', lacks
    elif isinstance(model, models.BERTClassifier | models.BERTTagger):
        what = "label texts" if isinstance(model, models.BERTClassifier) else "label words"
        yield what, f'sample {out} --prompt "TEXT"', lacks
    elif isinstance(model, models.EncoderDecoder):
        yield "translate", f'sample {out} --prompt "TEXT"', lacks
    elif isinstance(model, models.LanguageModel):
        if tokenizer.conventions.chat_template is not None:
            yield "talk", f"chat {out}", lacks
        yield "generate text", f"sample {out}", ""


def lacking(model: cr.models.Model, tokenizer: cr.text.Tokenizer) -> str:
    """What stands in the way of the command for this model; empty if nothing does."""
    from chainrule.text.chat.roles import own_format
    from chainrule.text.chat.template import ChatTemplate, check_jinja

    try:
        if isinstance(model, cr.models.EncoderDecoder):
            cr.text.Marks.of(tokenizer.special_ids, model.config.target_start)
        elif not isinstance(model, cr.models.LanguageModel):  # an encoder
            cr.text.SpecialIds.of(tokenizer.special_ids)
        elif isinstance(own_format(tokenizer), ChatTemplate):
            check_jinja()
    except DataError as error:  # special tokens
        return f"{error}; import it again with its tokenizer (--tokenizer FILE)"
    except ConfigError as error:
        return error.spelled(lambda setting: f"--{setting}")
    return ""
