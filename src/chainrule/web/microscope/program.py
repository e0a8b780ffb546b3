"""The numbers of the microscope in Python: a program that prints them."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.web.microscope.edits import Change
from chainrule.web.microscope.reading import SILENT, Reading, kind_of
from chainrule.web.models import Loaded


def opening(loaded: Loaded, reading: Reading) -> list[str]:
    """The lines that load the model and make the ids."""
    path = repr(str(loaded.path))
    if kind_of(loaded) == "words":
        read = [f"vectors = cr.inspect.embeddings.WordVectors(*cr.runs.load_vectors({path}))"]
        read += ["tokenizer = cr.text.LowercaseWordTokenizer.of(vectors.words)"]
        return ["import chainrule as cr", "", *read, *reading.lines()]
    return [
        "import chainrule as cr",
        "",
        f"model, tokenizer = cr.load({path})",
        *(["model = cr.models.fine_tune(model, cr.models.BERTEmbedder)"] if loaded.bare else []),
        *reading.lines(),
    ]


def program(loaded: Loaded, reading: Reading, changes: Sequence[Change]) -> str:
    """What the page shows at first, and the names of what it shows below."""
    silent = SILENT.get(kind_of(loaded))
    made = [change.python(loaded, n) for n, change in enumerate(changes, 1)]
    lines = [*opening(loaded, reading), *(line for before, _ in made for line in before)]
    if any("np." in edit for _, edit in made):
        lines[1:1] = ["import numpy as np"]
    edits = "".join(f"\n    {edit}," for _, edit in made)
    lines += [
        f"edits = [{edits}\n]" if edits else "edits = []",
        "seen = cr.inspect.view(model, ids, edits)",
        f"print({silent.python if silent else 'seen.summary()'})",
    ]
    if changes and silent is None:
        lines.append("print(cr.inspect.effect(model, ids, edits).kl.tolist())")
    lines += [
        "architecture = cr.inspect.architecture(model)",
        "# also: seen.attention(block)[head], seen.stream_norms, seen.neurons(block), seen.value(call);",
        "# of an RNN seen.gates(block); cr.inspect.logit_lens(model, ids, edits=edits), cr.inspect.head_scores(model)",
        "",
    ]
    return "\n".join(lines)
