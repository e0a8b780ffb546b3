"""The same models by other libraries: `transformers` for numbers, `tokenizers` and SentencePiece for tokens."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from tests.io import sentencepiece_files as pieces
from tests.peers import random_models as makers

transformers.utils.logging.disable_progress_bar()

KINDS = ("Marian", "Pegasus")
PROMPT = np.array([5, 17, 3, 88, 41])
MASK = np.arange(9) < np.array([9, 5, 7])[:, None]
IDS = np.where(MASK, np.random.default_rng(4).integers(3, makers.V, size=(3, 9)), 1)  # 1 is padding
TARGET = np.random.default_rng(5).integers(3, makers.V, size=(3, 7))


class Peer(NamedTuple):
    """A model of another library."""

    name: str
    outputs: Callable[[np.ndarray], np.ndarray]  # ids (B, T) to logits, or to the vectors of a body
    tokens: str  # whose tokens
    encode: Callable[[str], list[int]]
    special: bool = True  # it reads the names of special tokens as these


def of(path: Path) -> Peer:
    """The model in a file or directory."""
    if path.suffix == ".gguf":
        model = transformers.AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32
        )
        return Peer("transformers", logits(model), *gguf_tokens(path))
    if path.suffix == ".bin":
        return Peer(
            "transformers", logits(llama2c(path)), "SentencePiece", llama2c_tokens(path), special=False
        )
    classes = json.loads((path / "config.json").read_text())["architectures"]
    model = getattr(transformers, classes[0]).from_pretrained(path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    return Peer("transformers", logits(model), "transformers", plain(tokenizer))


def logits(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    return lambda ids: read(model, (ids,))


def plain(tokenizer: Any) -> Callable[[str], list[int]]:
    return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


def gguf_tokens(path: Path) -> tuple[str, Callable[[str], list[int]]]:
    """By the parts that the family has in its tokenizer.json; transformers leaves the splitting of digits out."""
    import gguf
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    fields = gguf.GGUFReader(path).fields
    kind = fields["tokenizer.ggml.pre"].contents() if "tokenizer.ggml.pre" in fields else ""
    if kind != "smollm":
        return "transformers", plain(
            transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        )
    names = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(line.split(" ")) for line in fields["tokenizer.ggml.merges"].contents()]
    types = fields["tokenizer.ggml.token_type"].contents()
    theirs = Tokenizer(models.BPE({name: id for id, name in enumerate(names)}, merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), byte_level]
    )
    control = [name for name, type in zip(names, types, strict=True) if type == gguf.TokenType.CONTROL]
    theirs.add_special_tokens([AddedToken(name, special=True) for name in control])
    return "tokenizers", lambda text: theirs.encode(text).ids


def llama2c(path: Path) -> Any:
    """A Llama of transformers with the weights of a llama2.c file, read here by the layout of its export.py."""
    content = path.read_bytes()
    C, hidden, L, H, H_kv, vocab, context = struct.unpack("7i", content[:28])
    flat, at = np.frombuffer(content, np.float32, offset=28), 0

    def take(*shape: int) -> torch.Tensor:
        nonlocal at
        at += int(np.prod(shape))
        return torch.tensor(flat[at - int(np.prod(shape)) : at].reshape(shape))

    def halves(rows: torch.Tensor, heads: int) -> torch.Tensor:
        """Rotary pairs 2i, 2i + 1 to i, i + D/2"""
        return rows.reshape(L, heads, -1, 2, C).transpose(2, 3).reshape(rows.shape)

    kv, V = H_kv * C // H, abs(vocab)
    state = {"model.embed_tokens.weight": take(V, C)}
    layers = {
        "input_layernorm": take(L, C),
        "self_attn.q_proj": halves(take(L, C, C), H),
        "self_attn.k_proj": halves(take(L, kv, C), H_kv),
        "self_attn.v_proj": take(L, kv, C),
        "self_attn.o_proj": take(L, C, C),
        "post_attention_layernorm": take(L, C),
        "mlp.gate_proj": take(L, hidden, C),
        "mlp.down_proj": take(L, C, hidden),
        "mlp.up_proj": take(L, hidden, C),
    }
    state |= {f"model.layers.{i}.{name}.weight": rows[i] for name, rows in layers.items() for i in range(L)}
    state["model.norm.weight"] = take(C)
    take(2, context, C // H // 2)  # the angles
    state["lm_head.weight"] = state["model.embed_tokens.weight"] if vocab > 0 else take(V, C)
    config = transformers.LlamaConfig(
        num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=H_kv, hidden_size=C, intermediate_size=hidden,
        max_position_embeddings=context, vocab_size=V, rms_norm_eps=1e-5, tie_word_embeddings=vocab > 0,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict(state)
    return model


def llama2c_tokens(path: Path) -> Callable[[str], list[int]]:
    """SentencePiece with the pieces and scores of the tokenizer's file beside the model."""
    import sentencepiece

    (beside,) = path.parent.glob("tok*.bin")
    content, at, found = beside.read_bytes(), 4, []
    while at < len(content):
        score, size = struct.unpack("<fi", content[at : at + 8])
        text = content[at + 8 : at + 8 + size].decode()
        at += 8 + size
        id = len(found)
        kind = (
            pieces.UNKNOWN
            if id == 0
            else pieces.CONTROL
            if id < 3
            else pieces.BYTE
            if id < 259
            else pieces.NORMAL
        )
        name = (
            ("<unk>", "<s>", "</s>")[id] if id < 3 else text.replace(" ", "▁") if id >= 259 else text.strip()
        )
        found.append((name, score, kind))
    normal = {1: b"identity", 3: 1, 4: 0, 5: 1}  # a space before the text, none removed, spaces as ▁
    proto = pieces.model(found, trainer={35: 1}, normalizer=normal)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return lambda text: theirs.encode(text)


# -- random weights ----------------------------------------------------------------------------------------------

Inputs = tuple[np.ndarray, ...]


def random_models() -> dict[str, list[tuple[Any, Inputs]]]:
    """Models of every kind, each with its inputs: ids, a mask, the ids of a target."""
    found: dict[str, list[tuple[Any, Inputs]]] = {}
    for kind, more in makers.DECODERS.values():
        found.setdefault(kind, []).append((makers.decoder(kind, **more), (IDS,)))
    for name in makers.ENCODERS:
        models = [makers.encoder(name, head) for head in makers.HEADS]
        found.setdefault(name.split(",")[0], []).extend((model, (IDS, MASK)) for model in models)
    pairs = [
        (kind.lower(), makers.marian_or_pegasus(kind, tied=tied))
        for kind, tied in product(KINDS, (True, False))
    ]
    pairs += [(name.split(",")[0], makers.pair(name)) for name in makers.PAIRS]
    for name, model in pairs:
        found.setdefault(name, []).append((model, (IDS, MASK, TARGET)))
    return found


def read(model: Any, inputs: Inputs) -> np.ndarray:
    """Their logits, or the vectors of a body."""
    names = ("input_ids", "attention_mask", "decoder_input_ids")
    given = {name: torch.tensor(value.astype(int)) for name, value in zip(names, inputs, strict=False)}
    with torch.no_grad():
        found = model.eval()(**given)
    logits = getattr(found, "logits", None)
    return (found.last_hidden_state if logits is None else logits).numpy()


def greedy(model: Any, n: int) -> list[int]:
    ids = torch.tensor(PROMPT[None])
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, do_sample=False, pad_token_id=0
    )
    return made[0, len(PROMPT) :].tolist()
