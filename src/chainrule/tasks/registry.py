"""Which task each family of models is trained on."""

from __future__ import annotations

from chainrule.errors import ConfigError
from chainrule.models import BERT, Model, describe
from chainrule.models.registry import FAMILIES, PAIRS, WORD_VECTORS
from chainrule.suggest import hinted
from chainrule.tasks.labeled.bag_of_words import BagOfWordsTask
from chainrule.tasks.labeled.classification import ClassificationTask
from chainrule.tasks.labeled.tagging import TaggingTask
from chainrule.tasks.language_modeling import LanguageModelingTask
from chainrule.tasks.masked_lm import MaskedLMTask
from chainrule.tasks.pairs.embedding import EmbeddingTask, without_head
from chainrule.tasks.pairs.translation import TranslationTask
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
    **dict.fromkeys(WORD_VECTORS, WordVectorsTask),
}


def task_of(family: str) -> type[Task]:
    """The task of a family."""
    if family not in TASKS:
        rule = hinted(f"must be one of {', '.join(TASKS)}", family, TASKS)
        raise ConfigError(f"model {family!r}: no such family to train ({rule})")
    return TASKS[family]


def task_of_model(model: Model) -> type[Task]:
    """The task of a model; a body without a head has none."""
    if isinstance(model, BERT):
        raise without_head(model)
    return task_of(describe(model)["model_type"])
