"""The files by which sentence-transformers says how vectors are made of a model's hidden rows.

modules.json                    a Transformer, Pooling, and perhaps Normalize, with their directories
1_Pooling/config.json           which pooling
sentence_bert_config.json       how many tokens of a text are read
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chainrule.errors import FormatError, kind_of
from chainrule.io.files import read_json
from chainrule.io.settings import Settings
from chainrule.models import BERTEmbedder, Model

MODULES = "modules.json"
POOLING = "1_Pooling/config.json"
TRANSFORMER = "sentence_bert_config.json"
ABOUT = "config_sentence_transformers.json"
KNOWN = ("Transformer", "Pooling", "Normalize")
FLAGS = {  # of the pooling's config
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}


def section(folder: Path) -> dict[str, Any]:
    """What the files of a directory say, as a section for its `config.json`; nothing if there are none."""
    if not (folder / MODULES).is_file():
        return {}
    modules = read_json(folder / MODULES, list)
    kinds: dict[str, str] = {}
    for module in modules:
        if not isinstance(module, dict):
            raise FormatError(f"{MODULES} holds {kind_of(module)} (must be a list of objects)")
        kinds[str(module.get("type", "")).rpartition(".")[2]] = str(module.get("path", ""))
    if unknown := [kind for kind in kinds if kind not in KNOWN]:
        raise FormatError(f"{MODULES} asks for {unknown[0]!r} (is not supported, must be {', '.join(KNOWN)})")
    if list(kinds)[:2] != ["Transformer", "Pooling"] or kinds["Transformer"]:
        raise FormatError(
            f"{MODULES} begins with {', '.join(kinds)} (must be a Transformer in the directory itself, then Pooling)"
        )
    about = Settings(_optional(folder / ABOUT))
    if about.has("default_prompt_name"):
        raise FormatError(
            f"default_prompt_name is {about.values['default_prompt_name']!r} (is not supported: put the prompt before "
            f"each text, and remove it from {ABOUT})"
        )
    said: dict[str, Any] = {"pooling": _pooling(folder, kinds["Pooling"]), "normalize": "Normalize" in kinds}
    transformer = Settings(_optional(folder / TRANSFORMER))
    transformer.must("do_lower_case", False)
    if transformer.has("max_seq_length"):
        said["max_length"] = transformer.integer("max_seq_length")
    return {"sentence_transformers": said}


def files(model: Model) -> dict[str, Any]:
    """The content of these files for a model; none for one that makes no vectors."""
    if not isinstance(model, BERTEmbedder):
        return {}
    config = model.config
    names = ("Transformer", "Pooling", *(("Normalize",) if config.normalize else ()))
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": f"{i}_{name}" if i else "",
            "type": f"sentence_transformers.models.{name}",
        }
        for i, name in enumerate(names)
    ]
    flags = {flag: name == config.pooling for name, flag in FLAGS.items()}
    return {
        MODULES: modules,
        POOLING: {"word_embedding_dimension": config.n_embd} | flags,
        TRANSFORMER: {"max_seq_length": config.max_length or config.block_size, "do_lower_case": False},
    }


def _pooling(folder: Path, path: str) -> str:
    if not path or Path(path).name != path:
        raise FormatError(f"{MODULES} names the directory {path!r} (must be one inside this directory)")
    said = read_json(folder / path / "config.json")
    named = said.get("pooling_mode")
    on = [flag for flag, value in said.items() if flag.startswith("pooling_mode_") and value is True]
    modes = on if named is None else [FLAGS.get(str(named), str(named))]
    ours = {flag: name for name, flag in FLAGS.items()}
    if len(modes) != 1 or modes[0] not in ours:
        asked = " and ".join(modes) or "no pooling"
        raise FormatError(f"{path}: asks for {asked} (must be one of {', '.join(ours)})")
    return ours[modes[0]]


def _optional(path: Path) -> Any:
    return read_json(path) if path.is_file() else {}
