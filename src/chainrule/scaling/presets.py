"""Well-known models by name, in the sizes of their papers."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.models import BERTPretrainingConfig, GPTConfig, LlamaConfig, Seq2SeqConfig
from chainrule.scaling.architectures import Parts, bert, gpt, llama, seq2seq


class Preset(NamedTuple):
    """A model and the length of text it was made for."""

    parts: Parts
    tokens: int


BERT_BASE = BERTPretrainingConfig(
    n_layer=12, n_head=12, n_embd=768, n_hidden=3072, block_size=512, vocab_size=30_522
)


def _gpt(layers: int, heads: int, width: int, context: int) -> Preset:
    return Preset(gpt(GPTConfig(layers, heads, width, context, 50_257)), context)


def _smollm() -> Preset:
    config = LlamaConfig(
        n_layer=30, n_head=9, n_kv_head=3, n_embd=576, n_hidden=1536, block_size=2048, vocab_size=49_152
    )
    return Preset(llama(config), config.block_size)


PRESETS = {
    "transformer-base": Preset(seq2seq(Seq2SeqConfig.base()), 128),
    "bert-base": Preset(bert(BERT_BASE), 512),
    "gpt2": _gpt(12, 12, 768, 1024),
    "gpt2-xl": _gpt(48, 25, 1600, 1024),
    "gpt3": _gpt(96, 96, 12_288, 2048),
    "smollm-135m": _smollm(),
}
