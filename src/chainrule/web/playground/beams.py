"""Beam search step by step: the texts that were kept, as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.generate import Beam, Hypothesis, beam_search
from chainrule.generate.beam import Search
from chainrule.web.jobs import Tell
from chainrule.web.models import Loaded
from chainrule.web.playground.play import Form, Pace
from chainrule.web.playground.writing import beginning, context_of

LONGEST = 40  # tokens: a longer tree cannot be read


class Tree:
    """Every text that was kept at some step; a node is its last token."""

    def __init__(self, tokenizer: Any, steps: int, tell: Tell) -> None:
        self.tokenizer, self.steps, self.tell = tokenizer, steps, tell
        self.nodes: list[dict[str, Any]] = []
        self._places: dict[tuple[int, ...], int | None] = {(): None}
        self.pace = Pace()

    def watch(self, searches: Sequence[Search]) -> None:
        self.pace.tick()
        step = self.pace.tokens
        self.tell(f"{step} of at most {self.steps} tokens", step / self.steps)
        for text, logprob in searches[0].live:
            self._places[text] = len(self.nodes)
            self.nodes.append(
                {
                    "piece": self.tokenizer.piece(text[-1]),
                    "id": text[-1],
                    "parent": self._places[text[:-1]],
                    "step": step,
                    "logprob": logprob,
                }
            )

    def hypotheses(self, found: Sequence[Hypothesis]) -> list[dict[str, Any]]:
        """What was found, the best first; `node` is where its last token stands in the tree."""
        return [
            {
                "text": self.tokenizer.decode(each.tokens),
                "tokens": list(each.tokens),
                "logprob": each.logprob,
                "score": each.score,
                "finished": each.finished,
                "node": self._places.get(each.tokens),
            }
            for each in found
        ]


def searched(loaded: Loaded, form: Form, tell: Tell) -> dict[str, Any]:
    """The likeliest continuations of a prompt, and the texts that were kept on the way."""
    prompt, given = beginning(loaded, form)
    steps = min(form.length, LONGEST, context_of(loaded) - len(given))
    beam = Beam(
        width=form.beam, n_best=form.beam, max_new_tokens=steps, stop_tokens=loaded.tokenizer.conventions.eos
    )
    tree = Tree(loaded.tokenizer, steps, tell)
    found = beam_search(loaded.model, given, beam, watch=tree.watch)
    return {
        "asked": prompt,
        "begun": loaded.tokenizer.decode(given),
        "ids": given,
        "tree": tree.nodes,
        "beams": tree.hypotheses(found),
        "speed": tree.pace.speed,
        "python": "\n".join(
            [
                "import chainrule as cr",
                "",
                f"model, tokenizer = cr.load({str(loaded.path)!r})",
                f"ids = {given!r}  # {loaded.tokenizer.decode(given)!r}",
                f"beam = cr.generate.Beam(width={form.beam}, n_best={form.beam}, max_new_tokens={steps}, "
                f"stop_tokens={beam.stop_tokens!r})",
                "for found in cr.generate.beam_search(model, ids, beam):",
                "    print(tokenizer.decode(found.tokens), found.logprob, found.score)",
                "",
            ]
        ),
    }
