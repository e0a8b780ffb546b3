"""Training: the loop, its settings, its log and its checkpoints."""

from chainrule.train.baselines import count_baselines
from chainrule.train.checkpoint import Checkpoint
from chainrule.train.config import TrainConfig
from chainrule.train.grid import Trial, grid_search
from chainrule.train.history import History, histories
from chainrule.train.judge import verdict
from chainrule.train.ladder import Ladder, LadderConfig
from chainrule.train.log import Log
from chainrule.train.loop import Result, Trainer
from chainrule.train.plot import loss_curve
from chainrule.train.replay import Replay, replay
from chainrule.train.run import Run
from chainrule.train.runs import load_any, load_model
from chainrule.train.scheduled_sampling import ScheduledSampling
from chainrule.train.word2vec import WordTrainConfig, WordTrainer

__all__ = [
    "Checkpoint",
    "History",
    "Ladder",
    "LadderConfig",
    "Log",
    "Replay",
    "Result",
    "Run",
    "ScheduledSampling",
    "TrainConfig",
    "Trainer",
    "Trial",
    "WordTrainConfig",
    "WordTrainer",
    "count_baselines",
    "grid_search",
    "histories",
    "load_any",
    "load_model",
    "loss_curve",
    "replay",
    "verdict",
]
