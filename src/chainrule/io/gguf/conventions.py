"""Special tokens, chat template and generation defaults in GGUF's settings."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.errors import FormatError, kind_of
from chainrule.io.hf.conventions import read_defaults
from chainrule.io.settings import Settings
from chainrule.text import Conventions, Tokenizer

IDS = "tokenizer.ggml."
TEMPLATE = "tokenizer.chat_template"
ADD_BOS = IDS + "add_bos_token"
OURS = "chainrule."  # for what the format has no name for
ENDS = OURS + "eos_token_ids"
NONE = 2**32 - 1  # some files write -1 for a token that is not there
PIECES_BOS = 1  # llama.cpp's bos for SentencePiece BPE, where the file names none

# llama.cpp ends a text at these tokens too, whatever eos_token_id is.
END_NAMES = (
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>", "<EOT>", "_<EOT>", "</s>",
    "<|end_of_text|>", "<end_of_utterance>",
)  # fmt: skip
# Pre-tokenizers with which llama.cpp puts bos first unless the file says otherwise.
BEGIN_WITH_BOS = (
    "llama3",
    "llama-v3",
    "llama-bpe",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "lfm2",
    "tekken",
    "chameleon",
)

GENERATION = {
    "temperature": "general.sampling.temp",
    "top_k": "general.sampling.top_k",
    "top_p": "general.sampling.top_p",
    "min_p": "general.sampling.min_p",
    "repetition_penalty": "general.sampling.penalty_repeat",
    "typical": OURS + "typical",
    "max_new_tokens": OURS + "max_new_tokens",
}


def adds_bos(settings: Settings) -> bool:
    """True if every text begins with bos: as the file says, else as llama.cpp does."""
    kind, pre = settings.values.get(IDS + "model"), settings.values.get(IDS + "pre")
    return settings.flag(ADD_BOS, kind == "llama" or pre in BEGIN_WITH_BOS)


def id_of(settings: Settings, role: str) -> int | None:
    """The token of a role; None if there is none."""
    name = f"{IDS}{role}_token_id"
    pieces = settings.values.get(IDS + "model") == "llama"
    default = PIECES_BOS if role == "bos" and pieces and adds_bos(settings) else NONE
    value = settings.values.get(name, default)
    return None if isinstance(value, int) and value == NONE else settings.integer(name, default=default)


def read_conventions(settings: Settings, tokenizer: Tokenizer) -> Conventions:
    """What the settings of a file say."""
    ends = [id_of(settings, role) for role in ("eos", "eot", "eom")]
    ends += _listed(settings) if settings.has(ENDS) else map(tokenizer.special_ids.get, END_NAMES)
    template = settings.values.get(TEMPLATE)
    if template is not None and not isinstance(template, str):
        raise FormatError(f"{TEMPLATE} is {kind_of(template)} (must be a text)")
    return Conventions(
        bos=id_of(settings, "bos"),
        eos=tuple(dict.fromkeys(id for id in ends if id is not None)),
        pad=id_of(settings, "padding"),
        unk=id_of(settings, "unknown"),
        add_bos=adds_bos(settings),
        chat_template=template or None,
        generation=read_defaults(settings, GENERATION),
    )


def write_conventions(tokenizer: Tokenizer) -> dict[str, Any]:
    """The settings that say what a model expects."""
    c = tokenizer.conventions
    ids = {"bos": c.bos, "padding": c.pad, "unknown": c.unk}
    ids |= dict(zip(("eos", "eot", "eom"), c.eos, strict=False))
    found: dict[str, Any] = {f"{IDS}{role}_token_id": id for role, id in ids.items() if id is not None}
    if c.eos:
        found[ENDS] = np.array(c.eos, np.int32)
    if c.add_bos:
        found[ADD_BOS] = True
    if c.chat_template is not None:
        found[TEMPLATE] = c.chat_template
    return found | {key: c.generation[name] for name, key in GENERATION.items() if name in c.generation}


def _listed(settings: Settings) -> list[int]:
    """The ids that one of our own files lists."""
    ids = settings.values[ENDS]
    if not isinstance(ids, np.ndarray) or ids.dtype.kind not in "iu":
        raise FormatError(f"{ENDS} is {kind_of(ids)} (must be a list of ids)")
    return list(ids.tolist())
