"""Training: `trainer` is the loop, `step` one update, `evaluation` what is measured between, `config` the settings.

`plan` decides the number of steps and the rate; `log` writes log.jsonl; `precision`, `ema` and `skips` belong to a
step; `trials` finds a learning rate or overfits one batch; `word_vectors` trains word2vec.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.train.config import TrainConfig, WordTrainConfig
    from chainrule.train.log import Log
    from chainrule.train.trainer import Result, Trainer
    from chainrule.train.word_vectors.trainer import WordVectorStep

__all__ = ["Log", "Result", "TrainConfig", "Trainer", "WordTrainConfig", "WordVectorStep"]

lazy.names(
    __name__,
    config="TrainConfig WordTrainConfig",
    log="Log",
    trainer="Result Trainer",
    word_vectors="WordVectorStep",
)
