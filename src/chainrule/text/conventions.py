"""What a model expects around a text: special tokens, a chat template, and how it is sampled unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from chainrule.text.special_tokens import ids_by_role


@dataclass(frozen=True)
class Conventions:
    """The ids are those of the tokenizer that carries this object (`Tokenizer.conventions`).

    >>> Conventions.usual({"<s>": 1, "</s>": 2})
    Conventions(bos=1, eos=(2,), pad=None, unk=None, add_bos=False, chat_template=None, generation={})
    """

    bos: int | None = None
    eos: tuple[int, ...] = ()
    """Each of them ends a text or an answer; chat templates write the first."""
    pad: int | None = None
    unk: int | None = None
    add_bos: bool = False
    """Every text begins with bos."""
    chat_template: str | None = None
    """How a conversation is written, in Jinja (`text.chat.template`)."""
    generation: Mapping[str, float] = field(default_factory=dict)
    """Defaults for fields of `generate.Sampling`."""

    @classmethod
    def usual(cls, special: Mapping[str, int]) -> Conventions:
        """Special tokens by their usual names, for a model whose files say nothing about them."""
        ids = ids_by_role(special)
        eos = (ids["eos"],) if "eos" in ids else ()
        return cls(bos=ids.get("bos"), eos=eos, pad=ids.get("pad"), unk=ids.get("unk"))

    @property
    def roles(self) -> dict[str, int | None]:
        """The token of each role; of several end tokens the first."""
        return {"bos": self.bos, "eos": self.eos[0] if self.eos else None, "pad": self.pad, "unk": self.unk}

    def within(self, vocab_size: int) -> Conventions:
        """Without ids that are not in the vocabulary, such as the -1 that some files write for "none"."""
        bos, pad, unk = (
            id if id is not None and 0 <= id < vocab_size else None for id in (self.bos, self.pad, self.unk)
        )
        ends = tuple(id for id in dict.fromkeys(self.eos) if 0 <= id < vocab_size)
        return replace(self, bos=bos, eos=ends, pad=pad, unk=unk, add_bos=self.add_bos and bos is not None)

    def hidden(self, special: Mapping[str, int]) -> frozenset[int]:
        """The special tokens that are not part of a text: all but the one that stands for unknown characters."""
        marks = {self.bos, self.pad, *self.eos}
        return frozenset(special.values()) - ({self.unk} - marks)
