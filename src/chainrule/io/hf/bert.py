"""BERT and its variants as in Hugging Face: the same layouts, their names (`bert_names`), and a class for each head.

BERTPretraining   BertForPreTraining; BertForMaskedLM without next sentence
BERTClassifier    BertForSequenceClassification
BERTTagger        BertForTokenClassification
BERT              BertModel
BERTEmbedder      BertModel without its pooler; with the files of sentence-transformers if a directory has them

Of ELECTRA the generator is ElectraForMaskedLM; of the discriminator, ElectraForPreTraining, the body is read.
"""

from __future__ import annotations

from typing import Any

from chainrule.io.hf.bert_names import BODY, VARIANTS, to_ours, to_theirs
from chainrule.io.left_out import head_refusal
from chainrule.io.safetensors import Arrays
from chainrule.io.settings import Fields, Settings, written
from chainrule.models import BERT, BERTConfig, BERTPretrainingConfig, Model
from chainrule.models.bert.heads import (
    CONFIGS,
    BERTClassifierConfig,
    BERTEmbedderConfig,
    BERTLabelsConfig,
    BERTTaggerConfig,
)
from chainrule.models.bert.pooling import POOLINGS

ALIASES = {"xlm-roberta": "roberta", "camembert": "roberta"}  # the same model by another name
NAMES = (*VARIANTS, *ALIASES)
MODELS: dict[type[Any], type[Model]] = {
    BERTConfig: BERT,
    **{config: model for model, config in CONFIGS.items()},
}
HEADS: dict[str, type[Any]] = {  # by the end of the class's name
    "ForPreTraining": BERTPretrainingConfig,
    "ForMaskedLM": BERTPretrainingConfig,
    "ForSequenceClassification": BERTClassifierConfig,
    "ForTokenClassification": BERTTaggerConfig,
    "Model": BERTConfig,
}
FIELDS: Fields = {
    "n_layer": ("num_hidden_layers", 12), "n_head": ("num_attention_heads", 12),
    "n_hidden": ("intermediate_size", 3072), "vocab_size": ("vocab_size", 30522),
    "dropout": ("hidden_dropout_prob", 0.1), "norm_eps": ("layer_norm_eps", 1e-12),
}  # fmt: skip
DISTILBERT: Fields = {
    "n_layer": ("n_layers", 6), "n_head": ("n_heads", 12), "n_embd": ("dim", 768), "n_hidden": ("hidden_dim", 3072),
    "block_size": ("max_position_embeddings", 512), "vocab_size": ("vocab_size", 30522), "dropout": ("dropout", 0.1),
}  # fmt: skip
DISCRIMINATOR = "discriminator_predictions."
BUCKETS = 32  # of MPNet; its code knows no other number
EPS = 1e-12  # of DistilBERT


def read_config(settings: Settings) -> BERTConfig:
    """Our config from a `config.json`; options that BERT lacks are refused."""
    kind = settings.values["model_type"]
    variant = ALIASES.get(kind, kind)
    head = _head_of(settings, VARIANTS[variant].classes)
    settings.must("position_embedding_type", "absolute")
    settings.must("is_decoder", False)
    settings.must("add_cross_attention", False)
    settings.must("tie_word_embeddings", True)
    sizes = _distilbert_sizes(settings) if variant == "distilbert" else _sizes(settings, variant)
    sizes |= {"variant": variant}
    config = HEADS[head]
    pooled = any(name.endswith("pooler.dense.weight") for name in settings.weights)
    if (variant, head) == ("electra", "ForPreTraining") or (config is BERTConfig and not pooled):
        config = BERTEmbedderConfig
    ours, sentences = settings.section("chainrule"), settings.section("sentence_transformers")
    if ours.has("temperature") or sentences.values:
        return BERTEmbedderConfig(**sizes, **_embedder(ours, sentences, sizes["block_size"]))
    if config is BERTPretrainingConfig:
        sizes["norm"] = "post"
        sizes["next_sentence"] = "cls.seq_relationship.weight" in settings.weights
    if issubclass(config, BERTLabelsConfig):
        sizes |= _labels(settings)
    return config(**sizes)


def _head_of(settings: Settings, classes: str) -> str:
    """The end of the name of the class that the weights are for."""
    named = settings.values.get("architectures", [f"{classes}Model"])
    name = str(named[0]) if isinstance(named, list) and named else ""
    for head in HEADS:
        if name.endswith(head) and not name.endswith("LMHeadModel"):  # which reads from left to right
            return head
    known = ", ".join(f"{classes}{head}" for head in HEADS)
    raise head_refusal(named, f"must be one of {known}")


def _sizes(settings: Settings, variant: str) -> dict[str, Any]:
    settings.must("hidden_act", "gelu")
    width = settings.integer("hidden_size", default=256 if variant == "electra" else 768)
    sizes = settings.fields(FIELDS) | {
        "n_embd": width,
        "block_size": settings.integer("max_position_embeddings", default=512) - _skipped(settings, variant),
        "n_segments": 0 if variant == "mpnet" else settings.integer("type_vocab_size", default=2),
    }
    if variant == "electra":
        narrow = settings.integer("embedding_size", default=128)
        sizes["embedding_size"] = None if narrow == width else narrow
    if variant == "mpnet":
        settings.must("relative_attention_num_buckets", BUCKETS)
        sizes["relative_buckets"] = BUCKETS
    return sizes


