"""What a trained model is tuned for: the task that fits the model and the data, unless one is asked for."""

from __future__ import annotations

import json
from pathlib import Path

from chainrule.errors import ConfigError, Setting
from chainrule.files import regular_bytes
from chainrule.models import BERT, LanguageModel, Model, describe
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
CONVERSATIONS = {"messages", "conversations", "instruction", "prompt", "instances"}  # fields of a record
FIRST = 1 << 16  # bytes of a file that are looked at


def tuning_task(model: Model, data: str, asked: str = "") -> tuple[str, str]:
    """The family of the tuned model, and the name of its task; empty if it is that of the family.

    A language model learns to answer if the data are instructions or conversations, else to continue their text; a BERT
    learns labels, an encoder-decoder pairs.
    """
    family = str(describe(model)["model_type"])
    bert = body_of(model) is not None
    if asked:
        return _asked(model, family, asked)
    if bert:
        plain = isinstance(model, BERT) or family == "bert"
        return (OF_BERT["classification"] if plain else family), ""
    if isinstance(model, LanguageModel) and has_conversations(data):
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


def has_conversations(data: str) -> bool:
    """The first record of a file has a field of an instruction or a conversation; the built-in set of such is one."""
    if data == InstructionTask.default:
        return True
    path = Path(data)
    if path.suffix not in (".json", ".jsonl") or not path.is_file():
        return False
    text = regular_bytes(path)[:FIRST].decode("utf-8", "replace").lstrip("\ufeff \n\r\t[")
    try:
        record, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False
    return isinstance(record, dict) and bool(CONVERSATIONS & record.keys())
