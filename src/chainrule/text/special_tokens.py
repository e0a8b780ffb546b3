"""Special tokens: their usual names by role, and the roles that each kind of model needs.

`Conventions` (`text.conventions`) says which of them a language model was trained with; `SpecialIds` are those of an
encoder, `Marks` those of an encoder-decoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from chainrule.errors import DataError
from chainrule.types import Ids

NAMES = {
    "bos": ("<s>", "<bos>", "<|begin_of_text|>"),
    "eos": ("</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"),
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
    "mask": ("[MASK]", "<mask>"),
}
BERT = ("[CLS]", "[SEP]", "[MASK]", "[PAD]")
ROBERTA = ("<s>", "</s>", "<mask>", "<pad>")  # and MPNet
BEGIN_AND_END = (("<s>", "</s>"), ("[CLS]", "[SEP]"), ("<|endoftext|>", "<|endoftext|>"))


def ids_by_role(special_ids: Mapping[str, int]) -> dict[str, int]:
    """Role (bos, eos, pad, ...) -> id, found by the usual names."""
    found = {
        role: [special_ids[name] for name in names if name in special_ids] for role, names in NAMES.items()
    }
    return {role: ids[0] for role, ids in found.items() if ids}


class SpecialIds(NamedTuple):
    """The ids around and inside the texts that an encoder reads.

    >>> from chainrule.text import SpecialIds
    >>> SpecialIds.of({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4})
    SpecialIds(cls=2, sep=3, mask=4, pad=0)
    """

    cls: int
    sep: int
    mask: int
    pad: int = 0

    @classmethod
    def of(cls, special_ids: Mapping[str, int]) -> SpecialIds:
        """Those of a tokenizer, under the names of BERT or of RoBERTa."""
        wanted = BERT if "[CLS]" in special_ids or not set(ROBERTA) <= special_ids.keys() else ROBERTA
        missing = [name for name in wanted if name not in special_ids]
        if missing:
            names = ", ".join(missing)
            raise DataError(f"special tokens: the tokenizer has no {names} (must be made with them)")
        return cls(*(special_ids[name] for name in wanted))


class Marks(NamedTuple):
    """The ids around the source of an encoder-decoder, and those that begin and end its target.

    >>> from chainrule.text import Marks
    >>> Marks.of({"<s>": 0, "</s>": 1}, start="bos")
    Marks(before=(), after=(), start=0, end=1)
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    start: int
    end: int

    @classmethod
    def of(cls, special_ids: Mapping[str, int], start: str) -> Marks:
        """Those of a tokenizer, for a model whose targets start in this way (`Seq2SeqConfig.target_start`)."""
        ids = special_ids
        known = f"tokenizer: special tokens {', '.join(ids) or 'none'}"
        if start == "bos":
            for first, last in BEGIN_AND_END:
                if first in ids and last in ids:
                    return cls((), (), ids[first], ids[last])
            raise DataError(f"{known} (must have <s> and </s>: train it with --special-tokens '<s>' '</s>')")
        pad = ids_by_role(ids).get("pad")
        if start == "pad":
            if "</s>" not in ids or pad is None:
                raise DataError(f"{known} (must have </s> and <pad>)")
            return cls((), (ids["</s>"],), pad, ids["</s>"])
        if "</s>" not in ids or "<s>" not in ids:
            raise DataError(f"{known} (must have <s> and </s>)")
        return cls((ids["<s>"],), (ids["</s>"],), ids["</s>"], ids["</s>"])

    @property
    def extra(self) -> int:
        """Tokens around a source."""
        return len(self.before) + len(self.after)

    def around(self, source: Ids, limit: int) -> Ids:
        """The source as the model reads it; one that is too long is cut to `limit` tokens in all"""
        if not self.extra:
            return source
        return np.concatenate([self.before, source[: limit - self.extra], self.after]).astype(source.dtype)
