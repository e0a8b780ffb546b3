"""A model and its tokenizer in a Hugging Face directory, which `transformers` loads too.

    config.json  model.safetensors  tokenizer.json  tokenizer_config.json  generation_config.json  (conventions.py)

A model of vectors also has the files of sentence-transformers (`sentence_transformers`). The weights may be in several
files with `model.safetensors.index.json`. Pickles are refused: they can run code.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, ChainruleWarning, DataError, FormatError
from chainrule.files import new_file, new_folder, write
from chainrule.io import safetensors
from chainrule.io.files import read_bytes, read_json
from chainrule.io.hf import sentence_transformers
from chainrule.io.hf.architectures import known_kind, to_files, to_opened
from chainrule.io.hf.bert_names import VARIANTS
from chainrule.io.hf.conventions import (
    ignored_ends,
    read_conventions,
    roles,
    write_generation,
    write_ids,
    write_rest,
)
from chainrule.io.hf.tokenizers.parts import put_after, put_before
from chainrule.io.lazy import Arrays
from chainrule.io.opened import Opened
from chainrule.io.tokenizers import described_tokenizer, find_tokenizer, load_tokenizer, to_hugging_face
from chainrule.models import EncoderDecoder, Model, Word2Vec
from chainrule.text import Conventions, Tokenizer, from_dict
from chainrule.text.pipeline import PipelineTokenizer

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# Models whose tokens transformers numbers otherwise than their SentencePiece file, and how their tokenizers are called.
RENUMBERED = {"xlm-roberta": "XLMRoberta", "camembert": "Camembert", "pegasus": "Pegasus", "mbart": "MBart"}
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True)
class Parts:
    """The content of a Hugging Face directory, a field per file."""

    model: Arrays
    config: dict[str, Any]
    tokenizer: dict[str, Any]
    tokenizer_config: dict[str, Any]
    generation_config: dict[str, Any]


def parts(model: Model, tokenizer: Tokenizer | None, arrays: Arrays | None = None) -> Parts:
    """The files of a model and its tokenizer; with copies of its arrays unless they are given."""
    config, arrays = to_files(model, model.state() if arrays is None else arrays)
    if isinstance(model, Word2Vec) and tokenizer is not None:  # no other program reads these
        return Parts(arrays, config, tokenizer.to_dict(), {}, {})
    conventions = Conventions() if tokenizer is None else tokenizer.conventions
    by_role = {} if tokenizer is None else roles(tokenizer)
    named = {role: tokenizer.piece(id) for role, id in by_role.items()} if tokenizer else {}
    ids = write_ids(conventions)
    if isinstance(model, EncoderDecoder):
        usual = (Conventions() if tokenizer is None else Conventions.usual(tokenizer.special_ids)).roles
        known = (usual[role] for role in (model.config.target_start, "bos", "pad"))
        ids["decoder_start_token_id"] = next((id for id in known if id is not None), 0)
    if "architectures" in config:
        config |= _agreed(config, ids)
    if tokenizer is None:
        return Parts(arrays, config, {}, {}, ids)
    described, extra = _describe(tokenizer)
    around = _around(model, config["model_type"], named, by_role)
    if around is None and described.get("post_processor", 0) is None:
        around = _on_one_side(model, tokenizer)
        if around is not None and isinstance(tokenizer, PipelineTokenizer):  # it would come back with them
            extra = {"chainrule": tokenizer.to_dict()}
    if around is not None:
        described = described | {"post_processor": around}
        if around["type"] == "RobertaProcessing":  # its own names of the tokens
            named |= {"cls": around["cls"][0], "sep": around["sep"][0]}
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    if hasattr(model.config, "block_size"):
        about["model_max_length"] = model.config.block_size
    about |= {f"{role}_token": name for role, name in named.items()} | write_rest(conventions) | extra
    return Parts(arrays, config, described, about, ids | write_generation(conventions))


def _agreed(config: Mapping[str, Any], ids: dict[str, Any]) -> dict[str, Any]:
    """The ids for `config.json`; where the weights depend on one, such as that of padding, it must be this one."""
    for name, wanted in config.items():
        if name in ids and ids[name] not in (None, wanted):
            raise FormatError(
                f"{name} is {ids[name]} in the tokenizer (must be {wanted} for {config['model_type']}: "
                "it decides where positions begin)"
            )
    return {name: config.get(name) if id is None else id for name, id in ids.items()}


def _around(
    model: Model, kind: str, named: Mapping[str, str], ids: Mapping[str, int]
) -> dict[str, Any] | None:
    """The post_processor of `tokenizer.json` that puts tokens around a text, for a model that reads them."""

    def token(role: str) -> list[Any]:
        return [named[role], ids[role]]

    if kind in VARIANTS and {"cls", "sep"} <= named.keys():
        return {"type": "BertProcessing", "cls": token("cls"), "sep": token("sep")}
    between = kind in VARIANTS or (isinstance(model, EncoderDecoder) and model.config.target_start == "eos")
    if between and {"bos", "eos"} <= named.keys():
        about = {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": False}
        return about | {"cls": token("bos"), "sep": token("eos")}
    return None


def _on_one_side(model: Model, tokenizer: Tokenizer) -> dict[str, Any] | None:
    """The post_processor that ends a source, as T5 and Marian read it, or begins a text, if its model expects that."""
    special, conventions = tokenizer.special_ids, tokenizer.conventions
    if isinstance(model, EncoderDecoder) and model.config.target_start == "pad" and "</s>" in special:
        return put_after("</s>", special["</s>"])
    if conventions.add_bos and conventions.bos is not None:
        return put_before(tokenizer.piece(conventions.bos), conventions.bos)
    return None


def save_pretrained(
    model: Model, tokenizer: Tokenizer | None, folder: str | Path, arrays: Arrays | None = None
) -> None:
    """Write a directory, completely or not at all; it must be new or empty.

    `arrays` are the values of a model that has none of its own.
    """
    save_parts(parts(model, tokenizer, model.arrays() if arrays is None else arrays), model, folder)


def save_parts(content: Parts, model: Model, folder: str | Path) -> None:
    """Write the files of a model."""
    with new_folder(Path(folder)) as place:
        with new_file(place / WEIGHTS) as file:
            safetensors.write(file, content.model)
        for name in ("config", "tokenizer", "tokenizer_config", "generation_config"):
            if value := getattr(content, name):
                write(place / f"{name}.json", (json.dumps(value, indent=1) + "\n").encode())
        for name, value in sentence_transformers.files(model).items():
            (place / name).parent.mkdir(exist_ok=True)
            write(place / name, (json.dumps(value, indent=1) + "\n").encode())


def load_pretrained(folder: str | Path, tokenizer: Tokenizer | None = None) -> tuple[Model, Tokenizer | None]:
    """The model of a directory, in evaluation mode, and its tokenizer or None; or the one that is given for it."""
    found = open_pretrained(folder, tokenizer)
    return found.load(), found.tokenizer


def open_pretrained(folder: str | Path, tokenizer: Tokenizer | None = None) -> Opened:
    """The same, with its weights where they are."""
    folder = Path(folder)
    config = read_json(folder / "config.json")
    try:
        known_kind(config)
        config |= sentence_transformers.section(folder)
        if tokenizer is None and (tokenizer := _tokenizer(folder, config)):
            tokenizer.conventions = conventions_of(folder, tokenizer, config)
        found = to_opened(config, _weights(folder))._replace(tokenizer=tokenizer)
        if tokenizer is not None:
            check_vocabulary(found.model, tokenizer)
    except (ChainruleError, TypeError, ValueError, OverflowError) as error:
        said = str(error)
        raise FormatError(said if said.startswith(str(folder)) else f"{folder}: {said}") from error
    return found


def to_tokenizer(files: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer in the contents of the files of a checkpoint, by the fields of `Parts`."""
    described, about = files["tokenizer"], files["tokenizer_config"]
    exact = about.get("chainrule")
    tokenizer = from_dict(exact) if isinstance(exact, dict) else described_tokenizer(described)
    if about:
        generation, config = files["generation_config"], files["config"]
        tokenizer.conventions = read_conventions(tokenizer, about, generation, config, described)
    return tokenizer


