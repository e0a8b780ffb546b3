"""How a model is sampled unless the command line says otherwise."""

from __future__ import annotations

import sys
from collections.abc import Collection

import chainrule as cr
from chainrule.generate.sampling import Sampling, with_defaults


def model_sampling(
    sampling: Sampling, tokenizer: cr.text.Tokenizer, given: Collection[str], *, quiet: bool = False
) -> Sampling:
    """The options of a command with the model's own defaults and end tokens; the defaults are said on stderr."""
    found = with_defaults(sampling, tokenizer.conventions, given)
    own = {name: getattr(found, name) for name in tokenizer.conventions.generation if name not in given}
    changed = {name: value for name, value in own.items() if value != getattr(sampling, name)}
    if changed and not quiet:
        said = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in changed.items())
        print(f"note: the model's own defaults: {said} (flags change them)", file=sys.stderr)
    return found
