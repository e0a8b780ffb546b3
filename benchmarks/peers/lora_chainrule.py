"""Our side of lora.py: a worker that makes LoRA steps of a GPT."""

from __future__ import annotations

from benchmarks.peers.lora import RANK
from benchmarks.peers.step_chainrule import worker

if __name__ == "__main__":
    worker(__doc__, lambda cr, gpt: cr.models.tuning.LoRA(rank=RANK).apply(gpt), weight_decay=0.0)