def check_vocabulary(model: Model, tokenizer: Tokenizer) -> None:
    """Refuse the tokenizer of another model. A model may have more rows than tokens, to make their number round."""
    tokens, rows = tokenizer.vocab_size, model.config.vocab_size
    if tokens > rows:
        raise FormatError(
            f"tokenizer of {tokens} tokens, model of {rows} (must not be more: is it of another model?)"
        )


@lru_cache(maxsize=2)  # every checkpoint needs it, and 50,000 tokens take a second
def _describe(tokenizer: Tokenizer) -> tuple[dict[str, Any], dict[str, Any]]:
    """`tokenizer.json`, and the entries of `tokenizer_config.json` needed to restore the same tokenizer."""
    ours = tokenizer.to_dict()
    try:
        theirs = to_hugging_face(tokenizer)
        return theirs, {} if described_tokenizer(theirs) == tokenizer else {"chainrule": ours}
    except FormatError:  # Hugging Face lacks this tokenizer
        return ours, {}


def _tokenizer(folder: Path, config: Mapping[str, Any]) -> Tokenizer | None:
    path = find_tokenizer(folder)
    if path is None:
        return None
    place = folder / "tokenizer_config.json"
    about = read_json(place) if place.is_file() else {}
    exact = about.get("chainrule")
    if isinstance(exact, dict):
        return from_dict(exact)
    if path.suffix == ".model":
        kind = str(about.get("tokenizer_class")).removesuffix("Fast").removesuffix("Tokenizer")
        if config["model_type"] in RENUMBERED or kind in RENUMBERED.values():
            raise FormatError(
                f"{path}: its ids are not those of {config['model_type']} (needs tokenizer.json)"
            )
    return load_tokenizer(folder)


