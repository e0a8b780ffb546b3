"""Corpora: texts inside every CPython install, files under $CHAINRULE_DATA or downloaded, and any file by path.

The built-in corpora need no download. They depend on the Python version, so each records it with its SHA-256. Their
documents are ordered by the hash of their names: the order is the same everywhere, and the last tenth of the text, on
which models are validated, is a fair sample of the whole.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
import sysconfig
import tokenize
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from chainrule.columns import CHOSEN, Columns
from chainrule.data.downloads import NAMED, cache_folder
from chainrule.data.read.files import read_text
from chainrule.data.read.tabular.columns import TEXTS, no_table
from chainrule.data.read.tabular.reading import Reading, read_rows
from chainrule.data.read.tabular.table import is_table
from chainrule.errors import DataError
from chainrule.suggest import did_you_mean

DEFAULT = "pydoc"
BETWEEN = "\n\n"  # the documents of a corpus
VERSION = f"CPython {platform.python_version()}"


@dataclass(frozen=True)
class Corpus:
    """A text with the name under which `load` finds it, its version and hash."""

    name: str
    version: str  # "CPython 3.11.7", or "file"
    text: str = field(repr=False)
    reading: Reading | None = field(default=None, repr=False, compare=False)
    """How a table was read."""

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the text in UTF-8."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def load(name: str | os.PathLike[str] = DEFAULT, columns: Columns = CHOSEN) -> Corpus:
    """A corpus by name (`available()` lists them) or by the path of a UTF-8 file; of a table the texts of its rows.

    `columns` says which columns of a table hold the text.

    >>> import chainrule as cr
    >>> len(cr.data.load("pydoc").text) > 300_000
    True
    """
    if isinstance(name, str) and name in BUILT_IN:
        no_table(name, columns)
        return Corpus(name, VERSION, BUILT_IN[name].text())
    path = find(name)
    if path.is_file() and is_table(path):
        rows, reading = read_rows(path, TEXTS, columns, copies=True)
        text = BETWEEN.join(text for (text,) in rows) + "\n"
        return Corpus(str(path.absolute()), "file", text, reading)
    no_table(name, columns)
    return Corpus(str(path.absolute()), "file", read_text(path))


def find(name: str | os.PathLike[str]) -> Path:
    """The file of a corpus: a path, or a name in $CHAINRULE_DATA or the cache."""
    path = Path(name)
    if not path.exists() and len(path.parts) == 1:
        found = _named_files().get(path.name.removesuffix(".txt"))
        if found is not None:
            return found
        if path.name in BUILT_IN:
            about = BUILT_IN[path.name].about
            raise DataError(
                f"{path.name}: a built-in text, {about} (must be a file of what this model learns from)"
            )
        if not path.suffix:
            raise DataError(f"corpus {str(name)!r}: no such corpus or file ({_suggestion(path.name)})")
    return path


def available() -> dict[str, str]:
    """All corpora that `load` finds by name, with a line about each."""
    return {name: built_in.about for name, built_in in BUILT_IN.items()} | {
        name: f"{path} ({path.stat().st_size / 1e6:.2f} MB)" for name, path in _named_files().items()
    }


def _pydoc() -> Iterator[str]:
    """The topics of Python's own help(): prose and code.

    Topics quote sections of each other, about a fifth of the text. Each paragraph is kept once; otherwise much of the
    validation text would occur in training.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise DataError("corpus 'pydoc': this Python has no pydoc_data (take 'stdlib' or a file)") from error
    seen: set[str] = set()
    for name in _by_hash(topics):
        paragraphs = dict.fromkeys(re.split(r"\n\n+", topics[name].strip("\n")))
        new = [paragraph for paragraph in paragraphs if paragraph not in seen]
        seen.update(new)
        yield "\n\n".join(new)


def _stdlib() -> Iterator[str]:
    """The sources of the standard library, without its tests."""
    return (source.removesuffix("\n") for _, source in _sources())


