"""Files of a run and of shards, damaged or edited: never wrong weights without a word, never a traceback."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from tests.runs.helpers import new_run

from benchmarks.harness import progress
from benchmarks.reliability.mutate import edited, flip_or_cut
from benchmarks.reliability.tries import Tally, attempt, command

EVERY = 100  # tries between two lines of progress
COMMANDS = (
    ("sample", "run", "--max-new-tokens", "3"),
    ("eval", "run"),
    ("train", "gpt", "--resume", "run"),
    ("doctor", "run"),
    ("diagnose", "run"),
    ("replay", "run", "--step", "5"),
    ("runs", "list", "."),
    ("runs", "compare", "run", "run"),
    ("runs", "report", "run", "--out", "page.html"),
    ("export", "run", "--out", "there"),
)
OF_SHARDS = (
    (
        "train",
        "gpt",
        "shards",
        "--max-steps",
        "1",
        "--n-layer=1",
        "--n-head=2",
        "--n-embd=8",
        "--block-size=8",
    ),
    ("train", "gpt", "--resume", "of-shards"),
    ("eval", "of-shards", "shards"),
)


def campaign(count: int, seed: int, folder: Path) -> Tally:
    """`count` files damaged, each of a run or shards that are whole otherwise."""
    tally, draw = Tally("flips and cuts of the files of runs and shards"), random.Random(seed)
    _make(folder)
    scratch = folder / "scratch"
    scratch.mkdir()
    known = {_weights(path) for path in (folder / "run/checkpoints").iterdir()}
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and {"run", "shards", "of-shards"} & {*path.parts}
    ]
    while tally.tries < count:
        path = draw.choice(files)
        signed = draw.random() < 0.3 and path.suffix == ".json" and path.name != "manifest.json"
        damage = edited if signed or draw.random() < 0.2 else flip_or_cut
        words = draw.choice(OF_SHARDS if "shards" in str(path.relative_to(folder).parts[0]) else COMMANDS)
        with _damaged(path, damage, draw, signed=signed) as changed:
            what = f"{' '.join(words)} after {damage.__name__} of {path.relative_to(folder)}"
            tally.add(what, attempt(command(words), folder, scratch))
            if changed and not signed:  # a manifest that was renewed vouches for what it lists
                ended = attempt(lambda: _check_weights(folder / "run", known), folder, scratch)
                if ended.problem:
                    tally.problems.append(f"load after {what}: {ended.problem}")
        if tally.tries % EVERY == 0:
            progress(f"{tally.tries} damaged files, {len(tally.problems)} problems")
    return tally


def _make(folder: Path) -> None:
    """A run with two checkpoints, shards, and a run on them."""
    from chainrule.cli import main

    with open("/dev/null", "w", encoding="utf-8") as null, redirect_stdout(null), redirect_stderr(null):
        new_run(
            folder, max_steps=6, save_every=2, eval_every=3, eval_windows=8, ema=0.9, watch_every=2
        ).train()
        text, shards, run = (str(folder / name) for name in ("text.txt", "shards", "of-shards"))
        main(["data", "build", text, "--by", "paragraph", "--out", shards, "--validation", "0.3"])
        sizes = [
            "--max-steps=2",
            "--n-layer=1",
            "--n-head=2",
            "--n-embd=8",
            "--block-size=8",
            "--batch-size=2",
        ]
        main(["train", "gpt", shards, *sizes, "--out", run])


@contextmanager
def _damaged(
    path: Path, damage: Callable[[bytes, random.Random], bytes], draw: random.Random, *, signed: bool
) -> Iterator[bool]:
    """A file as it is no more, with its new hash in the manifest if `signed`; whole again afterwards."""
    beside = [file for name in ("manifest.json", "meta.json") if (file := path.parent / name).exists()]
    before = {file: file.read_bytes() for file in {path, *beside}}
    log = path.parents[0] / "log.jsonl"
    kept = {file: file.read_bytes() for file in (log, path.parent / "environment.json") if file.exists()}
    try:
        content = damage(before[path], draw)
        path.write_bytes(content)
        if signed and beside and beside[0] != path:
            _sign(beside[0], path.name, content)
        yield content != before[path]
    finally:
        for file, old in (kept | before).items():
            file.write_bytes(old)


def _sign(manifest: Path, name: str, content: bytes) -> None:
    """Write the hash of a file into the list of its folder."""
    listed = json.loads(manifest.read_bytes())
    entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    for sums in (listed.get("files"), listed.get("tokenizer")):
        if sums and name in sums:
            sums[name] = entry
    manifest.write_text(json.dumps(listed), encoding="utf-8")


def _weights(path: Path) -> str:
    from chainrule.runs import load

    model, tokenizer = load(path)
    total = hashlib.sha256(json.dumps(tokenizer.to_dict(), sort_keys=True).encode())
    for name, array in sorted(model.state().items()):
        total.update(name.encode() + array.tobytes())
    return total.hexdigest()


def _check_weights(run: Path, known: set[str]) -> None:
    """What loads is one of the models that were saved; all else is refused."""
    from chainrule.errors import ChainruleError

    try:
        found = _weights(run)
    except ChainruleError:
        return
    if found not in known:
        raise AssertionError("wrong weights or tokens, and not a word")
