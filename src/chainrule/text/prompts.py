"""Few-shot prompts: an instruction, some examples, and a query for the model to answer."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.errors import ConfigError

SHAPE = "Input: {input}\nOutput: {output}"


def few_shot(
    query: str,
    examples: Sequence[tuple[str, str]] = (),
    *,
    instruction: str = "",
    shape: str = SHAPE,
    between: str = "\n\n",
) -> str:
    """A prompt of an instruction, examples (input, output) and `query`; it ends where the answer begins.

    Without examples it is a zero-shot prompt. `shape` is the format of an example and must end with {output}. The model
    writes the space before the answer, since tokens of words carry it.

    >>> print(few_shot("sea", [("sun", "Sonne"), ("moon", "Mond")], instruction="Translate to German."))
    Translate to German.
    <BLANKLINE>
    Input: sun
    Output: Sonne
    <BLANKLINE>
    Input: moon
    Output: Mond
    <BLANKLINE>
    Input: sea
    Output:
    """
    if shape.count("{input}") != 1 or shape.count("{output}") != 1 or not shape.endswith("{output}"):
        raise ConfigError(f"few_shot: shape is {shape!r} (must have {{input}} once and end with {{output}})")
    before, after = shape.removesuffix("{output}").split("{input}")
    shown = [before + given + after + wanted for given, wanted in examples]
    parts = [instruction] if instruction else []
    return between.join([*parts, *shown, (before + query + after).rstrip(" ")])
