"""Named corpora for download, each with its source and pinned SHA-256.

`get` is the only function of the package that opens a connection; only `chainrule data get` calls it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chainrule.errors import DataError
from chainrule.files import new_file
from chainrule.suggest import did_you_mean

TIMEOUT = 30.0  # seconds without an answer
CHUNK = 1 << 16


@dataclass(frozen=True)
class Download:
    """The source of a corpus, and how to verify it."""

    about: str
    license: str
    url: str
    bytes: int
    sha256: str
    limits: str
    by: str = "file"  # a document is the file, or each line


GITHUB = "https://raw.githubusercontent.com/"  # then the repository, a commit and a path
# fmt: off
NAMED = {
    "names": Download("32,033 first names, one per line", "MIT",
        GITHUB + "karpathy/makemore/988aa59e4d8fefa526d06f3b453ad116258398d4/names.txt",
        228145, "0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d",
        "the most frequent first names of the United States in 2018, in 26 letters: no accents", by="line"),
    "tinyshakespeare": Download("speeches from Shakespeare's plays", "public domain",
        GITHUB + "karpathy/char-rnn/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
        1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        "one author of about 1600, plays only; a small part of his works, and the split is by place, not by play"),
    "wikitext2_valid": Download("the validation part of WikiText-2, split into words", "CC BY-SA 3.0",
        GITHUB + "pytorch/examples/77f55b912142e11fcfdf5b530231fb9c52f181e8/"
        "word_language_model/data/wikitext-2/valid.txt",
        1121681, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
        "60 articles of Wikipedia; rare words are replaced by <unk>, and punctuation is set apart"),
    "questions-words": Download("19,544 analogies between words", "Apache-2.0",
        GITHUB + "tmikolov/word2vec/20c129af10659f7c50e86e3be406df663beff438/questions-words.txt",
        603955, "8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36",
        "14 kinds chosen by its authors, five of facts and nine of English grammar; each has one answer", by="line"),
    "EN-WS-353-ALL": Download("WordSim-353: how alike people find 353 pairs of words", "research",
        GITHUB + "mfaruqui/eval-word-vectors/94b3dd9fdbac7ed08dbee7179cd5ee464acf0594/"
        "data/word-sim/EN-WS-353-ALL.txt",
        7405, "ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c",
        "judged by 13 to 16 people, for whom belonging together was being alike; English of about 2000", by="line"),
}
# fmt: on


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/chainrule, or ~/.cache/chainrule; need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "chainrule"


def get(name: str, progress: Callable[[int], object] = lambda size: None) -> Path:
    """The cached file of a named corpus, downloaded if missing; `progress` is called with the size of each chunk."""
    if name not in NAMED:
        known, hint = f"there are {', '.join(NAMED)}", did_you_mean(name, NAMED)
        raise DataError(f"corpus {name!r}: cannot be fetched ({f'{hint} {known}' if hint else known})")
    wanted, path = NAMED[name], cache_folder() / f"{name}.txt"
    if path.is_file():
        if hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256:
            return path
        path.unlink()  # damaged
    state = hashlib.sha256()
    with new_file(path) as file:
        for chunk in _fetch(name, wanted):
            state.update(chunk)
            file.write(chunk)
            progress(len(chunk))
        if (found := state.hexdigest()) != wanted.sha256:
            rule = f"must be {wanted.sha256[:12]}…; nothing was kept"
            raise DataError(f"corpus {name!r}: {wanted.url} has SHA-256 {found[:12]}… ({rule})")
    return path


def _fetch(name: str, wanted: Download) -> Iterator[bytes]:
    """The content of the URL in chunks, never more than the pinned size."""
    from http.client import HTTPException  # imported here: nothing else uses the network
    from urllib.request import urlopen

    left = wanted.bytes
    try:
        with urlopen(wanted.url, timeout=TIMEOUT) as answer:
            while chunk := answer.read(min(CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    rule = f"must have {wanted.bytes:,}; nothing was kept"
                    raise DataError(f"corpus {name!r}: {wanted.url} has more bytes than it should ({rule})")
                yield chunk
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        rule = f"or put the file as {name}.txt into the folder CHAINRULE_DATA"
        raise DataError(f"corpus {name!r}: cannot be fetched from {wanted.url} ({reason}; {rule})") from error
