"""Our side of decode.py: a worker that reads prompts and generates tokens.

The weights come from a file, as a user's do, and go from there into their format: another process writes it, whose
float32 model then is no part of the memory that is measured.

    python -m benchmarks.peers.decode_chainrule --write FILE      writes it
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import resident_mb
from benchmarks.peers.decode import MODELS, TEXTS, serve_decoder, worker_arguments


def kind_of(name: str) -> tuple[Any, Any]:
    """The class of a model, and its config"""
    import chainrule as cr

    make, config = {
        "gpt2": (cr.models.GPT, cr.models.GPTConfig),
        "llama135": (cr.models.Llama, cr.models.LlamaConfig),
    }[name]
    return make, config(**MODELS[name])


def write_weights(name: str, path: Path) -> None:
    """Random weights by our names, in float32"""
    import chainrule as cr
    from chainrule.io import safetensors

    cr.seed(0)
    make, config = kind_of(name)
    with path.open("wb") as file:
        safetensors.write(file, make(config).arrays())


def stored_model(name: str, path: Path) -> Any:
    """The model whose weights stay in the file"""
    from chainrule.io import safetensors
    from chainrule.io.opened import Opened

    make, config = kind_of(name)
    return Opened.of(make, config, safetensors.read(path)).to_decode()


def main() -> None:
    parser = worker_arguments(__doc__)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    if args.write:
        return write_weights(args.model, args.write)
    import chainrule as cr

    imported = resident_mb()
    cr.set_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        writer = [sys.executable, "-m", "benchmarks.peers.decode_chainrule", "--write", str(path)]
        subprocess.run([*writer, "--model", args.model], check=True, stdin=subprocess.DEVNULL)
        decoder = cr.generate.Decoder(stored_model(args.model, path), args.weights, batch=TEXTS)

    def prefill(ids, texts=1):
        decoder.reset()
        return decoder.prefill([ids] * texts, range(texts)).argmax(axis=1)

    def step(tokens):
        return decoder.step(tokens, range(len(tokens))).argmax(axis=1)

    serve_decoder(prefill, step, imported, lambda ids: prefill(ids, TEXTS))


if __name__ == "__main__":
    main()
