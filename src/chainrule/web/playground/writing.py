"""Continuations and answers token by token, each with what else could have followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import inspect, ops
from chainrule.errors import ConfigError
from chainrule.generate import Sampling, answers, process, stream
from chainrule.generate.sample import encoded
from chainrule.text import chat_ids
from chainrule.text.chat.roles import own_format
from chainrule.web.jobs import Tell
from chainrule.web.microscope.reading import suited
from chainrule.web.models import Loaded
from chainrule.web.playground.play import MOST, Form, Pace

TOP = 8
EXAMPLES = ("The ", "the ", "a")


def context_of(loaded: Loaded) -> int:
    """Tokens of a prompt and its continuation at most."""
    return MOST if getattr(loaded.model, "any_length", False) else min(MOST, int(loaded.model.context))


def beginning(loaded: Loaded, form: Form) -> tuple[str, list[int]]:
    """The prompt and the ids to continue: those of a branch, or of the prompt."""
    prompt = suited(loaded, EXAMPLES) if form.prompt is None else form.prompt
    given = encoded(loaded.tokenizer, prompt).tolist() if form.ids is None else list(form.ids)
    loaded.tokenizer.check_ids(given)
    if len(given) >= context_of(loaded):
        rule = f"must be fewer than {context_of(loaded)}"
        raise ConfigError(f"playground: the prompt has {len(given)} tokens ({rule})")
    return prompt, given


def continued(loaded: Loaded, form: Form, tell: Tell) -> dict[str, Any]:
    """Continue a prompt, or the very tokens of a branch."""
    prompt, given = beginning(loaded, form)
    asked, chosen = min(form.length, context_of(loaded) - len(given)), form.chosen
    made: list[int] = []
    pace = Pace()
    for token in stream(loaded.model, given, asked, **chosen):
        made.append(token)
        pace.tick()
        tell(f"{len(made)} of {asked} tokens", len(made) / asked)
    options = "".join(f", {name}={value!r}" for name, value in chosen.items())
    program = [
        f"ids = {given!r}  # {loaded.tokenizer.decode(given)!r}",
        f"more = cr.generate.generate(model, ids, {asked}{options}).tolist()",
    ]
    found = written(loaded, given, made, Sampling(**chosen), program)
    return found | {
        "asked": prompt,
        "full": len(given) + len(made) >= context_of(loaded),
        "speed": pace.speed,
    }


def answered(loaded: Loaded, form: Form, tell: Tell) -> dict[str, Any]:
    """What a chat model says next in a conversation."""
    tokenizer = loaded.tokenizer
    if tokenizer.conventions.chat_template is None:
        raise ConfigError(
            "playground: the model has no chat format (must be tuned on conversations; see tune)"
        )
    messages: Any = [dict(message) for message in form.messages or ()]
    given = chat_ids(tokenizer, own_format(tokenizer), messages).tolist()
    left = context_of(loaded) - len(given)
    if left < 1:
        rule = f"must be fewer than {context_of(loaded)}: begin a new one"
        raise ConfigError(f"playground: the conversation has {len(given)} tokens ({rule})")
    asked, chosen = min(form.length, left), form.chosen
    sampling = Sampling(max_new_tokens=asked, **chosen)
    pace = Pace()

    def heard(tokens: int) -> None:
        pace.tick()
        tell(f"{tokens} tokens", tokens / asked)

    (request,) = answers(loaded.model, tokenizer, [(messages, sampling)], tell=heard)
    options = "".join(f", {name}={value!r}" for name, value in chosen.items())
    program = [
        f"messages = {messages!r}",
        f"sampling = cr.generate.Sampling(max_new_tokens={asked}{options})",
        "(request,) = cr.generate.answers(model, tokenizer, [(messages, sampling)])",
        "ids, more = request.prompt, request.tokens",
    ]
    found = written(loaded, given, list(request.tokens), Sampling(**chosen), program)
    return found | {
        "answer": request.text,
        "full": request.finish == "length" and asked == left,
        "speed": pace.speed,
    }


def written(
    loaded: Loaded, given: Sequence[int], made: Sequence[int], sampling: Sampling, program: Sequence[str]
) -> dict[str, Any]:
    """Tokens with their probabilities and the alternatives: the model's own, and after temperature and cuts."""
    whole = [*given, *made]
    seen = inspect.view(loaded.model, whole)
    piece, top = loaded.tokenizer.piece, seen.top(min(TOP, loaded.tokenizer.vocab_size))
    probabilities = seen.probabilities
    tokens: list[dict[str, Any]] = [
        {"id": id, "piece": piece(id), "given": at < len(given), "p": None, "top": []}
        for at, id in enumerate(whole)
    ]
    for at, shown in enumerate(tokens[1:], 1):
        shown["p"] = float(probabilities[at - 1, shown["id"]])
        shown["top"] = [{"id": id, "piece": piece(id), "p": p} for id, p in top[at - 1]]
        if not shown["given"]:
            after = drawn_from(seen.logits[at - 1], sampling, given, made[: at - len(given)])
            for each in shown["top"]:
                each["after"] = float(after[each["id"]])
    return {
        "tokens": tokens,
        "text": loaded.tokenizer.decode(whole),
        "prompt": len(given),
        "python": "\n".join(
            [
                "import chainrule as cr",
                "",
                f"model, tokenizer = cr.load({str(loaded.path)!r})",
                *program,
                "print(tokenizer.decode([*ids, *more]))",
                "seen = cr.inspect.view(model, [*ids, *more])",
                "print([float(seen.probabilities[at - 1, id]) for at, id in enumerate([*ids, *more]) if at])",
                "",
            ]
        ),
    }


def drawn_from(logits: Any, sampling: Sampling, given: Sequence[int], made: Sequence[int]) -> Any:
    """logits (V,) -> the probabilities (V,) that a token is drawn from"""
    scores = process(logits, sampling, given, made)
    if sampling.temperature == 0:
        return np.arange(len(scores)) == scores.argmax()
    return np.asarray(ops.softmax(scores))
