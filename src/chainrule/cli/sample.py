"""`chainrule sample`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from chainrule.errors import ConfigError
from chainrule.generate import write
from chainrule.train import load_model


@dataclass(frozen=True)
class Command:
    """Let a trained model go on from a prompt.

    Example: chainrule sample runs/demo --prompt "The return value " --temperature 0.7 --seed 3
    """

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Directory of a run, or one of its checkpoints."""
    prompt: str = ""
    """Text to go on from. Nothing stands for a new line; if the tokenizer has none, a space, full stop or token 0."""
    max_new_tokens: int = 500
    """Tokens to write: characters, unless the run has another tokenizer."""
    temperature: float = 0.8
    """0 always takes the likeliest token; the higher, the bolder."""
    top_k: int | None = None
    """Draw only from this many of the likeliest tokens."""
    seed: int = 0
    """The same seed writes the same text."""
    weights: Literal["fp32", "bf16", "int8", "int4"] = "fp32"
    """How weights are held: fewer bits take less memory and time, and lose a little (docs/inference.md).
    GPT and Llama only."""
    json: bool = False
    """Print one JSON object with the prompt and the text."""

    def run(self) -> None:
        if self.max_new_tokens < 1:
            raise ConfigError(f"sample: max_new_tokens is {self.max_new_tokens} (must be at least 1)")
        model, tokenizer = load_model(self.run_folder)
        pieces = write(
            model,
            tokenizer,
            self.prompt,
            self.max_new_tokens,
            temperature=self.temperature,
            top_k=self.top_k,
            seed=self.seed,
            weights=self.weights,
        )
        if self.json:
            print(json.dumps({"prompt": self.prompt, "text": "".join(pieces)}))
            return
        print(self.prompt, end="", flush=True)
        for piece in pieces:
            print(piece, end="", flush=True)
        print()
