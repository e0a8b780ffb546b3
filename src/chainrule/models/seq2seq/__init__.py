"""Encoder-decoder transformers: what they share (encoder_decoder), the usual one (model, config) and T5."""

from chainrule.models.seq2seq.config import Seq2SeqConfig
from chainrule.models.seq2seq.encoder_decoder import EncoderDecoder
from chainrule.models.seq2seq.model import Seq2Seq
from chainrule.models.seq2seq.t5 import T5, T5Config

__all__ = ["T5", "EncoderDecoder", "Seq2Seq", "Seq2SeqConfig", "T5Config"]
