"""Pictures of the Studio for the docs: python -m tools.screenshots [DIRECTORY_OF_RUNS]

Trains small models unless a directory with their runs is given, opens every view in the system's chromium, and writes
the pictures of the guide (docs/images/studio-*.png) and the gallery: every view in both themes, with its page
docs/guide/studio-gallery.md. With --all whole pages at two widths too, into build/screenshots, to be looked at.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEXT = "The value of the value of "
NEURON = "e=z+%3D+w1*x1+%2B+w2*x2+%2B+b%3B+y+%3D+sigmoid(z)&w1=0.4&x1=0.5&w2=0.6&x2=0.8&b=-0.5"
VIEWS = {
    "home": "/",
    "lessons": "/lessons",
    "lesson": "/lessons/chain-rule",
    "lesson-heads": "/lessons/heads",
    "calculus": f"/calculus?{NEURON}&step=7",
    "ops": "/calculus/ops",
    "op": "/calculus/ops/softmax",
    "tokens": "/tokens",
    "merges": "/tokens/merges?step=6",
    "mask": "/tokens/mask",
    "ngrams": "/ngrams?row=t",
    "embeddings": "/embeddings",
    "positions": "/embeddings/positions",
    "runs": "/runs",
    "new": "/runs/new",
    "run": "/runs/pydoc",
    "diverged": "/runs/too-fast",
    "compare": "/runs/compare?run=pydoc&run=too-fast",
    "microscope": "/microscope?run=pydoc&text={text}&at=4&block=h.1&head=1",
    "classifier": "/microscope?run=lines&text=To%20raise%20an%20exception%2C%20write%3A&at=3",
    "bag": "/microscope?run=bag&text=To%20raise%20an%20exception%2C%20write%20the%20value%20of%20the%20class%3A&at=3",
    "words": "/microscope?run=words&text=an%20integer%20or%20a%20string%20raises%20an%20exception&at=4",
    "playground": "/playground?run=pydoc&length=90&temperature=0.5",
    "diagnostics": "/diagnostics?draw=large&activation=tanh",
    "alignment": "/alignment",
    "scaling": "/scaling",
    "plan": "/scaling/plan?compute=1e20&available=1e9&served=1e12",
}
TITLES = {
    "home": "Home", "lessons": "The path of lessons", "lesson": "A lesson",
    "lesson-heads": "A lesson with a model trained for it", "calculus": "An expression as a graph",
    "ops": "Every op", "op": "One op: softmax", "tokens": "Tokenizers side by side",
    "merges": "BPE, merge by merge", "mask": "What a conversation teaches", "ngrams": "n-grams",
    "embeddings": "Embeddings", "positions": "Position encodings", "runs": "Runs", "new": "A new run",
    "run": "A run", "diverged": "A run that diverged", "compare": "Runs side by side",
    "microscope": "The microscope", "classifier": "A classifier in the microscope",
    "bag": "A bag of words in the microscope", "words": "Word vectors in the microscope",
    "playground": "The playground", "diagnostics": "Diagnostics", "alignment": "Alignment",
    "scaling": "Scaling laws", "plan": "A plan for a budget",
}  # fmt: skip
GUIDE = {
    "home": "light", "lesson": "light", "run": "light", "microscope": "dark", "calculus": "light", "op": "light",
    "ngrams": "dark", "embeddings": "light", "diagnostics": "light", "alignment": "dark", "scaling": "light",
}  # fmt: skip
TALL = {"lesson": 1560}  # pixels, where 860 do not show what it is about
EPOCHS = 15  # of word vectors: the text is short
THEMES = ("light", "dark")
WIDE, HIGH = 1280, 860  # pixels of a picture in the guide
LOWER, SHOWN = 1100, 680  # of the gallery: down to where, and the width of a picture
GALLERY = """# Every view of the Studio

Made by `make studio-screenshots`, on runs of a minute; the [guide](studio.md) says what each view is for.
"""


def train(folder: Path, seconds: int) -> None:
    """A language model, one whose rate is far too high, classifiers of lines (code or prose), and word vectors."""
    small = "--n-layer 2 --n-embd 64 --n-head 2 --block-size 64 --batch-size 8"
    _train(folder / "pydoc", f"gpt --budget {seconds} --sample-every 40 --watch-every 25")
    _train(folder / "too-fast", f"gpt --max-steps 60 --lr 0.9 --warmup 1 --watch-every 5 {small}", fails=True)
    lines = folder / "lines.tsv"
    lines.write_text(labeled_lines(), encoding="utf-8")
    _train(folder / "lines", f"bert-classifier {lines} --budget {seconds // 2} {small}")
    _train(folder / "bag", f"bow-classifier {lines} --max-steps 1000")
    _train(folder / "words", f"word2vec pydoc --epochs {EPOCHS}")


def _train(out: Path, words: str, fails: bool = False) -> None:
    """A training; one that diverges `fails`, which is what is to be shown."""
    command = [sys.executable, "-m", "chainrule.cli", "train", *words.split(), "--out", str(out)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=not fails, **silent)


def labeled_lines() -> str:
    """Lines of Python's help, each with what it is."""
    from chainrule import data

    rows = {}
    for line in data.load("pydoc").text.splitlines():
        if len(line.split()) > 3 and "\t" not in line:
            rows[re.sub(r"\s+", " ", line.strip())] = (
                "code" if re.match(r" {4}|>>>|\.\.\.", line) else "prose"
            )
    return "".join(f"{text}\t{label}\n" for text, label in rows.items())


