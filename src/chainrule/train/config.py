"""The settings of a training run, in three groups: how to learn, when to look, and all the rest."""

from __future__ import annotations

from dataclasses import dataclass

from chainrule.calls import Fields
from chainrule.models.registry import KNOWN, WORD_VECTORS
from chainrule.native import PRECISIONS
from chainrule.validate import Check, Seconds

KEEP = ("best", "last")
FREEZE = ("none", "body")
SCHEDULES = ("wsd", "cosine", "linear", "constant", "step", "inverse_sqrt")
ON_NAN = ("stop", "skip")
MOST_NEGATIVES = 1000
REPLAYED = 0.1  # of the rows of a batch, if a text is replayed and no share is said


@dataclass(frozen=True)
class Learning(Fields):
    """AdamW, clipped gradients, and a learning rate that changes with the step."""

    max_steps: int = 2000
    """Training steps."""
    budget: Seconds | None = None
    """Training time in seconds (on the command line also 10m or 2h), instead of max_steps. Unless sizes are given,
    they are chosen to fit it."""
    batch_size: int = 32
    """Windows of text, or other examples, per step."""
    accumulate: int | None = None
    """Microbatches per step: the same update in less memory. Default: for gpt, llama and neox enough for about 1,024
    tokens each (2,048 from a width of 512 on), which takes no more time; else 1."""
    lr: float = 3e-3
    """Highest learning rate."""
    schedule: str = "wsd"
    """Schedule of the learning rate: wsd (warmup, stable, decay), cosine, linear, constant, step (a tenth of the rate
    for the last tenth of the steps), or inverse_sqrt, as in the first transformer."""
    min_lr: float = 0.0
    """Final learning rate of wsd, cosine and linear."""
    warmup: int = 100
    """Steps over which the learning rate rises; at most until the decay begins."""
    decay: float = 0.5
    """Fraction of the steps, at the end, over which the learning rate of wsd falls."""
    weight_decay: float = 0.1
    """AdamW's weight decay, of matrices only: not of biases and gains."""
    beta2: float = 0.99
    """AdamW's decay rate of the second moment."""
    clip: float = 1.0
    """Largest norm of the gradient; a longer one is scaled down."""


@dataclass(frozen=True)
class Monitoring(Fields):
    """When to evaluate, sample, save and watch."""

    eval_every: int = 250
    """Steps between evaluations on the validation text."""
    eval_windows: int = 512
    """Windows per evaluation, at most."""
    keep: str = "best"
    """The checkpoint that sample, eval, export and --init use: that of the best evaluation (by accuracy for a
    classifier, by loss for all others), or the last."""
    patience: int = 0
    """Stop after this many evaluations without a new best; 0 never stops early."""
    sample_every: int = 0
    """Steps between samples of generated text; 0 for none."""
    save_every: int = 500
    """Steps between checkpoints; the last step is always saved."""
    watch_every: int = 0
    """Steps between statistics of activations, gradients and updates in log.jsonl; 0 for none."""


@dataclass(frozen=True)
class TrainConfig(Monitoring, Learning):
    """How to train."""

    precision: str = "fp32"
    """Precision of the matmul inputs of linear layers: fp32, bf16 or fp16. Sums, weights and the rest stay in fp32."""
    recompute: bool = False
    """Keep only the input of each block and recompute the rest in backward: less memory, a third more time."""
    compile: bool = True
    """Record the kernel calls of a step once per shape and repeat them without Python: the same bits in less time."""
    ema: float = 0.0
    """Decay rate of a running mean of the weights, such as 0.999, evaluated and kept in their place; 0 for none."""
    freeze: str = "none"
    """What does not learn: none, or body, the BERT that --init begins with; then its new head learns alone."""
    on_nan: str = "stop"
    """What to do about a loss or gradient that is not finite: stop, or skip the step."""
    shard_optimizer: bool = False
    """With several ranks, each keeps 1/n of the optimizer's state: less memory, the same bits."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        check = Check("train", self)
        check.at_least(1, "max_steps", "batch_size", "accumulate", "eval_every", "eval_windows", "save_every")
        check.at_least(0, "warmup", "watch_every", "sample_every", "patience")
        check.positive("lr", "clip")
        check.duration("budget")
        check.not_negative("weight_decay")
        small = self.weight_decay * self.lr < 1  # or a step would leave nothing of a weight, or turn it round
        rule = "their product must be below 1, the fraction of a weight that a step takes away"
        check.require(small, "lr", "weight_decay", rule=rule, fix="make one of them smaller")
        check.require(0 <= self.min_lr <= self.lr, "min_lr", "lr", rule="must be from 0 to the learning rate")
        check.fraction("beta2", "ema")
        check.require(0 < self.decay < 1, "decay", rule="must be between 0 and 1")
        check.one_of("precision", PRECISIONS)
        check.one_of("schedule", SCHEDULES)
        check.one_of("on_nan", ON_NAN)
        check.one_of("keep", KEEP)
        check.one_of("freeze", FREEZE)
        rule = "must be wsd with a budget: the number of steps is not known, and only wsd can do without"
        check.require(self.budget is None or self.schedule == "wsd", "schedule", rule=rule)
        fits = self.accumulate is None or self.accumulate <= self.batch_size
        check.require(fits, "accumulate", "batch_size", rule="must be at most the batch size")
        check.seed()


@dataclass(frozen=True)
class Keeping(Fields):
    """How what the base knows is measured and kept."""

    general: str | None = None
    """A text on which forgetting is measured. Default: the validation data of the base's own run, if they are there."""
    tolerance: float | None = None
    """Stop when the loss there has risen by more than this, in nats, and use a checkpoint before. Default: never."""
    pull: float = 0.0
    """Weight of the squared distance from the pretrained weights, added to the loss; of full, bitfit and head."""
    replay: str | None = None
    """A text whose windows are mixed into the batches. Default: with --replay-share, that of the base's own run."""
    replay_share: float | None = None
    """Fraction of the rows of a batch that come from there. Default: 0.1 with --replay, else 0."""

    def __post_init__(self) -> None:
        check = Check("tune", self)
        check.not_negative("tolerance", "pull")
        check.fraction("replay_share")

    @property
    def share(self) -> float:
        """Of the old text in a batch."""
        if self.replay_share is None:
            return REPLAYED if self.replay else 0.0
        return self.replay_share


@dataclass(frozen=True)
class WordTrainConfig(Fields):
    """How to train word2vec."""

    epochs: int = 5
    """Passes over the text."""
    lr: float | None = None
    """First learning rate, which falls linearly to 0. Default: 0.025 for skip-gram, 0.075 for CBOW."""
    negatives: int = 5
    """Words drawn at random against each real one."""
    sample: float = 1e-3
    """Words more frequent than this fraction of the text are read less often; 0 reads all."""
    power: float = 0.75
    """Negatives are drawn by frequency to this power; 0 draws all words alike."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        check = Check("word2vec", self)
        check.at_least(1, "epochs")
        check.between(1, MOST_NEGATIVES, "negatives")
        check.positive("lr")
        check.not_negative("sample", "power")
        check.seed()


def defaults(family: str) -> TrainConfig | WordTrainConfig:
    """How a family is trained unless told otherwise."""
    if family in WORD_VECTORS:
        return WordTrainConfig()
    return TrainConfig(lr=KNOWN[family].lr) if family in KNOWN else TrainConfig()