@cache
def _identifiers() -> tuple[str, ...]:
    """Every name used in the standard library, one per line."""
    names: set[str] = set()
    for module, source in _sources():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes such as "\d" in old sources
            stack = [compile(source, module, "exec", dont_inherit=True)]
        while stack:
            code = stack.pop()
            names.update(code.co_names, code.co_varnames, (code.co_name,))
            stack.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return tuple(_by_hash(name for name in names if name.isidentifier()))


@cache  # half a megabyte, and seconds to gather
def _docstrings() -> tuple[str, ...]:
    """Public functions of the standard library: `def name(arguments):` and the first paragraph of the docstring."""
    pairs = set()
    for _, source in _sources():
        for function in _functions(ast.parse(source).body):
            summary = (ast.get_docstring(function) or "").split("\n\n")[0]
            if summary and not function.name.startswith("_"):
                pairs.add((f"def {function.name}({ast.unparse(function.args)}):", " ".join(summary.split())))
    # Several summaries may have one head.
    ordered = sorted(pairs, key=lambda pair: (_digest(pair[0]), pair[1]))
    return tuple(f'{head}\n    """{summary}"""' for head, summary in ordered)


@dataclass(frozen=True)
class BuiltIn:
    """A built-in corpus: a line about it, its documents, what it cannot show, and what is between its documents."""

    about: str
    make: Callable[[], Iterable[str]]
    limits: str
    between: str = BETWEEN
    license: str = "PSF-2.0"  # of Python, in which all of them are

    def documents(self) -> Iterator[str]:
        return (document for document in self.make() if document)

    def text(self) -> str:
        return self.between.join(self.documents()) + "\n"


BUILT_IN = {
    "pydoc": BuiltIn(
        "the topics of Python's help(), prose and code, 0.4 MB", _pydoc,
        "technical English of one project, small; it changes with the version of Python",
    ),
    "stdlib": BuiltIn(
        "sources of Python's standard library, 11 MB", _stdlib,
        "one language and one style; its English is that of comments; it changes with the version of Python",
    ),
    "identifiers": BuiltIn(
        "names used in the standard library, 25 thousand", _identifiers,
        "names of a program, not of people; parts of words are joined by underscores and capitals",
        between="\n",
    ),
    "docstrings": BuiltIn(
        "functions of the standard library with a summary each, 5 thousand", _docstrings,
        "the summary is what the author wrote, not what readers agreed on; many are one short sentence",
    ),
}  # fmt: skip


def _sources() -> Iterator[tuple[str, str]]:
    """(module path, source) of the standard library."""
    root = Path(sysconfig.get_path("stdlib"))
    left_out = {"site-packages", "dist-packages", "test", "tests", "idle_test", "pydoc_data"}
    names: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in left_out]
        inside = Path(folder).relative_to(root)
        names += [(inside / name).as_posix() for name in files if name.endswith(".py")]
    if not names:
        raise DataError(f"standard library: no sources in {root} (take 'pydoc' or a file)")
    for name in _by_hash(names):
        with tokenize.open(root / name) as file:  # respects a coding line
            yield name, file.read()


def _functions(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _by_hash(names: Iterable[str]) -> list[str]:
    return sorted(names, key=_digest)


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _named_files() -> dict[str, Path]:
    """NAME -> NAME.txt in $CHAINRULE_DATA, in a folder there, or in the cache."""
    paths: list[Path] = []
    if folder := os.environ.get("CHAINRULE_DATA"):
        if not Path(folder).is_dir():
            raise DataError(f"CHAINRULE_DATA: {folder} is not a directory (must be a folder of .txt files)")
        paths = sorted([*Path(folder).glob("*.txt"), *Path(folder).glob("*/*.txt")])
    paths += [path for name in NAMED if (path := cache_folder() / f"{name}.txt").is_file()]
    found: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: path.stem):  # stable: for equal names the first path wins
        found.setdefault(path.stem, path)
    return found


def _suggestion(name: str) -> str:
    if name in NAMED:
        return f"fetch it with: chainrule data get {name}"
    known = list(available())
    hint = did_you_mean(name, known)
    where = "" if os.environ.get("CHAINRULE_DATA") else "; CHAINRULE_DATA can name a folder of .txt files"
    return (f"{hint} " if hint else "") + f"there are {', '.join(known)}{where}"
