"""BERT: the encoder (body), how it learns from text (pretraining), and what it is for (heads)."""

from chainrule.models.bert.body import BERT, BERTConfig
from chainrule.models.bert.heads import (
    BERTClassifier,
    BERTClassifierConfig,
    BERTEmbedder,
    BERTEmbedderConfig,
    BERTTagger,
    BERTTaggerConfig,
    fine_tune,
)
from chainrule.models.bert.pretraining import BERTPretraining, BERTPretrainingConfig

__all__ = [
    "BERT", "BERTClassifier", "BERTClassifierConfig", "BERTConfig", "BERTEmbedder", "BERTEmbedderConfig",
    "BERTPretraining", "BERTPretrainingConfig", "BERTTagger", "BERTTaggerConfig", "fine_tune"
]  # fmt: skip
