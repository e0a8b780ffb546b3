"""Tokens per second of an encoder-decoder that writes: its compiled decoder beside its layers, in turn.

    python -m benchmarks.lessons.translation_speed          prints one JSON line per batch and beam

Sources have 8 to 20 tokens, every translation 30. `ratio` is of the median times.
"""

from __future__ import annotations

import json
import statistics
import time

import numpy as np

import chainrule as cr
from chainrule.generate import Translator, translate
from chainrule.models import Seq2Seq, Seq2SeqConfig

SIZE = Seq2SeqConfig(n_layer=3, n_head=4, n_embd=192, block_size=64, vocab_size=4000)
START, END, TOKENS, TIMES = 1, 2, 30, 7


def main() -> None:
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
            seconds: dict[str, list[float]] = {"layers": [], "compiled": []}
            for _ in range(TIMES):
                for name, translator in (("layers", layers), ("compiled", compiled)):
                    began = time.perf_counter()
                    translate(
                        translator, source, mask, start=START, end=END, max_new_tokens=TOKENS, beam=beam
                    )
                    seconds[name].append(time.perf_counter() - began)
            median = {name: statistics.median(times) for name, times in seconds.items()}
            row = {name: round(batch * TOKENS / time) for name, time in median.items()}
            ratio = round(median["layers"] / median["compiled"], 2)
            print(json.dumps({"batch": batch, "beam": beam} | row | {"ratio": ratio}), flush=True)


if __name__ == "__main__":
    main()
