"""Text to token ids and back."""

from chainrule.text.chars import CharTokenizer

__all__ = ["CharTokenizer"]
