"""Training: the loop, its settings, its log and its checkpoints."""

from chainrule.train.baselines import count_baselines
from chainrule.train.checkpoint import Checkpoint
from chainrule.train.config import TrainConfig
from chainrule.train.log import Log
from chainrule.train.loop import Result, Trainer
from chainrule.train.plot import loss_curve
from chainrule.train.runs import Run, load_model
from chainrule.train.word2vec import WordTrainConfig, WordTrainer

__all__ = [
    "Checkpoint",
    "Log",
    "Result",
    "Run",
    "TrainConfig",
    "Trainer",
    "WordTrainConfig",
    "WordTrainer",
    "count_baselines",
    "load_model",
    "loss_curve",
]
