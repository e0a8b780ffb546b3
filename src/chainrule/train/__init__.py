"""Training: the loop, its settings and its log."""

from chainrule.train.config import TrainConfig
from chainrule.train.log import Log
from chainrule.train.trainer import Result, Trainer
from chainrule.train.word_vectors import WordTrainConfig, WordVectorStep

__all__ = ["Log", "Result", "TrainConfig", "Trainer", "WordTrainConfig", "WordVectorStep"]
