"""Renders a chat template in a process of its own, which has little time, little memory, and opens no files.

A chat template is a program that comes with a model. Jinja's sandbox keeps it away from Python's objects; the limits
of the process stop what a sandbox cannot, such as loops inside loops or a text that doubles. `template` starts this
file; it reads one JSON object from standard input and writes one to standard output.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import datetime
from typing import Any

LONGEST = 200  # characters of a message
# Loads what is loaded on first use, while files can be opened.
WARM_UP = r"{{ 'a\n' | pprint }}{{ strftime_now('%c') }}"


def main() -> None:
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    try:
        environment = hugging_face_environment()
        environment.from_string(WARM_UP).render()
        limit(request["seconds"], request["memory"])  # before compiling, which computes constants
        template = environment.from_string(request["template"])
        answer: dict[str, Any] = {
            "texts": [bounded(template.generate(variables), request["size"]) for variables in request["each"]]
        }
    except Exception as error:  # whatever a template can cause
        answer = {"error": one_line(error)}
    json.dump(answer, sys.stdout)


def hugging_face_environment() -> Any:
    """Jinja's sandbox with the names and filters that chat templates of Hugging Face count on."""
    import jinja2.debug  # noqa: F401  # loaded now: no file can be opened later
    from jinja2 import TemplateError, nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """{% generation %} ... {% endgeneration %} marks what the assistant writes; the text is the same."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    class PlainNamespace(Namespace):
        """Holds no name that begins with an underscore, as those of Python's internals do."""

        def __init__(*args: Any, **values: Any) -> None:
            self, *others = args
            Namespace.__init__(self)
            for name, value in dict(*others, **values).items():
                self[name] = value

        def __setitem__(self, name: str, value: Any) -> None:
            if str(name).startswith("_"):
                raise SecurityError(f"a namespace cannot hold {name!r}")
            super().__setitem__(name, value)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def strftime_now(format: str) -> str:
        return datetime.now().strftime(format)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:  # Jinja's own escapes HTML
        return json.dumps(
            value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = tojson
    for unused in ("lipsum", "cycler", "joiner"):
        del environment.globals[unused]
    environment.globals |= {
        "raise_exception": raise_exception,
        "strftime_now": strftime_now,
        "namespace": PlainNamespace,
    }
    return environment


def limit(seconds: int, memory: int) -> None:
    """Of this process from now on: seconds of CPU, bytes of memory, and no files, sockets or processes."""
    with suppress(ImportError):
        import resource

        limits = {
            resource.RLIMIT_CPU: seconds,
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_NOFILE: 0,
            resource.RLIMIT_NPROC: 0,
        }
        for kind, most in limits.items():
            with suppress(ValueError, OSError):  # not every system has every limit
                resource.setrlimit(kind, (most, most))


def bounded(pieces: Any, size: int) -> str:
    """The pieces as one text, which must not be longer than `size`."""
    found, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > size:
            raise ValueError(f"writes more than {size:,} characters")
        found.append(piece)
    return "".join(found)


def one_line(error: Exception) -> str:
    """What went wrong, in printable characters."""
    line = getattr(error, "lineno", None)
    said = "needs too much memory" if isinstance(error, MemoryError) else str(error) or type(error).__name__
    text = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return f"line {line}: {text}" if line else text


if __name__ == "__main__":
    main()
