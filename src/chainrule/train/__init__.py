"""Training: the loop, its settings and its log."""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.train.config import TrainConfig
    from chainrule.train.log import Log
    from chainrule.train.trainer import Result, Trainer
    from chainrule.train.word2vec import WordTrainConfig, WordTrainer

__all__ = ["Log", "Result", "TrainConfig", "Trainer", "WordTrainConfig", "WordTrainer"]

__getattr__ = lazy.names(
    __name__,
    {
        "Log": "log",
        "Result": "trainer",
        "TrainConfig": "config",
        "Trainer": "trainer",
        "WordTrainConfig": "word2vec",
        "WordTrainer": "word2vec",
    },
)
