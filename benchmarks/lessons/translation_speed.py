"""Tokens per second of an encoder-decoder that writes: its compiled decoder beside its layers, in turn.

    python -m benchmarks.lessons.translation_speed          prints one JSON line per batch and beam

Sources have 8 to 20 tokens, every translation 30. `ratio` is of the median times.
"""

from __future__ import annotations

import json
from functools import partial

import numpy as np

import chainrule as cr
from benchmarks.harness import command_line, in_turn
from chainrule.generate import Translator, translate
from chainrule.models import Seq2Seq, Seq2SeqConfig

SIZE = Seq2SeqConfig(n_layer=3, n_head=4, n_embd=192, block_size=64, vocab_size=4000, norm="post")
START, END, TOKENS, ROUNDS = 1, 2, 30, 7


def main() -> None:
    command_line(__doc__).parse_args()
    cr.seed(0)
    model = Seq2Seq(SIZE).eval()
    model.final_logits_bias.data[0, END] = -1e3  # never
    compiled = Translator(model)
    with cr.backend("reference"):  # when it is made: its ops are the native ones
        layers = Translator(model)
    rng = np.random.default_rng(0)
    for batch in (1, 32):
        source = rng.integers(SIZE.vocab_size, size=(batch, 20))
        mask = np.arange(20) < rng.integers(8, 21, size=(batch, 1))
        for beam in (1, 4):
            options = {"start": START, "end": END, "max_new_tokens": TOKENS, "beam": beam}
            runs = {
                name: partial(translate, translator, source, mask, **options)
                for name, translator in (("layers", layers), ("compiled", compiled))
            }
            median = {name: measured.median for name, measured in in_turn(runs, ROUNDS).items()}
            row = {name: round(batch * TOKENS / ms * 1e3) for name, ms in median.items()}
            ratio = round(median["layers"] / median["compiled"], 2)
            print(json.dumps({"batch": batch, "beam": beam} | row | {"ratio": ratio}), flush=True)


if __name__ == "__main__":
    main()
