"""A tokenizer of small parts, as `tokenizer.json` describes them: normalizer, pre-tokenizer, model, decoder.

Every part is a frozen dataclass with the name and the fields that it has in the file. Combinations that have a class of
their own (`BPETokenizer`, `WordPieceTokenizer`, ...) run there, in C++; the others run here.
"""

from chainrule.text.pipeline.added import AddedToken
from chainrule.text.pipeline.tokenizer import PipelineTokenizer

__all__ = ["AddedToken", "PipelineTokenizer"]
