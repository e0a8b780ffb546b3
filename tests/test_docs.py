"""What the documentation shows is what happens: every example in it is run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.cli import COMMANDS
from chainrule.cli.args.options import options_of
from chainrule.cli.args.reader import read

ROOT = Path(__file__).parents[1]
WRITTEN = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not {"_build", "_generated"} & set(p.parts)]
PAGES = [ROOT / "README.md", *WRITTEN]
MODULES = [m.name for m in pkgutil.walk_packages(cr.__path__, "chainrule.") if not m.name.endswith("_native")]


@pytest.fixture(autouse=True)
def plain_numbers():
    cr.seed(0)
    with np.printoptions(precision=8, legacy=False):
        yield
    cr.seed(0)


def test_pages_run() -> None:
    attempted = 0
    for page in PAGES:
        failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8", verbose=False)
        assert failed == 0, f"{page.name}: {failed} of {tried} examples failed"
        attempted += tried
    assert attempted > 20


def test_the_program_of_someone_who_knows_pytorch_runs(tmp_path: Path) -> None:
    """docs/start/gated.py as it stands; `make lint` checks its types."""
    program = ROOT / "docs" / "start" / "gated.py"
    assert len([line for line in program.read_text().splitlines() if line.strip()]) <= 30
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.1
    assert (tmp_path / "gated.safetensors").is_file()


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0, f"{name}: {failed} of {tried} examples failed"


def test_links_between_pages_exist() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_the_number_of_operations_is_said_truly() -> None:
    """As a figure, so that it is found; "all operations" says no number."""
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    said = [n for page in pages for n in re.findall(r"(\S+) differentiable operations", page.read_text())]
    measured = re.compile("<!-- speed: begin -->.*<!-- speed: end -->", re.DOTALL)  # names benchmarks
    said += re.findall(r"(?!all)\b([\w-]+) operations", measured.sub("", (ROOT / "README.md").read_text()))
    numbers = [n for n in said if n != "differentiable"]
    assert len(numbers) >= 3 and set(numbers) == {str(len(cr.ops.all_ops()))}


def test_the_path_leads_from_page_to_page() -> None:
    """Each step of docs/start/path.md begins with links to the steps around it, and the code it names is there."""
    path = ROOT / "docs" / "start" / "path.md"
    text = path.read_text(encoding="utf-8")
    steps = [
        (path.parent / link).resolve()
        for link in re.findall(r"^\d+\. \*\*\[.+?\]\((.+?)\)", text, re.MULTILINE)
    ]
    assert len(steps) > 10
    for number, page in enumerate(steps, 1):
        line = page.read_text(encoding="utf-8").splitlines()[2]
        assert line.startswith(f"*Step {number} of {len(steps)} on "), f"{page.name}: {line}"
        links = [(page.parent / link).resolve() for link in re.findall(r"\]\((.+?)\)", line)]
        neighbors = [
            steps[number - 2] if number > 1 else path.with_name("first-model.md"),
            *steps[number : number + 1],
        ]
        assert links == [path, *neighbors], page.name
    for sources in re.findall(r"Code: (.+?)(?: ·|$)", text, re.MULTILINE):
        for name in re.findall(r"`(.+?)`", sources):
            assert (ROOT / "src" / "chainrule" / name).exists(), name


def test_every_derivation_has_its_place_on_the_path() -> None:
    folder = ROOT / "docs" / "derivations"
    listed = re.findall(r"^\w+$", (folder / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.stem for page in folder.glob("*.md") if page.stem != "index")


def test_shell_blocks_can_be_pasted() -> None:
    """Commands and what they print are in blocks of their own, and what explains a command is a comment."""
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for language, block in re.findall(
            r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
        ):
            commands = [line for line in block.splitlines() if re.match(r"\$ |(chainrule|make|git) ", line)]
            assert not commands or language in ("sh", "python"), (
                f"{page.name}: {commands[0]} is not in a block `sh`"
            )
            lines = re.sub(r"\\\n\s*", "", block).splitlines() if language == "sh" else []
            for line in lines:
                assert not re.search(r"^\$ |<\w|\S  +[^#\s]", line.split("#")[0]), f"{page.name}: {line}"
                shlex.split(line, comments=True)


def test_the_readme_shows_every_kind_of_command() -> None:
    """The first word of each has a line, and the options of that line are read as the program reads them."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    shown = [words[1:] for words in lines if words[0] == "chainrule"]
    kinds = {name.split()[0] for name in COMMANDS} - {"demo"}  # which the page begins with
    assert not kinds - {words[0] for words in shown}
    for words in shown:
        name = next(name for n in (2, 1) if (name := " ".join(words[:n])) in COMMANDS)
        file, colon, kind = COMMANDS[name][0].partition(":")
        module = importlib.import_module(f"chainrule.cli.commands.{file}")
        rest = words[len(name.split()) :]
        command = module.command(kind, rest) if colon else module.Command
        read(command, options_of(command), rest)


PUBLIC = [
    "Tensor", "no_grad", "backend", "gradcheck", "seed", "set_threads", "ChainruleError",
    "ops", "nn", "optim", "models.GPT", "models.GPTConfig", "models.Llama", "models.Seq2Seq",
    "generate.Decoder", "generate.Translation", "scalar.Value",
]  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    thing = cr
    for part in name.split("."):
        thing = getattr(thing, part)
    assert thing.__doc__ and len(thing.__doc__.strip()) > 20


def test_the_path_of_a_token_names_functions_that_are_there() -> None:
    """The table of "One token, from file to checkpoint": each function in its file, fewer than sixty of them."""
    page = (ROOT / "docs" / "understand" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("## One token, from file to checkpoint")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| `(.+?)` \|", table, re.MULTILINE)
    functions = [(name, file) for names, file in rows for name in re.findall(r"`([\w.]+)`", names)]
    assert 40 < len(set(functions)) < 60
    for name, file in functions:
        path = ROOT / "src" / "chainrule" / file
        texts = [
            each.read_text(encoding="utf-8") for each in (path.rglob("*.py") if path.is_dir() else [path])
        ]
        *kind, function = name.split(".")
        holders = [
            text for text in texts if not kind or f"class {kind[0]}(" in text or f"class {kind[0]}:" in text
        ]
        assert any(re.search(rf"^ *def {function}\(", text, re.MULTILINE) for text in holders), (
            f"{file}: {name}"
        )
