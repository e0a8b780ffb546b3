"""Which task each family of models is trained on, and the tasks that must be asked for by name."""

from __future__ import annotations

from chainrule.errors import ConfigError
from chainrule.models import BERT, Model, describe
from chainrule.models.registry import FAMILIES, PAIRS, REWARDS, WORD_VECTORS
from chainrule.suggest import hinted
from chainrule.tasks.instruction import InstructionTask
from chainrule.tasks.labeled.bag_of_words import BagOfWordsTask
from chainrule.tasks.labeled.classification import ClassificationTask
from chainrule.tasks.labeled.tagging import TaggingTask
from chainrule.tasks.language_modeling import LanguageModelingTask
from chainrule.tasks.masked_lm import MaskedLMTask
from chainrule.tasks.pairs.embedding import EmbeddingTask, without_head
from chainrule.tasks.pairs.translation import TranslationTask
from chainrule.tasks.preferences.dpo import DPOTask
from chainrule.tasks.preferences.policy import PolicyTask
from chainrule.tasks.preferences.reward import RewardTask
from chainrule.tasks.task import Task
from chainrule.tasks.word_vectors import WordVectorsTask

TASKS: dict[str, type[Task]] = {
    **dict.fromkeys(FAMILIES, LanguageModelingTask),
    **dict.fromkeys(PAIRS, TranslationTask),
    "bert": MaskedLMTask,
    "bert-classifier": ClassificationTask,
    "bow-classifier": BagOfWordsTask,
    "bert-tagger": TaggingTask,
    "bert-embedder": EmbeddingTask,
    **dict.fromkeys(REWARDS, RewardTask),
    **dict.fromkeys(WORD_VECTORS, WordVectorsTask),
}

ALIGNMENT: dict[str, type[Task]] = {"reward": RewardTask, "dpo": DPOTask, "ppo": PolicyTask}
"""By the name of the method."""

NAMED: dict[str, type[Task]] = {kind.name: kind for kind in (InstructionTask, DPOTask, PolicyTask)}
"""Tasks of models that have learned already, which are not those of their families: by name, which a run keeps."""


def task_of(family: str, name: str = "") -> type[Task]:
    """The task of a family, or the one with this name."""
    if name:
        if name not in NAMED:
            rule = hinted(f"must be one of {', '.join(NAMED)}", name, NAMED)
            raise ConfigError(f"task {name!r}: no such task ({rule})")
        return NAMED[name]
    if family not in TASKS:
        rule = hinted(f"must be one of {', '.join(TASKS)}", family, TASKS)
        raise ConfigError(f"model {family!r}: no such family to train ({rule})")
    return TASKS[family]


def task_of_model(model: Model, name: str = "") -> type[Task]:
    """The task of a model, or the one with this name; a body without a head has none of its own."""
    if not name and isinstance(model, BERT):
        raise without_head(model)
    return task_of(describe(model)["model_type"], name)
