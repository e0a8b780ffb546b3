"""Text from a model, one token at a time."""

from chainrule.generate.sample import choose, generate, stream, write

__all__ = ["choose", "generate", "stream", "write"]
