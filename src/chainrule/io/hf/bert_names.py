"""Names of weights in Hugging Face's variants of BERT, both ways.

Ours are those of their BertModel, with the body of a model with a head under `bert.`; a variant says what it calls
otherwise. RoBERTa and MPNet also count positions from 2: rows 0 and 1 of their table are never read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chainrule.io.hf.weights import drop_prefix, without_copies, without_rows
from chainrule.io.safetensors import Arrays

Pairs = tuple[tuple[str, str], ...]  # a part of our name, and of theirs

BODY = ("embeddings.", "embeddings_project.", "encoder.", "pooler.")
POSITIONS = "embeddings.position_embeddings.weight"
TABLE = "embeddings.word_embeddings.weight"
UNUSED = ("embeddings.position_ids", "embeddings.token_type_ids")  # older files count the positions
OLD = ((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias"))


class Names(NamedTuple):
    """What a variant calls otherwise."""

    prefix: str
    """Of the body, in a model with a head."""
    classes: str
    """How the names of its classes begin."""
    tied: dict[str, str]
    """Copies of shared weights, and their originals."""
    body: Pairs = ()
    words: Pairs = ()
    """Of the head that scores words."""
    classifier: Pairs = ()
    first_position: int = 0


def _lm_head(decoder: str, bias: str) -> dict[str, str]:
    return {f"{decoder}.weight": TABLE} | ({f"{decoder}.bias": bias} if f"{decoder}.bias" != bias else {})


LM_HEAD = (
    ("cls.predictions.transform.dense.", "lm_head.dense."),
    ("cls.predictions.transform.LayerNorm.", "lm_head.layer_norm."),
    ("cls.predictions.bias", "lm_head.bias"),
)
OUT_PROJ = (("classifier.", "classifier.out_proj."), ("pooler.dense.", "classifier.dense."))

VARIANTS = {
    "bert": Names("bert", "Bert", _lm_head("cls.predictions.decoder", "cls.predictions.bias")),
    "roberta": Names(
        "roberta",
        "Roberta",
        _lm_head("lm_head.decoder", "lm_head.bias"),
        words=LM_HEAD,
        classifier=OUT_PROJ,
        first_position=2,
    ),
    "electra": Names(
        "electra",
        "Electra",
        _lm_head("generator_lm_head", "generator_lm_head.bias"),
        words=(
            ("cls.predictions.transform.", "generator_predictions."),
            ("cls.predictions.bias", "generator_lm_head.bias"),
        ),
        classifier=OUT_PROJ,
    ),
    "mpnet": Names(
        "mpnet",
        "MPNet",
        _lm_head("lm_head.decoder", "lm_head.bias"),
        body=(
            ("attention.self.query.", "attention.attn.q."),
            ("attention.self.key.", "attention.attn.k."),
            ("attention.self.value.", "attention.attn.v."),
            ("attention.output.dense.", "attention.attn.o."),
            ("attention.output.LayerNorm.", "attention.LayerNorm."),
        ),
        words=LM_HEAD,
        classifier=OUT_PROJ,
        first_position=2,
    ),
    "distilbert": Names(
        "distilbert",
        "DistilBert",
        _lm_head("vocab_projector", "vocab_projector.bias"),
        body=(
            ("encoder.layer.", "transformer.layer."),
            ("attention.self.query.", "attention.q_lin."),
            ("attention.self.key.", "attention.k_lin."),
            ("attention.self.value.", "attention.v_lin."),
            ("attention.output.dense.", "attention.out_lin."),
            ("attention.output.LayerNorm.", "sa_layer_norm."),
            ("intermediate.dense.", "ffn.lin1."),
            ("output.dense.", "ffn.lin2."),
            ("output.LayerNorm.", "output_layer_norm."),
        ),
        words=(
            ("cls.predictions.transform.dense.", "vocab_transform."),
            ("cls.predictions.transform.LayerNorm.", "vocab_layer_norm."),
            ("cls.predictions.bias", "vocab_projector.bias"),
        ),
        classifier=(("pooler.dense.", "pre_classifier."),),
    ),
}


def to_ours(tensors: Arrays, names: Names, *, classifier: bool) -> Arrays:
    """Arrays by our names, those of the body without `bert.`."""
    found = {_replaced(name, OLD): a for name, a in tensors.items() if not name.endswith(UNUSED)}
    found = drop_prefix(found, f"{names.prefix}.")
    for copy, original in names.tied.items():
        if original not in found and copy in found:
            found[original] = found.pop(copy)
    found = without_copies(found, names.tied)
    heads = _turned((*names.words, *(names.classifier if classifier else ())))
    ours = {_first(_replaced(name, _turned(names.body)), heads): array for name, array in found.items()}
    if names.first_position and POSITIONS in ours:
        ours[POSITIONS] = without_rows(POSITIONS, ours[POSITIONS], names.first_position)
    return ours


def to_theirs(state: Arrays, names: Names, *, classifier: bool, head: bool) -> Arrays:
    """Arrays by their names, from ours without `bert.`; in a model with a head the body has their prefix."""
    heads = (*names.words, *(names.classifier if classifier else ()))
    found: Arrays = {}
    for name, array in state.items():
        if name == POSITIONS and names.first_position:
            array = np.concatenate([np.zeros((names.first_position, array.shape[1]), array.dtype), array])
        theirs = _first(name, heads)
        if theirs == name and name.startswith(BODY):
            theirs = _replaced(name, names.body)
            theirs = f"{names.prefix}.{theirs}" if head else theirs
        found[theirs] = array
    return found


def _turned(pairs: Pairs) -> Pairs:
    return tuple((theirs, ours) for ours, theirs in pairs)


def _replaced(name: str, pairs: Pairs) -> str:
    """The name with each of these parts replaced."""
    for old, new in pairs:
        name = name.replace(old, new)
    return name


def _first(name: str, pairs: Pairs) -> str:
    """The name with the first of these beginnings replaced."""
    for old, new in pairs:
        if name.startswith(old):
            return new + name[len(old) :]
    return name
