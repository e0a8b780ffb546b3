"""Text from a model, one token at a time."""

from chainrule.generate.decoder import Decoder
from chainrule.generate.readers import reader
from chainrule.generate.sample import choose, generate, stream, write

__all__ = ["Decoder", "choose", "generate", "reader", "stream", "write"]
