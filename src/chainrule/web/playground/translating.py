"""Translations token by token: what each target token looked at, and what else could have followed."""

from __future__ import annotations

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


def translated(loaded: Loaded, form: Form, tell: Tell) -> dict[str, Any]:
    """The best translation that a search finds; of a branch, with the first tokens that were chosen."""
    model, tokenizer = loaded.model, loaded.tokenizer
    text = suited(loaded, SOURCES) if form.prompt is None else form.prompt
    marks, limit = Marks.of(tokenizer.special_ids, model.config.target_start), int(model.config.block_size)
    encoded = tokenizer.encode(text)
    if not 1 <= len(encoded) <= limit - marks.extra:
        rule = f"must be from 1 to {limit - marks.extra}"
        raise ConfigError(f"playground: the source has {len(encoded)} tokens ({rule})")
    source, begun = marks.around(encoded, limit), list(form.ids or ())
    tokenizer.check_ids(begun)
    most = min(form.length, limit - 1 - len(begun))
    if most < 1:
        raise ConfigError(f"playground: the target has {len(begun)} tokens (must be fewer than {limit - 1})")
    width = max(1, form.beam)
    tree = Tree(tokenizer, most, tell)
    beam = Beam(width=width, n_best=width, max_new_tokens=most, stop_tokens=(marks.end,))
    (found,) = search(Translation(model, source[None]), [[marks.start, *begun]], beam, watch=tree.watch)
    target = [*begun, *found[0].tokens]
    seen = inspect.view(model, (source, [marks.start, *target]))
    top = seen.top(min(TOP, tokenizer.vocab_size))
    probabilities, piece = seen.probabilities, tokenizer.piece
    crossing = [block.name for block in seen.sites.blocks.values() if any(a.cross for a in block.attentions)]
    return {
        "asked": text,
        "source": [piece(int(id)) for id in source],
        "tokens": [
            {
                "id": id,
                "piece": piece(id),
                "given": at < len(begun),
                "p": float(probabilities[at, id]),
                "top": [{"id": i, "piece": piece(i), "p": p} for i, p in top[at]],
            }
            for at, id in enumerate([*target, marks.end] if found[0].finished else target)
        ],
        "text": tokenizer.decode(target),
        "prompt": len(begun),
        "new": len(found[0].tokens),
        "full": not found[0].finished,
        "speed": tree.pace.speed,
        "blocks": crossing,
        "alignment": packed(_mean_of_heads(seen, crossing)),
        "beams": tree.hypotheses(found),
        "tree": tree.nodes if form.beam else None,
        "python": "\n".join(
            [
                "import chainrule as cr",
                "",
                f"model, tokenizer = cr.load({str(loaded.path)!r})",
                "marks = cr.text.Marks.of(tokenizer.special_ids, model.config.target_start)",
                f"source = marks.around(tokenizer.encode({text!r}), model.config.block_size)",
                f"sizes = {{'width': {width}, 'n_best': {width}, 'max_new_tokens': {most}}}",
                "beam = cr.generate.Beam(**sizes, stop_tokens=(marks.end,))",
                f"begun = {begun!r}",
                "texts = cr.generate.Translation(model, source[None])",
                "(found,) = cr.generate.search(texts, [[marks.start, *begun]], beam)",
                "target = [*begun, *found[0].tokens]",
                "print(tokenizer.decode(target))",
                "seen = cr.inspect.view(model, (source, [marks.start, *target]))",
                "print([float(seen.probabilities[at, id]) for at, id in enumerate(target)])",
                *(f"print(seen.attention({name!r}, cross=True).mean(0).tolist())" for name in crossing),
                "",
            ]
        ),
    }


def _mean_of_heads(seen: inspect.View, blocks: list[str]) -> Any:
    """Cross-attention (L, T, S): how much each target token looks at each source token in each block."""
    return [seen.attention(name, cross=True).mean(0) for name in blocks]
