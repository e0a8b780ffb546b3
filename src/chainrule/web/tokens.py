"""What the token views show: a text in the pieces of every tokenizer, BPE merge by merge, a loss mask."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from chainrule import data, text
from chainrule.errors import ChainruleError, ConfigError
from chainrule.tasks.mask_view import mask_view
from chainrule.text import Tokenizer
from chainrule.text.chat.formats import ROLES
from chainrule.web.jobs import Tell, silent
from chainrule.web.kept import Kept

# What is shown: its name, what it is, and the call that learns it from a corpus.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("Characters", "Each character is a token.", "CharTokenizer.train(corpus)"),
    ("Byte pairs", "Merges of frequent pairs of bytes, as in GPT.", "BPETokenizer.train(corpus, size)"),
    ("Unigram", "Likeliest pieces, as in SentencePiece and T5.", "UnigramTokenizer.train(corpus, size)"),
    ("Word pieces", "Pieces inside words, as in BERT.", "WordPieceTokenizer.train(corpus, size)"),
    ("Textbook BPE", "Merges of characters inside words.", "TextbookBPETokenizer.train(corpus, size)"),
    ("Words", "The most frequent words.", "WordTokenizer.train(corpus, size)"),
    (
        "Lowercase words",
        "Frequent words in lower case, for word vectors.",
        "LowercaseWordTokenizer.train(corpus, max_size=size)",
    ),
)
LEARN: dict[str, Callable[[str, int], Tokenizer]] = {
    "Characters": lambda corpus, size: text.CharTokenizer.train(corpus),
    "Byte pairs": text.BPETokenizer.train,
    "Unigram": text.UnigramTokenizer.train,
    "Word pieces": text.WordPieceTokenizer.train,
    "Textbook BPE": text.TextbookBPETokenizer.train,
    "Words": text.WordTokenizer.train,
    "Lowercase words": lambda corpus, size: text.LowercaseWordTokenizer.train(corpus, max_size=size),
}
CORPUS = data.corpora.DEFAULT
SIZES = (300, 8000)
LONGEST = 4000  # characters that are shown in pieces
MOST_MERGES = 200
TALK = """\
system: You answer in one sentence.
user: What is the capital of France?
assistant: The capital of France is Paris.
user: And of Italy?
assistant: It is Rome."""
EXAMPLE = "The unhappiest tokenizers can't spell naïve words 😀, but print(x[42]) is easy."


_TRAINED: Kept[Tokenizer] = Kept(200)


def trained(name: str, size: int, tell: Tell = silent) -> Tokenizer:
    """A tokenizer of KINDS, learned from the default corpus."""
    return _TRAINED.of((name, size), lambda: LEARN[name](data.load(CORPUS).text, size), tell)


def pieces(given: str, size: int, tell: Tell) -> dict[str, Any]:
    """A text in the pieces of every tokenizer with a vocabulary of `size` (characters and words have their own)."""
    _check_size(size)
    _check_length(given, LONGEST)
    made = {}
    for i, (name, _, _) in enumerate(KINDS):
        tell(f"learning: {name.lower()}", i / len(KINDS))
        made[name] = trained(name, size, tell)
    return {
        "corpus": CORPUS,
        "text": given,
        "tokenizers": [
            {"name": name, "about": about, "call": call} | _shown(made[name], given)
            for name, about, call in KINDS
        ],
        "python": _program(given, size),
    }


def merges(given: str, tell: Tell) -> dict[str, Any]:
    """The merges that textbook BPE makes on the words of a text, with the words after each."""
    _check_length(given, LONGEST)
    if not given.strip():
        raise ConfigError("tokens: no words to merge (write some, such as: low lower lowest)")
    words = given.split()
    from chainrule.text.textbook_bpe import trace
    from chainrule.text.training.textbook_bpe import count_words

    spelled = count_words(words)
    steps = list(islice(trace(words), MOST_MERGES))
    return {
        "start": [[*word] for word in spelled],
        "counts": [*spelled.values()],
        "alphabet": len({piece for word in spelled for piece in word}),
        "steps": [
            {"pair": list(step.pair), "count": step.count, "words": step.words, "vocabulary": step.vocab_size}
            for step in steps
        ],
        "python": "\n".join(
            [
                "from chainrule.text.textbook_bpe import trace",
                "",
                f"steps = list(trace({words!r}, {len(steps)}))",
                "for step in steps:",
                "    print(step.pair, step.count, step.words)",
                "",
            ]
        ),
    }


def masked(given: str, size: int, window: int | None, tell: Tell) -> dict[str, Any]:
    """A conversation as a training reads it: which tokens are learned, and why."""
    _check_size(size)
    _check_length(given, LONGEST)
    if window is not None and not 1 <= window <= LONGEST:
        raise ConfigError(f"tokens: window is {window} (must be from 1 to {LONGEST:,})")
    turns = conversation(given)
    tell("learning the tokenizer", None)
    tokenizer = trained("Byte pairs", size, tell)
    view = mask_view(tokenizer, [data.Conversation(tuple(turns))], window)
    shown = view[0]
    return {
        "tokens": [token._asdict() for token in shown.tokens],
        "trained": sum(token.trained for token in shown.tokens),
        "text": shown.trained_text,
        "lost": shown.lost,
        "window": view.window,
        "python": "\n".join(
            [
                "import chainrule as cr",
                "from chainrule.tasks.mask_view import mask_view",
                "",
                f"tokenizer = cr.text.BPETokenizer.train(cr.data.load({CORPUS!r}).text, {size})",
                f"turns = {[tuple(turn) for turn in turns]!r}",
                "conversation = cr.data.Conversation(tuple(cr.data.Turn(*turn) for turn in turns))",
                f"view = mask_view(tokenizer, [conversation], {window!r})",
                "print(view[0].trained_text)",
                "",
            ]
        ),
    }


def conversation(given: str) -> list[data.Turn]:
    """Messages from lines such as `user: Why?`; a line without a role goes on with the message before."""
    turns: list[data.Turn] = []
    for line in given.splitlines():
        role, colon, content = line.partition(":")
        if colon and role.strip().lower() in ROLES:
            turns.append(data.Turn(role.strip().lower(), content.strip()))
        elif turns and line.strip():
            turns[-1] = turns[-1]._replace(content=f"{turns[-1].content}\n{line.strip()}")
        elif line.strip():
            raise ConfigError(
                f"conversation: {line[:40]!r} (must begin with one of {', '.join(ROLES)} and a colon)"
            )
    if not turns or turns[-1].role != "assistant":
        raise ConfigError("conversation: must end with an answer, a line that begins with assistant:")
    return turns


def _shown(tokenizer: Tokenizer, given: str) -> dict[str, Any]:
    try:
        ids = tokenizer.encode(given).tolist()
        back = tokenizer.decode(ids)
    except ChainruleError as error:
        return {"size": tokenizer.vocab_size, "error": str(error), "ids": [], "pieces": [], "lossless": False}
    found = [tokenizer.piece(id) for id in ids]
    return {
        "size": tokenizer.vocab_size,
        "error": "",
        "ids": ids,
        "pieces": found,
        "lossless": back == given,
        "decoded": back,
        "per_token": len(given) / len(ids) if ids else None,
    }


def _check_size(size: int) -> None:
    low, high = SIZES
    if not low <= size <= high:
        raise ConfigError(f"tokens: size is {size} (must be from {low} to {high})")


def _check_length(given: str, most: int) -> None:
    if len(given) > most:
        raise ConfigError(f"tokens: {len(given):,} characters (at most {most:,} are shown)")


def _program(given: str, size: int) -> str:
    lines = [f"    {name!r}: cr.text.{call}," for name, _, call in KINDS]
    return "\n".join(
        [
            "import chainrule as cr",
            "",
            f"corpus, size = cr.data.load({CORPUS!r}).text, {size}",
            "tokenizers = {",
            *lines,
            "}",
            f"text = {given!r}",
            "pieces = {}",
            "for name, tokenizer in tokenizers.items():",
            "    try:",
            "        pieces[name] = [tokenizer.piece(id) for id in tokenizer.encode(text).tolist()]",
            "    except cr.DataError as error:",
            "        pieces[name] = error",
            "    print(name, pieces[name])",
            "",
        ]
    )
