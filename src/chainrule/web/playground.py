"""What the playground shows: a continuation token by token, with what else could have followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chainrule import inspect
from chainrule.errors import ConfigError
from chainrule.generate import Sampling, stream
from chainrule.generate.sample import encoded
from chainrule.web.jobs import Tell
from chainrule.web.models import Loaded, suited

TOP = 8
EXAMPLES = ("The ", "the ", "a")
MOST = 400  # tokens of a prompt and its continuation
NUMBERS = {"temperature": float, "top_p": float, "top_k": int, "seed": int}


def continued(
    loaded: Loaded,
    prompt: str | None,
    ids: Sequence[int] | None,
    length: int,
    options: Mapping[str, Any],
    tell: Tell,
) -> dict[str, Any]:
    """Continue a prompt, or the very tokens `ids` of a branch; each token with its probability and the alternatives.

    Probabilities are the model's own, before temperature and cuts. Without a prompt one is chosen that suits the model.
    """
    vocabulary, context = loaded.tokenizer.vocab_size, min(MOST, int(loaded.model.context))
    prompt = suited(loaded, EXAMPLES) if prompt is None else prompt
    given = encoded(loaded.tokenizer, prompt).tolist() if ids is None else [int(id) for id in ids]
    loaded.tokenizer.check_ids(given)
    if len(given) >= context:
        raise ConfigError(f"playground: the prompt has {len(given)} tokens (must be fewer than {context})")
    if not 1 <= length <= MOST:
        raise ConfigError(f"playground: length is {length} (must be from 1 to {MOST})")
    asked = min(length, context - len(given))
    chosen = _options(options)
    made: list[int] = []
    for token in stream(loaded.model, given, asked, **chosen):
        made.append(token)
        tell(f"{len(made)} of {asked} tokens", len(made) / asked)
    whole = [*given, *made]
    seen = inspect.view(loaded.model, whole)
    piece, top = loaded.tokenizer.piece, seen.top(min(TOP, vocabulary))
    probabilities = seen.probabilities
    tokens: list[dict[str, Any]] = [
        {"id": id, "piece": piece(id), "given": at < len(given), "p": None, "top": []}
        for at, id in enumerate(whole)
    ]
    for at, shown in enumerate(tokens[1:], 1):
        shown["p"] = float(probabilities[at - 1, shown["id"]])
        shown["top"] = [{"id": id, "piece": piece(id), "p": p} for id, p in top[at - 1]]
    return {
        "tokens": tokens,
        "asked": prompt,
        "text": loaded.tokenizer.decode(whole),
        "prompt": len(given),
        "full": len(whole) >= context,
        "python": _program(loaded, given, asked, chosen),
    }


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of Sampling that the page offers; `Sampling` refuses what does not fit."""
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        if name not in NUMBERS:
            raise ConfigError(f"playground: no option {name[:40]!r} (must be one of {', '.join(NUMBERS)})")
        if value in (None, ""):
            continue
        try:
            chosen[name] = NUMBERS[name](value)
        except (TypeError, ValueError):
            raise ConfigError(f"playground: {name} is {str(value)[:40]!r} (must be a number)") from None
    Sampling(**chosen)
    return chosen


def _program(loaded: Loaded, given: list[int], length: int, options: Mapping[str, Any]) -> str:
    chosen = "".join(f", {name}={value!r}" for name, value in options.items())
    return "\n".join(
        [
            "import chainrule as cr",
            "",
            f"model, tokenizer = cr.load({str(loaded.path)!r})",
            f"ids = {given!r}  # {loaded.tokenizer.decode(given)!r}",
            f"more = cr.generate.generate(model, ids, {length}{chosen}).tolist()",
            "print(tokenizer.decode(ids + more))",
            "seen = cr.inspect.view(model, ids + more)",
            "print([float(seen.probabilities[at - 1, id]) for at, id in enumerate(ids + more) if at])",
            "",
        ]
    )
