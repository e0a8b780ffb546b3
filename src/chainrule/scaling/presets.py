"""Well-known models by name, in the sizes of their papers."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.models import BERTPretrainingConfig, GPTConfig, LlamaConfig, Seq2SeqConfig


class Preset(NamedTuple):
    """The sizes of a model, and the length of text it was made for."""

    config: Any
    tokens: int


def _gpt(layers: int, heads: int, width: int, context: int) -> Preset:
    return Preset(GPTConfig(layers, heads, width, context, 50_257), context)


PRESETS = {
    "transformer-base": Preset(Seq2SeqConfig.base(), 128),
    "bert-base": Preset(
        BERTPretrainingConfig(
            12, 12, 768, 3072, block_size=512, vocab_size=30_522, norm="post", next_sentence=True
        ),
        512,
    ),
    "gpt2": _gpt(12, 12, 768, 1024),
    "gpt2-xl": _gpt(48, 25, 1600, 1024),
    "gpt3": _gpt(96, 96, 12_288, 2048),
    "smollm-135m": Preset(LlamaConfig(30, 9, 3, 576, 1536, block_size=2048, vocab_size=49_152), 2048),
}
