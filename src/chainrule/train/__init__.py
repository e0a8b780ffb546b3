"""Training: the loop, its settings and its log."""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.train.config import TrainConfig, WordTrainConfig
    from chainrule.train.log import Log
    from chainrule.train.trainer import Result, Trainer
    from chainrule.train.word_vectors import WordVectorStep

__all__ = ["Log", "Result", "TrainConfig", "Trainer", "WordTrainConfig", "WordVectorStep"]

__getattr__ = lazy.names(
    __name__,
    config="TrainConfig WordTrainConfig",
    log="Log",
    trainer="Result Trainer",
    word_vectors="WordVectorStep",
)
