"""The native Unigram trainer and encoder at the edges; tests/text compares them with the reference."""

from __future__ import annotations

import random

import pytest

from chainrule import native

SETTINGS = (1.0, 1000, 16, 0.75, 2)  # coverage, seeds, letters, shrink, iterations


def learn(texts: list[str], pieces: int) -> tuple[list[bytes], list[float]]:
    trainer = native.kernels().UnigramTrainer()
    for text in texts:
        trainer.add(text.encode("utf-8", "surrogatepass"))
    found: tuple[list[bytes], list[float]] = trainer.train(pieces, *SETTINGS)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_random_texts_of_any_script(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = rng.sample(["a", "b", " ", "\n", "\0", "é", "你", "\U0001f600", "\ud800", "\U0010ffff"], 5)
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(300))) for _ in range(5)]
    pieces, scores = learn(texts, 30)
    assert set("".join(texts)) <= {piece.decode("utf-8", "surrogatepass") for piece in pieces}
    order = sorted(range(len(pieces)), key=lambda i: pieces[i])
    encoder = native.kernels().UnigramEncoder(
        [pieces[i] for i in order], order, [scores[i] for i in order], len(pieces), [], seed % 2 == 0
    )
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        assert b"".join(pieces[id] for id in encoder.encode(data)) == data


def test_long_words_do_not_vanish() -> None:
    """Products of thousands of probabilities are far below the smallest float."""
    rng = random.Random(1)
    letters = [chr(0x4E00 + i) for i in range(500)]
    pieces, scores = learn(["".join(rng.choices(letters, k=20_000))], 600)
    assert len(pieces) >= 500 and all(-40 < score < 0 for score in scores)


def test_nothing_to_learn() -> None:
    assert learn([], 10) == ([], []) and learn([""], 10) == ([], [])


@pytest.mark.parametrize("data", [b"\x80", b"\xff", b"\xc3", b"\xe4\xbd", b"\xf0\x9f\x98a"])
def test_what_is_not_utf8_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        native.kernels().UnigramTrainer().add(data)
    encoder = native.kernels().UnigramEncoder([b"a"], [0], [-1.0], 1, [], True)
    with pytest.raises(ValueError, match="UTF-8"):
        encoder.encode(data)
    assert encoder.encode(b"").shape == (0,)


def test_what_is_no_vocabulary_is_refused() -> None:
    make = native.kernels().UnigramEncoder
    for pieces in ([b"b", b"a"], [b"a", b"a"], [b"", b"a"]):
        with pytest.raises(ValueError, match="sorted, distinct"):
            make(pieces, [0, 1], [-1.0, -1.0], 2, [], True)
    with pytest.raises(ValueError, match="the same length"):
        make([b"a"], [0, 1], [-1.0], 2, [], True)
    with pytest.raises(ValueError, match="256 ids"):
        make([b"a"], [0], [-1.0], 2, [3], True)
