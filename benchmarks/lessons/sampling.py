"""What choosing a token costs beside the step of the model that scores it: GPT-2's vocabulary of 50,257 tokens.

    python -m benchmarks.lessons.sampling                                  prints one JSON line per option

Scores are drawn from a normal distribution of deviation 3, whose likeliest tokens have about the probabilities of
a language model; equal ones are the worst case. `of_a_step` compares with a step of GPT-2 in fp32 after 512 tokens.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks.harness import command_line, fastest
from benchmarks.peers.decode import GPT2
from chainrule.generate import Decoder, Sampling, choose
from chainrule.models import GPT, GPTConfig
from chainrule.random import generator

OPTIONS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.0},
    {"top_k": 50},
    {"top_p": 0.9},
    {"min_p": 0.05},
    {"typical": 0.9},
    {"repetition_penalty": 1.1},
    {"top_k": 200, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.1, "frequency_penalty": 0.1},
]


def main() -> None:
    command_line(__doc__).parse_args()
    decoder = Decoder(GPT(GPTConfig(**GPT2)))
    decoder.prefill(np.arange(512))
    step = fastest(lambda: decoder.step([5]))
    peaked = np.random.default_rng(0).normal(scale=3, size=GPT2["vocab_size"]).astype(np.float32)
    text = list(range(500))
    cases = [("normal", peaked, options) for options in OPTIONS]
    cases.append(("flat", np.zeros_like(peaked), {"top_p": 0.9}))
    for scores, logits, options in cases:
        sampling = Sampling(**{"temperature": 1.0} | options)
        ms = fastest(lambda s=sampling, x=logits: choose(x, generator("sample", 3, seed=1), s, text, text))
        row = {"scores": scores, "options": options, "ms": round(ms, 3)}
        print(json.dumps(row | {"of_a_step": round(ms / step, 4)}))


if __name__ == "__main__":
    main()
