"""N-gram models of counts: the model, its sorted counts (grams), and smoothing."""

from chainrule.models.ngram.grams import Terminals
from chainrule.models.ngram.model import NGram
from chainrule.models.ngram.smoothing import Additive, GoodTuring, KneserNey

__all__ = ["Additive", "GoodTuring", "KneserNey", "NGram", "Terminals"]
