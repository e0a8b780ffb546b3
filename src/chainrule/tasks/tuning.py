"""What a trained model is tuned for: the task that fits the model and the data, unless one is asked for."""

from __future__ import annotations

from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data.read.chat.layouts import ASKING, conversations_in
from chainrule.data.read.tabular.records import Record, kind, records
from chainrule.errors import ConfigError, DataError, Setting
from chainrule.models import BERT, LanguageModel, Model, Reward, describe
from chainrule.models.bert.heads import body_of
from chainrule.suggest import hinted
from chainrule.tasks.instruction import InstructionTask

# The tasks of a BERT by the name that is asked for, and the family that it becomes.
OF_BERT = {
    "classification": "bert-classifier",
    "tagging": "bert-tagger",
    "embedding": "bert-embedder",
    "masked-lm": "bert",
}


def tuning_task(model: Model, data: str, asked: str = "", columns: Columns = CHOSEN) -> tuple[str, str]:
    """The family of the tuned model, and the name of its task; empty if it is that of the family.

    A language model learns to answer if the data are instructions or conversations, else to continue their text; a BERT
    learns labels, an encoder-decoder pairs, a reward model preferences.
    """
    family = str(describe(model)["model_type"])
    if isinstance(model, Reward):
        if asked:
            rule = "must be left out: a reward model learns preferences"
            raise ConfigError.of("tune", {"task": asked}, rule)
        return family, ""
    if asked:
        return _asked(model, family, asked)
    if body_of(model) is not None:
        plain = isinstance(model, BERT) or family == "bert"
        found = OF_BERT["classification"] if plain else family
        if found != OF_BERT["embedding"]:  # which learns from pairs of texts
            _no_conversations(family, data)
        return found, ""
    if isinstance(model, LanguageModel) and has_conversations(data, columns):
        return family, InstructionTask.name
    return family, ""


def _asked(model: Model, family: str, asked: str) -> tuple[str, str]:
    bert = body_of(model) is not None
    if bert and asked in OF_BERT:
        return OF_BERT[asked], ""
    if isinstance(model, LanguageModel) and asked == InstructionTask.name:
        return family, asked
    own = "language-modeling" if isinstance(model, LanguageModel) else "translation"
    if not bert and asked == own:
        return family, ""
    known = (
        [*OF_BERT] if bert else [own, *((InstructionTask.name,) if isinstance(model, LanguageModel) else ())]
    )
    rule = hinted(f"must be {' or '.join(known)}", asked, known)
    raise ConfigError("tune: ", Setting("task"), f" is {asked} for a {type(model).__name__} ({rule})")


def has_conversations(data: str, columns: Columns = CHOSEN) -> bool:
    """A .json, which is never a plain text; a .jsonl whose first record asks something; or the built-in set.

    A column that is said to hold a text is one.
    """
    if data == InstructionTask.default:
        return True
    if columns.text_column or not Path(data).is_file():
        return False
    return kind(Path(data)) == ".json" or bool(ASKING & _first(Path(data)).keys())


def _no_conversations(family: str, data: str) -> None:
    """Refuse for a BERT what only a model that writes can learn."""
    path = Path(data)
    if not path.is_file() or kind(path) not in (".json", ".jsonl"):
        return
    try:
        next(conversations_in(_first(path), str(path)))
    except DataError:
        if kind(path) == ".jsonl":
            return
        rule = "must be texts with labels: a .jsonl, .csv, .tsv or .parquet, or lines of a label and a text"
        raise ConfigError(f"tune: {data} is a .json, BASE a {family} ({rule})") from None
    rule = "must be a gpt, llama or neox for these, or DATA texts with labels"
    raise ConfigError(f"tune: {data} holds conversations, BASE is a {family} ({rule})")


def _first(path: Path) -> Record:
    """The first record of a .jsonl or .json; without any, one without fields."""
    return next((record for _, record in records(path)), {}) if kind(path) in (".json", ".jsonl") else {}
