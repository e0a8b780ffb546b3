"""The files of llama2.c: a Llama as seven numbers and its weights in float32, and its tokenizer in a second file.

    model.bin                   dim, hidden, layers, heads, kv heads, vocabulary (negative: an untied head), context
    tok512.bin, tokenizer.bin   the longest token's length, then the score, length and bytes of each token

This is the version without a magic number, as in the published models.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from chainrule.errors import ConfigError, FormatError, Setting, kind_of
from chainrule.files import new_file
from chainrule.io.binary import Cursor, map_file
from chainrule.io.files import naming
from chainrule.io.hf.weights import halves_to_pairs, pairs_to_halves
from chainrule.io.lazy import Arrays, Matrix, later
from chainrule.io.opened import Opened
from chainrule.models import Llama, LlamaConfig, Model
from chainrule.models.llama import VARIANTS
from chainrule.nn.positions import frequencies
from chainrule.text import SentencePieceBPETokenizer, Tokenizer, Vocabulary
from chainrule.text.unigram import BYTES, SPACE, UNKNOWN

HEADER = "7i"
TOKENIZER = re.compile(r"tok(\d+|enizer)\.bin")  # names of tokenizer files
ROPE_BASE, NORM_EPS = 10000.0, 1e-5  # constants of llama2.c, not stored
MOST_LAYERS = 1000  # a file of many tiny layers must not allocate much memory
START, END = "<s>", "</s>"
RULE = (
    "llama2c: tokens 0 to 258 are not <unk>, <s>, </s> and the 256 bytes (must be, its programs count on it)"
)

# In the order of the file: each kind of weight for all layers.
LAYER_WEIGHTS = (
    "input_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "post_attention_layernorm.weight",
    "mlp.gate_proj.weight",
    "mlp.down_proj.weight",
    "mlp.up_proj.weight",
)


def read_model(path: Path) -> Model:
    """The model in a file."""
    return open_model(path).load()


def open_model(path: Path) -> Opened:
    """The same, with its weights where they are."""
    with naming(path):
        content = map_file(path)
        return _opened(_config(Cursor(content)), Cursor(content, struct.calcsize(HEADER)))


def read_tokenizer(path: Path, vocab_size: int | None = None) -> SentencePieceBPETokenizer:
    """The tokenizer in a file; the file does not store the number of tokens. Without it, all that are there."""
    with naming(path):
        return _tokenizer(Cursor(map_file(path)), vocab_size)


def find_tokenizer(model: Path, vocab_size: int) -> Path:
    """The tokenizer file beside a model, under one of the usual names."""
    names = (f"tok{vocab_size}.bin", "tokenizer.bin")
    found = [model.with_name(name) for name in names if model.with_name(name).is_file()]
    if not found:
        rule = f"must be {' or '.join(names)}, or given to import by "
        raise FormatError(f"{model}: no tokenizer beside it ({rule}", Setting("tokenizer"), ")")
    return found[0]


def write(model: Model, tokenizer: Tokenizer, folder: Path) -> None:
    """model.bin and tokenizer.bin in `folder`."""
    if not isinstance(model, Llama):
        raise ConfigError(f"llama2c: cannot hold {kind_of(model)} (must be a Llama)")
    c = model.config
    if (c.rope_base, c.norm_eps) != (ROPE_BASE, NORM_EPS):
        raise ConfigError(
            f"llama2c: rope_base {c.rope_base}, norm_eps {c.norm_eps} (must be {ROPE_BASE}, {NORM_EPS})"
        )
    for name, usual in (("head_dim", None), ("rope_scaling", None), ("attention_bias", "none")):
        if getattr(c, name) != usual:
            raise ConfigError(
                f"llama2c: {name} is {getattr(c, name)} (must be {usual}: the format cannot store it)"
            )
    if c.differs != VARIANTS["llama"]:
        raise ConfigError(f"llama2c: variant is {c.variant} (must be llama: the format has no other)")
    pieces = _pieces(tokenizer)
    with new_file(folder / "model.bin") as file:
        vocab = c.vocab_size if c.tied else -c.vocab_size
        sizes = (c.n_embd, c.n_hidden, c.n_layer, c.n_head, c.n_kv_head, vocab, c.block_size)
        file.write(struct.pack("<" + HEADER, *sizes))
        for name, array in _laid_out(model.arrays(), c):
            file.write(np.asarray(_turned(name, array, c, halves_to_pairs), "<f4", order="C").tobytes())
    with new_file(folder / "tokenizer.bin") as file:
        file.write(struct.pack("<i", max(len(piece) for piece, _ in pieces)))
        for piece, score in pieces:
            file.write(struct.pack("<fi", score, len(piece)) + piece)


def _config(header: Cursor) -> LlamaConfig:
    dim, hidden, layers, heads, kv_heads, vocab, context = header.unpack(HEADER)
    try:
        return LlamaConfig(
            n_layer=layers,
            n_head=heads,
            n_kv_head=kv_heads,
            n_embd=dim,
            n_hidden=hidden,
            block_size=context,
            vocab_size=abs(vocab),
            rope_base=ROPE_BASE,
            norm_eps=NORM_EPS,
            tied=vocab > 0,
        )
    except ConfigError as error:
        said = str(error).removeprefix("Llama: ")
        raise FormatError(f"not a llama2.c file, or a damaged one (by its header {said})") from error


def _opened(config: LlamaConfig, weights: Cursor) -> Opened:
    table = config.block_size * (config.n_embd // config.n_head)  # cosines and sines of the positions
    expected = 4 * (config.n_params + table)
    if config.n_layer > MOST_LAYERS:
        raise FormatError(f"{config.n_layer} layers (must be at most {MOST_LAYERS})")
    if weights.rest != expected:
        raise FormatError(f"{weights.rest} bytes of weights, its sizes ask for {expected} (must be equal)")
    places = Llama.abstract(config).arrays()
    stored = {name: weights.array("<f4", *array.shape) for name, array in _laid_out(places, config)}
    arrays = {name: _turned(name, stored[name], config, pairs_to_halves) for name in places}
    return Opened.of(Llama, config, arrays)


def _laid_out(state: Arrays, config: LlamaConfig) -> Iterator[tuple[str, Matrix]]:
    """All arrays of a file in order, by name."""
    names = [f"layers.{layer}.{name}" for name in LAYER_WEIGHTS for layer in range(config.n_layer)]
    for name in ("embed_tokens.weight", *names, "norm.weight"):
        yield name, state[name]
    angles = np.outer(np.arange(config.block_size), frequencies(config.n_embd // config.n_head, ROPE_BASE))
    yield "cosines", np.cos(angles)  # stored, but recomputed by llama2.c
    yield "sines", np.sin(angles)
    if not config.tied:
        yield "lm_head.weight", state["lm_head.weight"]


def _turned(name: str, array: Matrix, config: LlamaConfig, turn: Callable[[Matrix, int], Matrix]) -> Matrix:
    """Queries and keys in the other rotary order; other weights unchanged."""
    heads = {"q_proj": config.n_head, "k_proj": config.n_kv_head}.get(
        name.split(".")[-2] if "." in name else ""
    )
    return array if heads is None else later(lambda weight: turn(weight, heads), array)


def _tokenizer(file: Cursor, vocab_size: int | None) -> SentencePieceBPETokenizer:
    file.unpack("i")  # the length of the longest token
    names: list[str] = []
    scores: list[float] = []
    while file.rest if vocab_size is None else len(names) < vocab_size:
        score, length = file.unpack("fi")
        names.append(file.text(length))
        scores.append(score)
    if file.rest or not all(map(math.isfinite, scores)):
        raise FormatError(f"not {len(names)} tokens with finite scores (it is another model's, or damaged)")
    special = [UNKNOWN, START, END]
    if [name.strip() for name in names[:3]] != special or tuple(names[3:259]) != BYTES:
        raise FormatError(RULE)
    tokens = [*special, *BYTES, *(name.replace(" ", SPACE) for name in names[259:])]
    return SentencePieceBPETokenizer.from_scores(Vocabulary(tokens, special), scores, start=START)


def _pieces(tokenizer: Tokenizer) -> list[tuple[bytes, float]]:
    """The tokens as llama2.c stores them, and scores that give our order of merges."""
    if not isinstance(tokenizer, SentencePieceBPETokenizer):
        raise ConfigError(
            f"llama2c: cannot hold a {tokenizer.kind} tokenizer (must be {SentencePieceBPETokenizer.kind})"
        )
    tokens = tokenizer.vocabulary.tokens
    if tokens[:259] != (UNKNOWN, START, END, *BYTES) or tokenizer.special_ids.keys() - set(tokens[:3]):
        raise ConfigError(RULE)
    names = [token.replace(SPACE, " ").encode() for token in tokens]
    # As llama2.c writes SentencePiece's control tokens.
    names[1:3] = [b"\n%b\n" % name for name in names[1:3]]
    return list(zip(names, tokenizer.scores(), strict=True))
