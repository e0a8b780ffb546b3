"""The encoder-decoder transformer (model) and its sizes (config)."""

from chainrule.models.seq2seq.config import Seq2SeqConfig
from chainrule.models.seq2seq.model import Seq2Seq

__all__ = ["Seq2Seq", "Seq2SeqConfig"]
