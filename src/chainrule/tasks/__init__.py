"""What a model is trained on and evaluated by: data, split, tokenizer, batches, metric.

One class per kind of training, one file each; those on labeled texts in `labeled/`, on pairs of texts in `pairs/`.
`registry` says which family of models has which task; `setup` makes of data a task, a model and batches.
"""

from chainrule import lazy
from chainrule.tasks.answer_options import AnswerOptions
from chainrule.tasks.baselines import count_baselines
from chainrule.tasks.instruction import InstructionTask
from chainrule.tasks.labeled.bag_of_words import BagOfWordsTask
from chainrule.tasks.labeled.classification import ClassificationTask
from chainrule.tasks.labeled.tagging import TaggingTask
from chainrule.tasks.language_modeling import LanguageModelingTask
from chainrule.tasks.masked_lm import MaskedLMTask
from chainrule.tasks.pairs.scheduled_sampling import ScheduledSampling
from chainrule.tasks.pairs.translation import TranslationTask
from chainrule.tasks.registry import TASKS, task_of, task_of_model
from chainrule.tasks.task import Task
from chainrule.tasks.word_vectors import WordVectorsTask

__all__ = [
    "TASKS", "AnswerOptions", "BagOfWordsTask", "ClassificationTask", "InstructionTask", "LanguageModelingTask",
    "MaskedLMTask", "ScheduledSampling", "TaggingTask", "Task", "TranslationTask", "WordVectorsTask",
    "count_baselines", "task_of", "task_of_model"
]  # fmt: skip

lazy.names(__name__)
