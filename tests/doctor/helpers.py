"""A small trainer on a sentence, to plant faults in."""

from __future__ import annotations

from typing import Any

import chainrule as cr
from chainrule.data import Batches
from chainrule.models import make
from chainrule.text import CharTokenizer
from chainrule.train import TrainConfig, Trainer

TEXT = "the quick brown fox jumps over the lazy dog. " * 60
TOKENIZER = CharTokenizer.train(TEXT)
IDS = TOKENIZER.encode(TEXT)
SIZES: dict[str, Any] = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 12}


def trainer_of(family: str = "gpt", batches: Any = None, **options: Any) -> Trainer:
    cr.seed(1)
    model = make(family, **SIZES, vocab_size=TOKENIZER.vocab_size)
    batches = batches or Batches(IDS, batch_size=6, block_size=12)
    defaults = {"max_steps": 12, "batch_size": 6, "lr": 1e-2, "warmup": 2, "eval_every": 4}
    return Trainer(model, batches, [batches.batch(99)], TrainConfig(**defaults | options), TOKENIZER)


def id_of(letter: str) -> int:
    return int(TOKENIZER.encode(letter)[0])


def weight(trainer: Trainer, name: str) -> Any:
    return dict(trainer.model.named_parameters())[name].array
