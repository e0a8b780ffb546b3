"""Translations token by token: what each target token looked at, and what else could have followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.generate import Beam, Translation, search
from chainrule.text import Marks
from chainrule.web.jobs import Tell
from chainrule.web.microscope.looks import packed
from chainrule.web.microscope.reading import SOURCES, suited
from chainrule.web.models import Loaded
from chainrule.web.playground.beams import Tree
from chainrule.web.playground.play import Form

TOP = 8


@dataclass(frozen=True)
class Work:
    """A source for a model, and the first tokens of its translation that were chosen."""

    loaded: Loaded
    text: str
    marks: Marks
    source: Any
    begun: list[int]
    beam: Beam

    @classmethod
    def of(cls, loaded: Loaded, form: Form) -> Work:
        """As the form asks for it; the source and the chosen tokens must fit the model."""
        model, tokenizer = loaded.model, loaded.tokenizer
        text = suited(loaded, SOURCES) if form.prompt is None else form.prompt
        marks, limit = (
            Marks.of(tokenizer.special_ids, model.config.target_start),
            int(model.config.block_size),
        )
        encoded, begun = tokenizer.encode(text), list(form.ids or ())
        if not 1 <= len(encoded) <= limit - marks.extra:
            rule = f"must be from 1 to {limit - marks.extra}"
            raise ConfigError(f"playground: the source has {len(encoded)} tokens ({rule})")
        tokenizer.check_ids(begun)
        most, width = min(form.length, limit - 1 - len(begun)), max(1, form.beam)
        if most < 1:
            rule = f"must be fewer than {limit - 1}"
            raise ConfigError(f"playground: the target has {len(begun)} tokens ({rule})")
        beam = Beam(width=width, n_best=width, max_new_tokens=most, stop_tokens=(marks.end,))
        return cls(loaded, text, marks, marks.around(encoded, limit), begun, beam)

    def python(self, blocks: list[str]) -> str:
        """The same search, what it expected and where it looked, as a program."""
        width, most = self.beam.width, self.beam.max_new_tokens
        lines = [
            "import chainrule as cr",
            "",
            f"model, tokenizer = cr.load({str(self.loaded.path)!r})",
            "marks = cr.text.Marks.of(tokenizer.special_ids, model.config.target_start)",
            f"source = marks.around(tokenizer.encode({self.text!r}), model.config.block_size)",
            f"sizes = {{'width': {width}, 'n_best': {width}, 'max_new_tokens': {most}}}",
            "beam = cr.generate.Beam(**sizes, stop_tokens=(marks.end,))",
            f"begun = {self.begun!r}",
            "texts = cr.generate.Translation(model, source[None])",
            "(found,) = cr.generate.search(texts, [[marks.start, *begun]], beam)",
            "target = [*begun, *found[0].tokens]",
            "print(tokenizer.decode(target))",
            "seen = cr.inspect.view(model, (source, [marks.start, *target]))",
            "print([float(seen.probabilities[at, id]) for at, id in enumerate(target)])",
            *(f"print(seen.attention({name!r}, cross=True).mean(0).tolist())" for name in blocks),
            "",
        ]
        return "\n".join(lines)


def translated(loaded: Loaded, form: Form, tell: Tell) -> dict[str, Any]:
    """The best translation that a search finds; of a branch, with the first tokens that were chosen."""
    work, piece = Work.of(loaded, form), loaded.tokenizer.piece
    tree = Tree(loaded.tokenizer, work.beam.max_new_tokens, tell)
    given = [work.marks.start, *work.begun]
    (found,) = search(Translation(loaded.model, work.source[None]), [given], work.beam, watch=tree.watch)
    best = found[0]
    target = [*work.begun, *best.tokens]
    seen = inspect.view(loaded.model, (work.source, [work.marks.start, *target]))
    crossing = [block.name for block in seen.sites.blocks.values() if any(a.cross for a in block.attentions)]
    return {
        "asked": work.text,
        "source": [piece(int(id)) for id in work.source],
        "tokens": _tokens(work, seen, [*target, work.marks.end] if best.finished else target),
        "text": loaded.tokenizer.decode(target),
        "prompt": len(work.begun),
        "new": len(best.tokens),
        "full": not best.finished,
        "speed": tree.pace.speed,
        "blocks": crossing,
        "alignment": packed(_mean_of_heads(seen, crossing)),
        "beams": tree.hypotheses(found),
        "tree": tree.nodes if form.beam else None,
        "python": work.python(crossing),
    }


def _tokens(work: Work, seen: inspect.View, target: list[int]) -> list[dict[str, Any]]:
    """Each token of the target with its probability, and what else could have stood there."""
    tokenizer = work.loaded.tokenizer
    top, probabilities = seen.top(min(TOP, tokenizer.vocab_size)), seen.probabilities
    return [
        {
            "id": id,
            "piece": tokenizer.piece(id),
            "given": at < len(work.begun),
            "p": float(probabilities[at, id]),
            "top": [{"id": i, "piece": tokenizer.piece(i), "p": p} for i, p in top[at]],
        }
        for at, id in enumerate(target)
    ]


def _mean_of_heads(seen: inspect.View, blocks: list[str]) -> Any:
    """Cross-attention (L, T, S): how much each target token looks at each source token in each block."""
    return [seen.attention(name, cross=True).mean(0) for name in blocks]
