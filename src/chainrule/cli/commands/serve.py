"""`chainrule serve`"""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from chainrule.cli.args.options import Argument
from chainrule.cli.commands.sample import Weights
from chainrule.cli.render.progress import Progress
from chainrule.errors import ConfigError, Setting
from chainrule.types import CacheFormat
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.serve.models import Models

KEY = "CHAINRULE_API_KEY"


@dataclass(frozen=True)
class Command:
    """Answer the clients of OpenAI: completions, chat, embeddings, and a page at /.

    Requests share each pass over the weights; one gives the same tokens for the same seed alone and in any company.
    Models of any family that writes, and of BERT for embeddings, are served by their names. It is ready when /health
    answers; Ctrl-C or SIGTERM lets running requests end. Needs the extra `serve`.

    Example: chainrule serve runs/demo small=models/tiny-chat --port 8000 --weights int8
    """

    models: Annotated[tuple[str, ...], Argument("MODEL")]
    """Directories as for `chainrule sample`: runs, adapters, imported models; or NAME=DIR. The first is the default."""
    host: str = "127.0.0.1"
    """Address to listen at. Any but this machine's own needs --api-key."""
    port: int = 8000
    """Port to listen at; 0 for any that is free."""
    api_key: str | None = None
    """What clients must send as their key. The variable CHAINRULE_API_KEY does the same and is not seen by others."""
    slots: int = 8
    """Texts that are written at a time, each with a cache of its own."""
    queue: int = 64
    """Texts that wait for a slot; beyond, clients are told to try again later."""
    weights: Weights = "stored"
    """Format of the weights; stored: as a GGUF file has them, all else in fp32
    (docs/understand/inference.md)."""
    cache: CacheFormat = "fp32"
    """Format of the keys and values that a transformer remembers of each token: bf16 takes half the memory, int8
    about a quarter."""
    cache_memory: int | None = None
    """Megabytes of the caches of a model and its draft at most; when they are full the text that came last waits.
    Default: what the slots need, taken as texts grow."""
    draft: str | None = None
    """Guess tokens ahead: ngram looks them up in the text, the path of a smaller model asks it. Texts stay the same."""
    allow_host: tuple[str, ...] = ()
    """Names under which clients may call this server, beside addresses and localhost."""
    log_prompts: bool = False
    """Write the bodies of requests to the log."""

    def run(self) -> None:
        check = Check("serve", self)
        check.whole(0, 65535, "port")
        check.whole(1, 1024, "slots")
        check.whole(0, 1_000_000, "queue")
        check.whole(1, None, "cache_memory")
        for package in ("pydantic", "starlette", "uvicorn"):
            if find_spec(package) is None:
                rule = "pip install 'chainrule[serve]'"
                raise ConfigError(f"serve: {package} is not installed ({rule})")
        from chainrule.serve.http.address import address_family, bound, check_host, is_local
        from chainrule.serve.models import ModelPath, load_models

        for name in self.allow_host:
            check_host(name)
        key = self.api_key if self.api_key is not None else os.environ.get(KEY)
        if key is not None and not (key := key.strip()):
            raise ConfigError("serve: ", Setting("api_key"), " is empty (must be a key, or left out)")
        if key is None and not is_local(self.host):
            address_family(self.host, self.port)  # a mistyped address is that first of all
            rule = f"must have one, or set {KEY}: others can reach this address"
            raise ConfigError(
                "serve: ", Setting("host"), f" is {self.host} without ", Setting("api_key"), f" ({rule})"
            )
        paths = [ModelPath.of(word) for word in self.models]
        sock = bound(self.host, self.port)
        with Progress("loading") as progress, ThreadPoolExecutor(1) as pool:
            http = pool.submit(_import_http)  # while weights are packed, which is no work for Python
            models = load_models(
                paths,
                weights=self.weights,
                cache=self.cache,
                slots=self.slots,
                queue=self.queue,
                cache_memory=None if self.cache_memory is None else self.cache_memory << 20,
                draft=self.draft,
                tell=progress.say,
            )
            create_app, serve = http.result()
        app = create_app(
            models, api_key=key, hosts=(*self.allow_host, self.host), log_prompts=self.log_prompts
        )
        name, port = sock.getsockname()[:2]
        address = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
        shown = None if key is None else f"${KEY}" if self.api_key is None else "YOUR_KEY"
        serve(app, sock, lambda: print(greeting(address, models, shown), flush=True))


def _import_http() -> tuple[Any, Any]:
    from chainrule.serve.http.app import create_app
    from chainrule.serve.http.server import serve

    return create_app, serve


def greeting(address: str, models: Models, key: str | None) -> str:
    """Where it is, something to paste, and the memory of each model; `key` stands for the key, which is not printed."""
    if models.first.writer is not None:
        path, asked = "completions", {"prompt": "Once", "max_tokens": 20}
    else:
        path, asked = "embeddings", {"input": "Once"}
    body = json.dumps({"model": models.first.name, **asked})
    header = f' -H "Authorization: Bearer {key}"' if key else ""
    example = f"curl {address}/v1/{path} -H 'Content-Type: application/json'{header} -d '{body}'"
    where = f"serving at {address} (a page for people; clients of OpenAI: {address}/v1)"
    memory = (f"{served.name}: {served.memory}" for served in models if served.memory is not None)
    return "\n".join((where, example, *memory))
