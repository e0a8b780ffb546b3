"""What a larger vocabulary buys: fewer tokens per word, for more rows of the embedding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chainrule.errors import DataError
from chainrule.text.textbook_bpe import TextbookBPETokenizer
from chainrule.text.training.merges import apply_merge
from chainrule.text.training.textbook_bpe import count_words


@dataclass(frozen=True)
class Size:
    """A vocabulary and how many tokens it takes for an average word."""

    n_merges: int
    vocab_size: int
    tokens_per_word: float


def vocabulary_sizes(texts: str | Sequence[str], n_merges: Iterable[int]) -> list[Size]:
    """Tokens per word of the texts after the first merges of the textbook's BPE; white space does not count.

    >>> for size in vocabulary_sizes("low lower lowest", [0, 2, 6]):
    ...     print(size.vocab_size, round(size.tokens_per_word, 2))
    8 4.67
    10 2.67
    14 1.0
    """
    wanted = sorted(set(n_merges))
    words = {word: count for word, count in count_words(texts).items() if not "".join(word).isspace()}
    total = sum(words.values())
    if not total:
        raise DataError("vocabulary sizes: the text has no words")
    merges = TextbookBPETokenizer.train(texts, n_merges=wanted[-1] if wanted else 0).merges
    known = {piece for word in count_words(texts) for piece in word}
    cut = [(list(word), count) for word, count in words.items()]
    sizes: list[Size] = []
    for done in range(len(merges) + 1):
        if done in wanted:
            tokens = sum(len(word) * count for word, count in cut)
            sizes.append(Size(done, len(known), tokens / total))
        if done < len(merges):
            merged = "".join(merges[done])
            known.add(merged)
            cut = [(apply_merge(word, merges[done], merged), count) for word, count in cut]
    return sizes
