"""Special tokens, chat template and generation defaults in the files of a Hugging Face directory.

tokenizer_config.json         bos_token, eos_token, ..., add_bos_token, chat_template
special_tokens_map.json       the same tokens, in older directories
chat_template.jinja           the template, in newer directories
tokenizer.json                its post_processor may put bos before a text
generation_config.json        eos_token_id (one or several), temperature, top_k, ...; in older ones config.json
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from chainrule.errors import FormatError, kind_of
from chainrule.io.hf.tokenizers.parts import token_before
from chainrule.io.settings import Settings
from chainrule.text import Conventions, Tokenizer
from chainrule.text.special_tokens import ids_by_role

# Our names of generation defaults, and Hugging Face's.
GENERATION = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical": "typical_p",
    "repetition_penalty": "repetition_penalty",
    "max_new_tokens": "max_new_tokens",
}
WHOLE = ("top_k", "max_new_tokens")  # the others are real numbers

Files = Mapping[str, Any]


def read_conventions(
    tokenizer: Tokenizer, about: Files, generation: Files, config: Files, described: Files
) -> Conventions:
    """What the contents of tokenizer_config.json, generation_config.json, config.json and tokenizer.json say."""
    named = {role: _named(tokenizer, about.get(f"{role}_token")) for role in ("bos", "eos", "pad", "unk")}
    listed = {role: _listed(role, generation) or _listed(role, config) for role in ("bos", "eos", "pad")}
    first = {role: ids[0] if ids else None for role, ids in listed.items()}
    ends = ([] if named["eos"] is None else [named["eos"]]) + listed["eos"]
    bos = named["bos"] if "bos_token" in about else first["bos"]
    found = Conventions(
        bos=bos,
        eos=tuple(dict.fromkeys(ends)),
        pad=first["pad"] if named["pad"] is None else named["pad"],
        unk=named["unk"],
        chat_template=_template(about.get("chat_template")),
        generation=read_generation(generation),
    ).within(tokenizer.vocab_size)
    return replace(found, add_bos=_adds_bos(tokenizer, found.bos, about, described))


def ignored_ends(tokenizer: Tokenizer, about: Files, generation: Files) -> Iterator[str]:
    """What these files name as the end of a text and the tokenizer does not have: no text would end there."""
    value = about.get("eos_token")
    name = value.get("content") if isinstance(value, dict) else value
    if isinstance(name, str) and _named(tokenizer, name) is None:
        yield f"eos_token is {name[:60]!r}, which is no special token of the tokenizer: it is ignored"
    tokens = tokenizer.vocab_size
    if beyond := [id for id in _listed("eos", generation) if id >= tokens]:
        yield f"eos_token_id is {beyond[0]}, the tokenizer has {tokens:,} tokens: it is ignored"


def roles(tokenizer: Tokenizer) -> dict[str, int]:
    """Role -> id: those of the conventions, and others by their usual names."""
    usual = ids_by_role(tokenizer.special_ids)
    others = {role: usual.get(role) for role in ("cls", "sep", "mask")}
    return {role: id for role, id in (tokenizer.conventions.roles | others).items() if id is not None}


def write_rest(conventions: Conventions) -> dict[str, Any]:
    """The entries of tokenizer_config.json beside the names of tokens."""
    template = conventions.chat_template
    begins = {"add_bos_token": True} if conventions.add_bos else {}
    return begins | ({} if template is None else {"chat_template": template})


def write_ids(conventions: Conventions) -> dict[str, Any]:
    """The ids in config.json and generation_config.json; null says that transformers must not take its own."""
    ends = list(conventions.eos)
    eos = ends if len(ends) > 1 else ends[0] if ends else None
    return {"bos_token_id": conventions.bos, "eos_token_id": eos, "pad_token_id": conventions.pad}


def read_generation(generation: Files) -> dict[str, float]:
    """Defaults by our names. A model that is not to be sampled has the temperature 0."""
    settings = Settings(generation)
    found = read_defaults(settings, GENERATION)
    if settings.has("do_sample"):
        found["temperature"] = found.get("temperature", 1.0) if settings.flag("do_sample", False) else 0.0
    return found


def read_defaults(settings: Settings, names: Mapping[str, str]) -> dict[str, float]:
    """The generation defaults that a file has, under its names."""
    found: dict[str, float] = {}
    for ours, theirs in names.items():
        if settings.has(theirs):
            found[ours] = settings.integer(theirs) if ours in WHOLE else settings.number(theirs)
    if found.get("top_k") == 0:
        del found["top_k"]  # all tokens
    return found


def write_generation(conventions: Conventions) -> dict[str, Any]:
    """The defaults in generation_config.json."""
    values = conventions.generation
    found: dict[str, Any] = {theirs: values[ours] for ours, theirs in GENERATION.items() if ours in values}
    if "temperature" in found:
        found["do_sample"] = found["temperature"] > 0
        if not found["do_sample"]:
            del found["temperature"]
    return found


def _named(tokenizer: Tokenizer, value: Any) -> int | None:
    """The id of a token by its name, which may be in an object with its properties."""
    name = value.get("content") if isinstance(value, dict) else value
    return tokenizer.special_ids.get(name) if isinstance(name, str) else None


def _listed(role: str, config: Files) -> list[int]:
    """The ids of a role: a number, a list, or nothing."""
    value = config.get(f"{role}_token_id")
    ids = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(id) is int for id in ids):
        raise FormatError(f"{role}_token_id is {str(value)[:60]} (must be an id, or a list of them)")
    return ids


def _adds_bos(tokenizer: Tokenizer, bos: int | None, about: Files, described: Files) -> bool:
    """tokenizer_config.json decides, else the post_processor of tokenizer.json."""
    said = about.get("add_bos_token")
    if bos is None or isinstance(said, bool):
        return bos is not None and bool(said)
    return tokenizer.piece(bos) == token_before(described)


def _template(value: Any) -> str | None:
    """A template, or of several the one that is called default."""
    if isinstance(value, list):
        named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
        value = named.get("default")
    if value is not None and not isinstance(value, str):
        raise FormatError(f"chat_template is {kind_of(value)} (must be a text)")
    return value or None
