"""`chainrule merge`"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

import chainrule as cr
from chainrule.autograd.types import Array
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.outputs import New
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import command_line, size, used
from chainrule.errors import ConfigError, Failure

TOKENS = 32  # that are compared, in each of ROWS rows
ROWS = 4
CLOSE = 1e-3  # as far as logits may differ, beside their size


@dataclass(frozen=True)
class Command(Reporting):
    """Add what was tuned into the weights of the base: a plain model, as a Hugging Face directory.

    It costs no more than the base, and every command and `transformers` take it. Of LoRA, of biases and of heads; what
    other methods add computes something that no weight can.

    Example: chainrule merge runs/tuned --out models/tuned --verify
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a tuned run, one of its checkpoints, or a directory with an adapter of PEFT."""
    out: Annotated[Path, New]
    """Directory to write, new or empty."""
    verify: bool = False
    """Read the result again and print the largest difference of its logits from those of the tuned model."""

    def run(self) -> None:
        from chainrule.io.hf.architectures import has_twin
        from chainrule.runs.tuned.merging import merge

        with Progress(f"read {self.run_folder}"):
            found = merge(self.run_folder)
        used(self.run_folder)
        if not has_twin(found.model):
            kind = type(found.model).__name__
            raise ConfigError(f"merge: Hugging Face has no model like this {kind} (use the run as it is)")
        with Progress(f"write {self.out}"):
            cr.io.save_pretrained(found.model, found.tokenizer, self.out)
        report: dict[str, object] = {"out": str(self.out), "parameters": found.model.count()}
        report["changed"] = len(found.changed)
        if self.verify:
            with Progress("verify"):
                report |= self._compared(found.tuned)
        if self.json:
            print(json.dumps(report))
            return
        print(f"{size(found.model)}; {len(found.changed)} weights changed; in {self.out}")
        if self.verify:
            print(
                f"largest logit difference {report['logit_difference']:.3g}, of logits up to {report['logits']:.3g}"
            )
        verb = "chat" if found.tokenizer.conventions.chat_template else "sample"
        print(f"use it with: {command_line(verb if _writes(found.model) else 'eval', self.out)}")

    def _compared(self, tuned: cr.models.Model) -> dict[str, float]:
        """The largest difference between the logits of the tuned model and of what was written."""
        written, _ = cr.load(self.out)
        before, after = logits(tuned), logits(written)
        difference, largest = float(np.abs(before - after).max()), float(np.abs(before).max())
        if not difference <= CLOSE * max(1.0, largest):
            rule = "must be the same but for rounding: do not use it, and report this"
            raise Failure(
                f"{self.out}: logits differ by {difference:.3g} from those of {self.run_folder} ({rule})"
            )
        return {"logit_difference": difference, "logits": largest}


def _writes(model: cr.models.Model) -> bool:
    return isinstance(model, cr.models.LanguageModel | cr.models.EncoderDecoder)


def logits(model: cr.models.Model) -> Array:
    """What a model says to rows of tokens, the same for each model of its vocabulary."""
    T = min(TOKENS, model.context)
    ids = np.random.default_rng(0).integers(model.config.vocab_size, size=(ROWS, T))
    with model.answering():
        given = (ids, None, ids) if isinstance(model, cr.models.EncoderDecoder) else (ids,)
        return np.asarray(model(*given).numpy())
