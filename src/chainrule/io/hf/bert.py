"""BERT as in Hugging Face: the same names and layouts, and a class for each head.

BERTPretraining   BertForPreTraining; BertForMaskedLM without next sentence
BERTClassifier    BertForSequenceClassification
BERTTagger        BertForTokenClassification
BERT              BertModel
BERTEmbedder      BertModel, without its pooler
"""

from __future__ import annotations

from typing import Any

from chainrule.errors import FormatError
from chainrule.io.hf.weights import without_copies
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Settings
from chainrule.models import BERT, BERTConfig, BERTPretraining, BERTPretrainingConfig, Model
from chainrule.models.bert.heads import (
    CONFIGS,
    BERTClassifierConfig,
    BERTEmbedderConfig,
    BERTLabelsConfig,
    BERTTaggerConfig,
)

NAMES = ("bert",)
MODELS: dict[type[Any], type[Model]] = {
    BERTPretrainingConfig: BERTPretraining,
    BERTConfig: BERT,
    **{config: model for model, config in CONFIGS.items()},
}
CLASSES: dict[str, type[Any]] = {
    "BertForPreTraining": BERTPretrainingConfig,
    "BertForMaskedLM": BERTPretrainingConfig,
    "BertForSequenceClassification": BERTClassifierConfig,
    "BertForTokenClassification": BERTTaggerConfig,
    "BertModel": BERTConfig,
}
UNUSED = ("embeddings.position_ids", "embeddings.token_type_ids")  # older files count the positions
# Copies in some files of weights that the head shares.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def read_config(settings: Settings) -> BERTConfig:
    """Our config from a `config.json`; options that BERT lacks are refused."""
    settings.must("hidden_act", "gelu")
    settings.must("position_embedding_type", "absolute")
    settings.must("is_decoder", False)
    settings.must("add_cross_attention", False)
    settings.must("tie_word_embeddings", True)
    sizes: dict[str, Any] = {
        "n_layer": settings.integer("num_hidden_layers", default=12),
        "n_head": settings.integer("num_attention_heads", default=12),
        "n_embd": settings.integer("hidden_size", default=768),
        "n_hidden": settings.integer("intermediate_size", default=3072),
        "block_size": settings.integer("max_position_embeddings", default=512),
        "vocab_size": settings.integer("vocab_size", default=30522),
        "n_segments": settings.integer("type_vocab_size", default=2),
        "dropout": settings.number("hidden_dropout_prob", default=0.1),
        "norm_eps": settings.number("layer_norm_eps", default=1e-12),
    }
    named = settings.values.get("architectures", ["BertModel"])
    head = str(named[0]) if isinstance(named, list) and named else ""
    if head not in CLASSES:
        raise FormatError(f"architectures is {named!r} (must be one of {', '.join(CLASSES)})")
    kind = CLASSES[head]
    ours = settings.section("chainrule")
    if "temperature" in ours.values:
        return BERTEmbedderConfig(**sizes, temperature=ours.number("temperature"))
    if kind is BERTPretrainingConfig:
        sizes["next_sentence"] = head == "BertForPreTraining"
    if issubclass(kind, BERTLabelsConfig):
        sizes |= _labels(settings)
    return kind(**sizes)


def _labels(settings: Settings) -> dict[str, Any]:
    """The number of labels, and their names unless these are just numbers."""
    named = settings.section("id2label").values
    if not named:
        return {"classes": settings.integer("num_labels", default=2)}
    labels = tuple(str(named.get(str(i), "")) for i in range(len(named)))
    usable = all(labels) and len(set(labels)) == len(named) and labels != _numbered(len(named))
    return {"classes": len(named)} | ({"labels": labels} if usable else {})


def _numbered(classes: int) -> tuple[str, ...]:
    """Hugging Face's names of unnamed labels."""
    return tuple(f"LABEL_{i}" for i in range(classes))


def write_config(config: BERTConfig) -> dict[str, Any] | None:
    """The content of `config.json`; None of a classifier that does not read [CLS] alone: Hugging Face's all do."""
    if isinstance(config, BERTClassifierConfig) and (config.pooling != "cls" or config.buckets):
        return None
    names = [name for name, kind in CLASSES.items() if kind is type(config)] or ["BertModel"]
    last = isinstance(config, BERTPretrainingConfig) and not config.next_sentence
    return {
        "model_type": "bert",
        "architectures": names[-1:] if last else names[:1],
        "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head,
        "hidden_size": config.n_embd,
        "intermediate_size": config.n_hidden,
        "max_position_embeddings": config.block_size,
        "vocab_size": config.vocab_size,
        "type_vocab_size": config.n_segments,
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "layer_norm_eps": config.norm_eps,
    } | _head(config)


def read_weights(tensors: Arrays, config: BERTConfig) -> Arrays:
    """Arrays by our names, from Hugging Face's."""
    found = {name: array for name, array in tensors.items() if not name.endswith(UNUSED)}
    if "cls.predictions.bias" not in found and "cls.predictions.decoder.bias" in found:
        found["cls.predictions.bias"] = found.pop("cls.predictions.decoder.bias")
    found = without_copies(found, TIED)
    if isinstance(config, BERTEmbedderConfig):
        return {f"bert.{name}": array for name, array in found.items() if not name.startswith("pooler.")}
    return found


def write_weights(state: Arrays, config: BERTConfig) -> Arrays:
    """Arrays by Hugging Face's names, from ours."""
    if isinstance(config, BERTEmbedderConfig):
        return {name.removeprefix("bert."): array for name, array in state.items()}
    return state


def _head(config: BERTConfig) -> dict[str, Any]:
    if isinstance(config, BERTEmbedderConfig):
        return {"chainrule": {"temperature": config.temperature}}
    if isinstance(config, BERTLabelsConfig):
        names = {str(i): name for i, name in enumerate(config.labels or _numbered(config.classes))}
        return {"id2label": names, "label2id": {name: int(i) for i, name in names.items()}}
    return {}