def conventions_of(
    folder: Path, tokenizer: Tokenizer, config: Mapping[str, Any] | None = None
) -> Conventions:
    """What the small files of a directory, and the content of its config.json, say about the use of its model."""
    if config is None:
        config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    names = ("tokenizer_config", "special_tokens_map", "generation_config", "tokenizer")
    paths = [folder / f"{name}.json" for name in names]
    about, older, generation, described = (read_json(path) if path.is_file() else {} for path in paths)
    about = older | about
    if (template := folder / "chat_template.jinja").is_file():
        about["chat_template"] = read_bytes(template).decode("utf-8")
    for said in ignored_ends(tokenizer, about, generation):
        warnings.warn(f"{folder}: {said}", ChainruleWarning, stacklevel=2)
    return read_conventions(tokenizer, about, generation, config, described)


def check_weights_file(path: Path) -> None:
    """Refuse a file that is not among the weights of its directory, which would be read instead."""
    folder = path.parent
    indexed = not (folder / WEIGHTS).is_file() and (folder / INDEX).is_file()
    if not (folder / "config.json").is_file():
        safetensors.read(path)  # says so if it is something else
        fix = "in Python cr.load(path, model) reads them into a model of your own"
        raise FormatError(f"{path}: weights alone (must stand beside the config.json of their model; {fix})")
    if path.name not in (_weight_map(folder).values() if indexed else (WEIGHTS,)):
        raise FormatError(
            f"{path}: not the weights of its directory (must be {WEIGHTS}, or listed in {INDEX})"
        )


def _weights(folder: Path) -> Arrays:
    """All arrays of a directory, from one file or from the files of its index."""
    if (folder / WEIGHTS).is_file():
        return safetensors.read(folder / WEIGHTS)
    if not (folder / INDEX).is_file():
        pickles = sorted(path for path in folder.iterdir() if path.suffix in PICKLES)
        if pickles:
            raise refuse_pickle(pickles[0])
        raise DataError(f"{folder}: holds no weights (must have {WEIGHTS})")
    places = _weight_map(folder)
    arrays: Arrays = {}
    for file in sorted(set(places.values())):
        if Path(file).name != file or not file.endswith(".safetensors"):
            raise FormatError(f"{folder / INDEX}: names {file!r} (must be a .safetensors file beside it)")
        shard = safetensors.read(folder / file)
        if unlisted := [name for name in shard if places.get(name) != file]:
            raise FormatError(f"{folder / file}: holds {unlisted[0]!r}, which is not listed in the index")
        arrays |= shard
    if missing := places.keys() - arrays.keys():
        raise FormatError(
            f"{folder}: {min(missing)!r} is in the index, but not in its file (it is incomplete)"
        )
    return arrays


def _weight_map(folder: Path) -> dict[str, str]:
    """Array -> file, by the index of a directory."""
    places = read_json(folder / INDEX, once=safetensors.once).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise FormatError(f"{folder / INDEX}: has no weight_map (must map names to files)")
    return places


def refuse_pickle(path: Path) -> FormatError:
    """The error for a file that could run code when read; it says how to convert the file."""
    return FormatError(
        f"{path}: a pickle, which can run code when it is read (convert it where you trust it: "
        "AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW) writes model.safetensors)"
    )
