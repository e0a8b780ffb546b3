"""BERT and the encoder-decoder through Hugging Face's `transformers` and back: the same numbers, the same tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.generate import Translation
from chainrule.io import load_pretrained, save_pretrained
from chainrule.models import make
from chainrule.models.bert import BERT, BERTConfig
from chainrule.models.seq2seq import Seq2Seq
from chainrule.models.seq2seq.config import Seq2SeqConfig
from tests.battery.checks import distance
from tests.peers.test_transformers import TOLERANCE, scattered

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.peers.random_models import V, marian_or_pegasus  # noqa: E402

RNG = np.random.default_rng(4)
IDS = RNG.integers(V, size=(3, 13))
MASK = np.arange(13) < np.array([13, 7, 10])[:, None]
SEGMENTS = ((np.arange(13) >= 5) & MASK).astype(int)

SIZES: dict[str, Any] = {
    "n_layer": 2, "n_head": 3, "n_embd": 24, "n_hidden": 37, "block_size": 17, "vocab_size": V, "norm_eps": 1e-6,
}  # fmt: skip
BERTS = {
    "BertForPreTraining": ("bert", {"norm": "post", "next_sentence": True}),
    "BertForMaskedLM": ("bert", {"norm": "post"}),
    "BertForSequenceClassification": ("bert-classifier", {"classes": 5}),
    "BertForTokenClassification": ("bert-tagger", {"classes": 2}),
}


def outputs(theirs: Any) -> Any:
    inputs = {"input_ids": IDS, "attention_mask": MASK.astype(int), "token_type_ids": SEGMENTS}
    with torch.no_grad():
        return theirs.eval()(**{name: torch.tensor(value) for name, value in inputs.items()})


def bert_agrees(ours: Any, theirs: Any) -> None:
    found = outputs(theirs)
    with cr.no_grad():
        got = ours(IDS, MASK, SEGMENTS).numpy()
        if hasattr(found, "seq_relationship_logits"):
            pairs = found.seq_relationship_logits.numpy()
            assert distance(ours.follows(IDS, MASK, SEGMENTS).numpy(), pairs) <= TOLERANCE
    want = found.prediction_logits if hasattr(found, "prediction_logits") else found.logits
    rows = MASK if got.ndim == 3 else slice(None)
    assert distance(got[rows], want.numpy()[rows]) <= TOLERANCE


@pytest.mark.parametrize("name", BERTS)
def test_they_load_our_bert_and_we_theirs(name: str, tmp_path: Path) -> None:
    family, more = BERTS[name]
    model = scattered(make(family, **SIZES, **more))
    save_pretrained(model, None, tmp_path / "ours")
    kind = getattr(transformers, name)
    theirs, report = kind.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(report.values()), report
    bert_agrees(model, theirs)
    back, _ = load_pretrained(tmp_path / "ours")
    assert back.config == model.config
    assert all((back.state()[key] == value).all() for key, value in model.state().items())

    other = kind(theirs.config)  # random weights of their own
    other.save_pretrained(tmp_path / "theirs")
    bert_agrees(load_pretrained(tmp_path / "theirs")[0], other)


def test_the_body_of_bert_alone(tmp_path: Path) -> None:
    body = scattered(BERT(BERTConfig(**SIZES)))
    embedder = scattered(make("bert-embedder", **SIZES, temperature=0.1))
    for name, model in (("body", body), ("embedder", embedder)):
        save_pretrained(model, None, tmp_path / name)
        theirs = transformers.AutoModel.from_pretrained(tmp_path / name)
        back, _ = load_pretrained(tmp_path / name)
        assert back.config == model.config and type(back) is type(model)
        inside = model if name == "body" else model.bert
        with cr.no_grad():
            hidden = inside(IDS, MASK, SEGMENTS).numpy()
        assert distance(hidden[MASK], outputs(theirs).last_hidden_state.numpy()[MASK]) <= TOLERANCE
    theirs.save_pretrained(tmp_path / "theirs")
    assert isinstance(load_pretrained(tmp_path / "theirs")[0], type(embedder))  # the section is kept


# -- encoder-decoder ---------------------------------------------------------------------------------------------

PAIR: dict[str, Any] = {
    "n_layer": 2,
    "n_head": 3,
    "n_embd": 24,
    "n_hidden": 40,
    "block_size": 19,
    "vocab_size": V,
}
SEQ2SEQS = {
    "marian": {"norm": "post", "bias": True, "tied": True, "scale_embedding": True},
    "marian without biases": {"norm": "post", "tied": True, "activation": "gelu_tanh"},
    "marian, untied": {"norm": "post", "bias": True, "activation": "silu"},
    "marian, two vocabularies": {"norm": "post", "bias": True, "tied": True, "source_vocab_size": 77},
    "marian, two vocabularies, untied": {"norm": "post", "source_vocab_size": 77, "label_smoothing": 0.1},
    "pegasus": {"norm": "pre", "bias": True, "tied": True, "scale_embedding": True, "activation": "gelu"},
    "pegasus, untied": {"norm": "pre"},
}
SOURCE = RNG.integers(1, 77, size=(3, 11))
SOURCE_MASK = np.arange(11) < np.array([11, 4, 8])[:, None]
TARGET = RNG.integers(V, size=(3, 9))


def pairs_agree(ours: Seq2Seq, theirs: Any) -> None:
    source, mask = torch.tensor(SOURCE), torch.tensor(SOURCE_MASK.astype(int))
    with torch.no_grad():
        want = theirs.eval()(
            input_ids=source, attention_mask=mask, decoder_input_ids=torch.tensor(TARGET)
        ).logits.numpy()
    with cr.no_grad():
        assert distance(ours(SOURCE, SOURCE_MASK, TARGET).numpy(), want) <= TOLERANCE
    greedy = theirs.generate(
        input_ids=source, attention_mask=mask, max_new_tokens=8, do_sample=False, num_beams=1,
        decoder_start_token_id=2, pad_token_id=0, eos_token_id=None, bad_words_ids=None,
    )  # fmt: skip
    assert written(ours, 8) == greedy[:, 1:].tolist()


def written(model: Seq2Seq, n: int) -> list[list[int]]:
    """Greedy tokens that follow the start."""
    translation = Translation(model, SOURCE, SOURCE_MASK)
    tokens = np.full((len(SOURCE), 1), 2)
    rows = []
    for _ in range(n):
        tokens = translation.read(tokens).argmax(axis=-1)[:, None]
        rows.append(tokens[:, 0])
    return np.stack(rows, axis=1).tolist()


@pytest.mark.parametrize("name", SEQ2SEQS)
def test_they_load_our_encoder_decoder(name: str, tmp_path: Path) -> None:
    model = scattered(Seq2Seq(Seq2SeqConfig(**PAIR, **SEQ2SEQS[name])))
    save_pretrained(model, None, tmp_path / "ours")
    theirs, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(report.values()), report
    assert type(theirs).__name__.lower().startswith(name.split(",")[0].split()[0])
    pairs_agree(model, theirs)
    back, _ = load_pretrained(tmp_path / "ours")
    assert back.config == model.config
    assert all((back.state()[key] == value).all() for key, value in model.state().items())


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", ["Marian", "Pegasus"])
def test_we_load_their_encoder_decoder(kind: str, tied: bool, tmp_path: Path) -> None:
    theirs = marian_or_pegasus(kind, tied=tied)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, _ = load_pretrained(tmp_path / "theirs")
    assert isinstance(ours, Seq2Seq)
    pairs_agree(ours, theirs)


def test_words_for_gaps_are_those_of_their_pipeline(tmp_path: Path) -> None:
    tokenizer = cr.text.WordPieceTokenizer.train("the cat sat on the mat. the dog ran to the door. " * 9, 60)
    sizes = SIZES | {"vocab_size": tokenizer.vocab_size}
    model = scattered(make("bert", **sizes, norm="post"))
    save_pretrained(model, tokenizer, tmp_path / "ours")
    theirs = transformers.pipeline("fill-mask", model=str(tmp_path / "ours"), top_k=7)
    for text in ("The [MASK] sat on the mat.", "the dog [MASK] to the [MASK]!"):
        (ours,) = cr.generate.fill_masks(model, tokenizer, [text], k=7)
        found = theirs(text)
        gaps = found if isinstance(found[0], list) else [found]
        assert len(gaps) == len(ours.gaps) == text.count("[MASK]")
        for guesses, want in zip(ours.gaps, gaps, strict=True):
            assert [guess.id for guess in guesses] == [guess["token"] for guess in want]
            shares = np.array([guess.probability for guess in guesses])
            assert distance(shares, np.array([guess["score"] for guess in want])) <= TOLERANCE
