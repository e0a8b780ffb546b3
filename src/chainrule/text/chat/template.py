"""Chat templates: how a model's own conversations are written, as a Jinja template that came with the model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, ConfigError, FormatError, Setting
from chainrule.text.chat.formats import FORMATS, Message
from chainrule.text.tokenizer import Tokenizer

WORKER = Path(__file__).with_name("jinja_worker.py")
OLDEST = (3, 1, 6)  # of jinja2: earlier sandboxes have known holes
SECONDS, WAIT = 2, 20  # of CPU, and by the clock, where a busy machine may take longer
MEMORY = 1 << 29  # bytes of addresses, of which Python itself takes a part
SIZE = 1 << 22  # characters of a rendered conversation
TOGETHER = 1000  # conversations in one process
# What Python needs to start, and how dates are written. No secrets, and no preloaded libraries, which may take more
# memory than the limit allows.
ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL", "LC_TIME", "TZ")


class ChatTemplate:
    """A Jinja template with the variables that Hugging Face gives it.

    Each call starts a process with limits (`jinja_worker`): a template is a program, and may be a hostile one.
    """

    def __init__(self, source: str, tokenizer: Tokenizer) -> None:
        self.source = source
        self.tokens = {
            f"{role}_token": "" if id is None else tokenizer.piece(id)
            for role, id in tokenizer.conventions.roles.items()
        }

    @property
    def knows_tools(self) -> bool:
        """It has a place for functions that the model may call."""
        return re.search(r"\btools\b", self.source) is not None

    def render(
        self, messages: Sequence[Message], *, add_generation_prompt: bool = True, tools: Any = None
    ) -> str:
        """The conversation as text; with `add_generation_prompt` it ends where the answer begins."""
        return self.render_all([messages], add_generation_prompt=add_generation_prompt, tools=tools)[0]

    def render_all(
        self,
        conversations: Sequence[Sequence[Message]],
        *,
        add_generation_prompt: bool = False,
        tools: Any = None,
    ) -> list[str]:
        """Many conversations; a process renders a thousand of them."""
        check_jinja()
        given = {
            "tools": tools,
            "documents": None,
            "add_generation_prompt": add_generation_prompt,
        } | self.tokens
        each = [given | {"messages": [dict(m) for m in messages]} for messages in conversations]
        limits = {"seconds": SECONDS, "memory": MEMORY, "size": SIZE}
        texts: list[str] = []
        for first in range(0, len(each), TOGETHER):
            some = each[first : first + TOGETHER]
            answer = _ask({"path": _installed(), "template": self.source, "each": some} | limits)
            if "error" in answer:
                raise refuse_template(answer["error"])
            texts += answer["texts"]
        return texts


def refuse_template(why: str) -> FormatError:
    """The error for a template that cannot be used here; it says what can be."""
    fix = (" (choose a format instead: ", Setting("format"), f" {', '.join(FORMATS)})")
    return FormatError(f"chat template: {why}", *fix)


def check_jinja() -> None:
    """jinja2 must be installed, in a version whose sandbox is safe."""
    from importlib import metadata  # takes longer than all the rest of this file

    try:
        found = metadata.version("jinja2")
    except metadata.PackageNotFoundError:
        found = ""
    if tuple(int(part) for part in found.split(".")[:3] if part.isdecimal()) < OLDEST:
        has = f"jinja2 is {found}" if found else "jinja2 is not installed"
        rule = f"must be {'.'.join(map(str, OLDEST))} or later: pip install 'chainrule[chat]', or choose "
        raise ConfigError(f"chat template: {has} ({rule}", Setting("format"), f" {', '.join(FORMATS)})")


def _installed() -> list[str]:
    """Where packages are installed: not the present directory, where a file jinja2.py may lie beside a model."""
    here = Path.cwd().resolve()
    return [place for place in sys.path if place and Path(place).resolve() != here]


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a process of its own, or what became of it."""
    command = [sys.executable, "-I", str(WORKER)]
    given = json.dumps(request).encode()
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=WAIT, env=kept)
        answer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):  # killed before it had an answer
        return {"error": f"takes more than {SECONDS} s or {MEMORY >> 20} MB to render"}
    except OSError as error:
        raise ChainruleError(
            f"chat template: {sys.executable} cannot be started ({error.strerror})"
        ) from error
    return dict(answer)
