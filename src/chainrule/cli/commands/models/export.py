"""`chainrule export`"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import chainrule as cr
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import New
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import size, used
from chainrule.errors import ChainruleWarning, ConfigError
from chainrule.files import new_folder


@dataclass(frozen=True)
class Command(Reporting):
    """Write a model and its tokenizer for another program, without optimizer state and log.

    Example: chainrule export runs/demo --out demo-gguf --format gguf --weights q8_0
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run, one of its checkpoints, or anything that `chainrule import` takes."""
    out: Annotated[Path, New]
    """Directory to write, new or empty."""
    format: Literal["hf", "gguf", "llama2c"] = "hf"
    """hf: a directory for Hugging Face's `transformers`. gguf: model.gguf for llama.cpp, of a GPT, a Llama or a NeoX.
    llama2c: model.bin and tokenizer.bin, of a Llama with SentencePiece's tokens."""
    weights: Literal["f32", "q8_0", "q4_0", "q4_1"] = "f32"
    """Numbers in model.gguf: as they are, or in blocks of 32 with a scale, a quarter of the size."""

    def run(self) -> None:
        if self.weights != "f32" and self.format != "gguf":
            said = {"weights": self.weights, "format": self.format}
            raise ConfigError.of("export", said, "only gguf has blocks: choose it, or leave the weights f32")
        with Progress(f"read {self.run_folder}"):
            model, tokenizer = cr.runs.load(self.run_folder)
            # Other programs have the model, not what was put into it.
            model = cr.models.tuning.merged(model, f"{self.run_folder}: no model for other programs")
        used(self.run_folder)
        with Progress(f"write {self.out}"):
            left = self._write(model, tokenizer)
        if self.format == "gguf" and getattr(model.config, "activation", None) == "gelu":
            warnings.warn(
                "llama.cpp will compute a little else: this model has the exact GELU, it only the approximate one "
                "(train with --activation gelu_tanh what shall run there)",
                ChainruleWarning,
                stacklevel=2,
            )
        files = sorted(path.name for path in self.out.iterdir())
        found = {"out": str(self.out), "parameters": model.count(), "files": files}
        if self.weights != "f32":
            found["matrices_in_f32"] = left
        written = f"{size(model)}; in {self.out}: {', '.join(files)}"
        self.report(found, lambda: "\n".join([written, *_too_narrow(left)]))

    def _write(self, model: cr.models.Model, tokenizer: cr.text.Tokenizer) -> list[str]:
        """Write it -> the matrices that --weights could not round"""
        from chainrule.io import gguf, llama2c
        from chainrule.io.hf.architectures import has_twin, unlike

        if self.format == "hf":
            if not has_twin(model):
                said = f"export: Hugging Face has no model like this {type(model).__name__}"
                if why := unlike(model):
                    raise ConfigError(f"{said}: {why}; train it so, or use it here as it is")
                rule = "must be GPT, Llama, NeoX, a reward model, BERT, T5, or Seq2Seq as Marian, Pegasus or BART"
                raise ConfigError(f"{said} ({rule})")
            cr.io.save_pretrained(model, tokenizer, self.out)
            return []
        with new_folder(self.out) as place:
            if self.format == "gguf":
                return gguf.write(model, tokenizer, place / "model.gguf", weights=self.weights)
            llama2c.write(model, tokenizer, place)
        return []


def _too_narrow(left: list[str]) -> list[str]:
    """A line about matrices that no block fits, if there are any."""
    if not left:
        return []
    stay, more = ("matrix stays", "") if len(left) == 1 else ("matrices stay", ", ...")
    rule = "blocks need rows of a multiple of 32 numbers"
    return [f"{len(left)} {stay} in F32: {rule} ({left[0]}{more})"]
