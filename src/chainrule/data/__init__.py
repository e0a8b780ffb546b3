"""Corpora, and batches cut from them."""

from chainrule.data.batches import Batches, split, windows
from chainrule.data.corpora import BUILT_IN, Corpus, available, load
from chainrule.data.streams import Streams

__all__ = ["BUILT_IN", "Batches", "Corpus", "Streams", "available", "load", "split", "windows"]
