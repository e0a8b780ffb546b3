"""`chainrule train`"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from chainrule.cli.show import bits, command_line, size
from chainrule.data import load
from chainrule.errors import ConfigError
from chainrule.models import GPTConfig
from chainrule.train import Run, TrainConfig
from chainrule.train.runs import free_folder


@dataclass(frozen=True)
class Command:
    """Train a GPT on the characters of a text.

    Example: chainrule train gpt book.txt --n-layer 6 --n-embd 192 --n-head 6 --max-steps 5000 --out runs/book
    """

    data: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")] = "pydoc"
    """A text file, or a corpus that `chainrule data list` knows."""
    out: Path | None = None
    """Directory of the run. Default: runs/gpt, or the next of runs/gpt-2, runs/gpt-3, ... that is free."""
    resume: Path | None = None
    """Go on with this run, with its data and settings, from its newest checkpoint."""

    n_layer: int = GPTConfig.n_layer
    """Blocks of the model."""
    n_head: int = GPTConfig.n_head
    """Attention heads per block."""
    n_embd: int = GPTConfig.n_embd
    """Width of the model; a multiple of the heads."""
    block_size: int = GPTConfig.block_size
    """Longest context, in characters."""
    dropout: float = GPTConfig.dropout
    """Share of attention weights and of MLP activations set to 0 in training."""
    bias: bool = GPTConfig.bias
    """Biases in linear layers and norms."""
    activation: str = GPTConfig.activation
    """Between the two layers of an MLP: gelu, or gelu_tanh, the approximation GPT-2 was trained with."""

    training: tyro.conf.OmitArgPrefixes[TrainConfig] = field(default_factory=TrainConfig)

    def run(self) -> None:
        run = self._resumed(self.resume) if self.resume else self._new()
        print(
            f"{size(run.model)}, {len(run.corpus.text):,} characters of {run.corpus.name}; run {run.folder}"
        )
        result = run.train()
        print(f"validation loss {bits(result.validation)} after {result.steps:,} steps")
        if result.interrupted:
            print(f"interrupted; go on with: {command_line()} train gpt --resume {run.folder}")
            raise SystemExit(130)
        print(f"let it write with: {command_line()} sample {run.folder}")

    def _new(self) -> Run:
        sizes = {f.name: getattr(self, f.name) for f in fields(GPTConfig) if f.name != "vocab_size"}
        folder = self.out or free_folder(Path("runs/gpt"))
        return Run.new(folder, load(self.data), self.training, **sizes)

    def _resumed(self, folder: Path) -> Run:
        """Data and settings come from the checkpoint; what is given all the same must agree with it."""
        run = Run.resume(folder)
        if self.out is not None and self.out != folder:
            raise ConfigError(f"resume: out is {self.out}, the run is in {folder} (leave it out)")
        if self.data != "pydoc" and load(self.data) != run.corpus:
            raise ConfigError(f"resume: data is {self.data}, in the run {run.corpus.name} (leave it out)")
        given: dict[str, Any] = vars(self) | vars(self.training)
        default: dict[str, Any] = vars(Command()) | vars(TrainConfig())
        for name, value in (vars(run.model.config) | vars(run.trainer.config)).items():
            if name in given and given[name] not in (default[name], value):
                raise ConfigError(f"resume: {name} is {given[name]}, in the run {value} (leave it out)")
        return run