def serve(folder: Path) -> str:
    import uvicorn

    from chainrule.cli.commands.studio import HOST, listening
    from chainrule.web.app import create_app

    bound = listening(0)
    server = uvicorn.Server(uvicorn.Config(create_app(folder), log_level="warning"))
    threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://{HOST}:{bound.getsockname()[1]}"


def opened(browser: Any, url: str, theme: str, width: int, height: int) -> Any:
    """A view, when nothing is being computed for it any more."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.on("console", lambda message: print(f"{url}: {message.text}", file=sys.stderr))
    page.goto(url)
    page.wait_for_selector("main h1")
    page.wait_for_timeout(1500)
    page.wait_for_selector("[aria-busy]", state="detached", timeout=120_000)
    page.wait_for_timeout(500)
    return page


def small(path: Path, colors: int = 160, width: int | None = None) -> None:
    """Fewer colors, a third of the bytes: they cover all hues, and are moved to where most pixels are."""
    from PIL import Image

    picture = Image.open(path).convert("RGB")
    if width is not None:
        picture = picture.resize((width, picture.height * width // picture.width), Image.Resampling.LANCZOS)
    picture.quantize(colors, Image.Quantize.MAXCOVERAGE, kmeans=8).save(path, optimize=True)


def docs(browser: Any, address: str, views: Collection[str]) -> None:
    """The pictures of the guide, and the gallery with its page."""
    images = ROOT / "docs" / "images"
    (images / "studio").mkdir(parents=True, exist_ok=True)
    for name in views:
        for theme in THEMES:
            page = opened(browser, address + VIEWS[name].format(text=TEXT), theme, WIDE, LOWER)
            file = images / "studio" / f"{name}-{theme}.png"
            page.screenshot(path=str(file))
            small(file, 64, SHOWN)
            if GUIDE.get(name) == theme:
                page.set_viewport_size({"width": WIDE, "height": TALL.get(name, HIGH)})
                page.wait_for_timeout(300)
                page.screenshot(path=str(images / f"studio-{name}.png"))
                small(images / f"studio-{name}.png")
            page.close()
            print(file)
    (ROOT / "docs" / "guide" / "studio-gallery.md").write_text(gallery(), encoding="utf-8")


def gallery() -> str:
    """A picture of every view in both themes."""
    parts = [GALLERY]
    for name, path in VIEWS.items():
        pictures = "\n".join(
            f"![{TITLES[name]}, {theme}](../images/studio/{name}-{theme}.png)" for theme in THEMES
        )
        parts.append(f"## {TITLES[name]}\n\n`{path.partition('?')[0]}`\n\n{pictures}\n")
    return "\n".join(parts)


def everything(browser: Any, address: str, views: Collection[str]) -> None:
    """Whole pages in both themes and two widths, to be looked at."""
    to = ROOT / "build" / "screenshots"
    to.mkdir(parents=True, exist_ok=True)
    for name in views:
        for theme in THEMES:
            for width, height in ((390, 844), (1440, 860)):
                page = opened(browser, address + VIEWS[name].format(text=TEXT), theme, width, height)
                page.screenshot(path=str(to / f"{name}-{theme}-{width}.png"), full_page=True)
                page.close()
                print(to / f"{name}-{theme}-{width}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "runs", nargs="?", type=Path, help="a directory with these runs; else they are trained"
    )
    parser.add_argument(
        "--all", action="store_true", help="whole pages at two widths too, to build/screenshots"
    )
    parser.add_argument("--seconds", type=int, default=90, help="how long to train")
    parser.add_argument(
        "--only", nargs="+", choices=VIEWS, default=[*VIEWS], help="these views; default: all"
    )
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = asked.runs or Path(made)
        if not asked.runs:
            train(folder, asked.seconds)
        address = serve(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        docs(browser, address, asked.only)
        if asked.all:
            everything(browser, address, asked.only)
        browser.close()


if __name__ == "__main__":
    main()
