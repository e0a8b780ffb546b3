"""Pictures of the Studio for the docs: python -m tools.screenshots [DIRECTORY_OF_RUNS]

Trains a small model unless a directory of runs is given, opens every view in the system's chromium, and writes
docs/images/studio-*.png; with --all every view in both themes and two widths, into build/screenshots, to be looked at.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
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
    "run": "/runs/{run}",
    "microscope": "/microscope?run={run}&text={text}&at=4&block=h.1&head=1",
    "playground": "/playground?run={run}&length=90&temperature=0.5",
    "diagnostics": "/diagnostics?draw=large&activation=tanh",
    "alignment": "/alignment",
    "scaling": "/scaling",
    "plan": "/scaling/plan?compute=1e20&available=1e9&served=1e12",
}
DOCS = {
    "home": ("light",),
    "lesson": ("light", "dark"),
    "run": ("light",),
    "microscope": ("dark",),
    "calculus": ("light",),
    "op": ("light",),
    "ngrams": ("dark",),
    "embeddings": ("light",),
    "diagnostics": ("light",),
    "alignment": ("dark",),
    "scaling": ("light",),
}

TALL = {"lesson": 1560}  # pixels, where 860 do not show what it is about


def train(folder: Path, seconds: int) -> None:
    words = ["train", "gpt", "--budget", str(seconds), "--sample-every", "40", "--watch-every", "25"]
    command = [sys.executable, "-m", "chainrule.cli", *words, "--out", str(folder / "pydoc")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


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


def shoot(browser: Any, url: str, path: Path, theme: str, width: int, height: int, whole: bool) -> None:
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.on("console", lambda message: print(f"{url}: {message.text}", file=sys.stderr))
    page.goto(url)
    page.wait_for_selector("main h1")
    page.wait_for_timeout(1500)
    page.wait_for_selector("[aria-busy]", state="detached", timeout=60_000)
    page.wait_for_timeout(500)
    page.screenshot(path=str(path), full_page=whole)
    page.close()
    if not whole:
        small(path)


def small(path: Path) -> None:
    """Fewer colors: a third of the bytes, and nobody sees it."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(160).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "runs", nargs="?", type=Path, help="a directory of runs; without one a model is trained"
    )
    parser.add_argument(
        "--all", action="store_true", help="every view, both themes, two widths, to build/screenshots"
    )
    parser.add_argument("--seconds", type=int, default=90, help="how long to train")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = asked.runs or Path(made)
        if not asked.runs:
            train(folder, asked.seconds)
        run = next(log.parent.name for log in sorted(folder.glob("*/log.jsonl")))
        address = serve(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        to = ROOT / "build" / "screenshots" if asked.all else ROOT / "docs" / "images"
        to.mkdir(parents=True, exist_ok=True)
        for name, path in VIEWS.items():
            url = address + path.format(run=run, text=TEXT)
            themes = ("light", "dark") if asked.all else DOCS.get(name, ())
            for theme in themes:
                other = f"-{theme}" if theme != themes[0] else ""
                for width in (390, 1440) if asked.all else (1280,):
                    file = to / (f"{name}-{theme}-{width}.png" if asked.all else f"studio-{name}{other}.png")
                    shoot(
                        browser,
                        url,
                        file,
                        theme,
                        width,
                        844 if width == 390 else TALL.get(name, 860),
                        asked.all,
                    )
                    print(file)
        browser.close()


if __name__ == "__main__":
    main()