def _skipped(settings: Settings, variant: str) -> int:
    """Rows of the table of positions that are never read: positions count from that of padding."""
    skipped = VARIANTS[variant].first_position
    if skipped:
        settings.must("pad_token_id", skipped - 1)
    return skipped


def _distilbert_sizes(settings: Settings) -> dict[str, Any]:
    settings.must("activation", "gelu")
    settings.must("sinusoidal_pos_embds", False, True)  # either way the table is in the file
    return settings.fields(DISTILBERT) | {"n_segments": 0, "norm_eps": EPS}


def _embedder(ours: Settings, sentences: Settings, limit: int) -> dict[str, Any]:
    """How vectors are made of hidden rows: as in our section, else as sentence-transformers' files say."""
    said = ours if ours.has("temperature") else sentences
    longest = min(limit, said.integer("max_length")) if said.has("max_length") else None
    return {
        "temperature": ours.number("temperature", default=0.05),
        "pooling": said.choice("pooling", {name: name for name in POOLINGS}, "mean"),
        "normalize": said.flag("normalize", True),
        "max_length": longest,
    }


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
    """The content of `config.json`; None if Hugging Face lacks the model."""
    if unlike(config):
        return None
    heads = [name for name, kind in HEADS.items() if kind is type(config)] or ["Model"]
    last = isinstance(config, BERTPretrainingConfig) and not config.next_sentence
    head = heads[-1] if last else heads[0]
    if config.variant == "distilbert":
        sizes = written(config, DISTILBERT) | {"activation": "gelu", "attention_dropout": config.dropout}
    else:
        sizes = _written_sizes(config)
    names = VARIANTS[config.variant]
    return (
        {"model_type": config.variant, "architectures": [names.classes + head]}
        | sizes
        | ({"pad_token_id": names.first_position - 1} if names.first_position else {})
        | _head(config)
    )


def _written_sizes(config: BERTConfig) -> dict[str, Any]:
    sizes = written(config, FIELDS) | {
        "hidden_size": config.n_embd,
        "max_position_embeddings": config.block_size + VARIANTS[config.variant].first_position,
        "hidden_act": "gelu",
        "attention_probs_dropout_prob": config.dropout,
    }
    if config.n_segments:
        sizes["type_vocab_size"] = config.n_segments
    if config.variant == "electra":
        sizes["embedding_size"] = config.width
    if config.variant == "mpnet":
        sizes["relative_attention_num_buckets"] = BUCKETS
    return sizes


def unlike(config: BERTConfig) -> dict[str, str]:
    """The fields that keep `transformers` from computing the same, each with what it must be."""
    variant, found = config.variant, {}
    if isinstance(config, BERTClassifierConfig):  # theirs all read [CLS] alone
        if config.buckets:
            found["buckets"] = "0, without a bag of words"
        if config.pooling != "cls":
            found["pooling"] = "cls"
    if config.norm != "post":
        found["norm"] = "post"
    buckets = BUCKETS if variant == "mpnet" else 0
    if config.relative_buckets != buckets:
        found["relative_buckets"] = f"{buckets} for {variant}"
    if config.embedding_size is not None and (variant != "electra" or config.width == config.n_embd):
        found["embedding_size"] = f"the width, {config.n_embd}"
    if (config.n_segments == 0) != (variant in ("distilbert", "mpnet")):
        found["n_segments"] = f"{'at least 1' if config.n_segments == 0 else 0} for {variant}"
    if variant == "distilbert" and config.norm_eps != EPS:
        found["norm_eps"] = f"{EPS} for distilbert"
    if isinstance(config, BERTPretrainingConfig) and config.next_sentence and variant != "bert":
        found["next_sentence"] = f"False for {variant}"
    if type(config) is BERTConfig and variant in ("distilbert", "electra"):  # with a pooler
        found["variant"] = "bert, roberta or mpnet for a body with a pooler"
    return found


def read_weights(tensors: Arrays, config: BERTConfig) -> Arrays:
    """Arrays by our names, from Hugging Face's."""
    found = to_ours(tensors, VARIANTS[config.variant], classifier=type(config) is BERTClassifierConfig)
    if type(config) is BERTConfig:
        return found
    pooled = type(config) is BERTClassifierConfig or getattr(config, "next_sentence", False)
    return {
        f"bert.{name}" if name.startswith(BODY) else name: array
        for name, array in found.items()
        if not name.startswith(DISCRIMINATOR) and (pooled or not name.startswith("pooler."))
    }


def write_weights(state: Arrays, config: BERTConfig) -> Arrays:
    """Arrays by Hugging Face's names, from ours."""
    plain = {name.removeprefix("bert."): array for name, array in state.items()}
    head = not (type(config) is BERTConfig or isinstance(config, BERTEmbedderConfig))
    names, classifier = VARIANTS[config.variant], type(config) is BERTClassifierConfig
    return to_theirs(plain, names, classifier=classifier, head=head)


def _head(config: BERTConfig) -> dict[str, Any]:
    if isinstance(config, BERTEmbedderConfig):
        said = {name: getattr(config, name) for name in ("temperature", "pooling", "normalize", "max_length")}
        return {"chainrule": said}
    if isinstance(config, BERTLabelsConfig):
        names = {str(i): name for i, name in enumerate(config.labels or _numbered(config.classes))}
        return {"id2label": names, "label2id": {name: int(i) for i, name in names.items()}}
    return {}
