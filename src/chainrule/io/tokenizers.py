"""Loading and saving a tokenizer in any supported format.

    tokenizer.json                 Hugging Face's: {"model": {"type": "BPE", ...}, ...}
    our JSON                       {"type": "bpe", ...}, as `to_dict` describes it
    encoder.json + vocab.bpe       GPT-2's; also under the names vocab.json + merges.txt
    NAME.tiktoken                  tiktoken's ranks
    vocab.txt                      BERT's, one token a line
    NAME.model, NAME.spm           SentencePiece's; or ranks, as Llama 3's
    NAME.gguf                      llama.cpp's, of which only the tokenizer is read
    tokenizer.bin, tok512.bin      llama2.c's
    a directory                    with one of these, or a run, whose newest checkpoint has one

Loading runs no code and allocates no more than the file justifies. Unsupported options of a file are refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chainrule.errors import ChainruleError, DataError, FormatError, kind_of
from chainrule.files import check_regular, write
from chainrule.io import llama2c
from chainrule.io.bpe_files import holds_ranks, read_gpt2, read_tiktoken
from chainrule.io.files import naming, read_bytes
from chainrule.io.gguf.file import read_settings
from chainrule.io.gguf.tokenizers import read_tokenizer
from chainrule.io.hf.tokenizers import bpe, chars, pipeline, sentencepiece_bpe, unigram, wordpiece
from chainrule.io.hf.tokenizers.parts import OtherParts
from chainrule.io.sentencepiece import read_sentencepiece
from chainrule.io.settings import Settings
from chainrule.text import Tokenizer, from_dict

# By the type of the model: modules with KIND, read and write.
HUGGING_FACE = {"BPE": bpe, "WordPiece": wordpiece, "Unigram": unigram}
OTHER_BPE = (chars, sentencepiece_bpe)  # BPE models too; `matches` tells them apart
MERGES_OF = {"encoder.json": "vocab.bpe", "vocab.json": "merges.txt"}
NAMES = ("tokenizer.json", *MERGES_OF, "vocab.txt")
ENDINGS = ("*.tiktoken", "*.model", "tok*.bin", "*.gguf")


def load_tokenizer(path: str | Path, *, pattern: str | None = None) -> Tokenizer:
    """The tokenizer in a file or directory of any format this module's docstring lists.

    `pattern` is how a file of tiktoken's ranks splits words, which it does not say; other files say it themselves.
    """
    path = Path(path)
    if path.is_dir():
        path = _find(path)
    if not path.exists():
        raise DataError(f"{path}: no such file (must be a tokenizer's file, or a run; nothing is fetched)")
    check_regular(path)
    with naming(path):
        try:
            return _read(path, pattern)
        except ChainruleError:
            raise
        except UnicodeDecodeError as error:
            raise FormatError(f"byte {error.start} is not UTF-8 (must be a tokenizer's file)") from error
        except json.JSONDecodeError as error:
            raise FormatError(f"line {error.lineno} is not JSON ({error.msg})") from error
        except (OverflowError, ValueError) as error:  # a number with thousands of digits
            raise FormatError(str(error)) from error
        except RecursionError as error:
            raise FormatError("nested too deeply (must be a tokenizer's JSON)") from error


def save_tokenizer(tokenizer: Tokenizer, path: str | Path, *, hugging_face: bool = False) -> None:
    """Write our JSON, or Hugging Face's `tokenizer.json`."""
    description = to_hugging_face(tokenizer) if hugging_face else tokenizer.to_dict()
    text = json.dumps(description, ensure_ascii=False, indent=1)
    write(Path(path), text.encode("utf-8", "surrogatepass") + b"\n")


def to_hugging_face(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of Hugging Face's `tokenizer.json`."""
    modules: list[Any] = [*HUGGING_FACE.values(), *OTHER_BPE, pipeline]
    for module in modules:
        if isinstance(tokenizer, module.KIND):
            return dict(module.write(tokenizer))
    kinds = ", ".join(module.KIND.kind for module in modules)
    raise FormatError(f"tokenizer.json: cannot hold a {tokenizer.kind} tokenizer (must be one of {kinds})")


def _read(path: Path, pattern: str | None) -> Tokenizer:
    if path.suffix == ".tiktoken" or (path.suffix == ".model" and holds_ranks(path)):
        return read_tiktoken(path, pattern=pattern)
    if pattern is not None:
        raise FormatError("says itself how it splits words (a pattern is for tiktoken's files only)")
    if path.suffix in (".model", ".spm"):
        return read_sentencepiece(path)
    if path.suffix == ".gguf":
        return read_tokenizer(Settings(read_settings(path)))
    if path.suffix == ".bin":
        return llama2c.read_tokenizer(path)
    for encoder, merges in MERGES_OF.items():
        if path.name in (encoder, merges):
            return read_gpt2(path.with_name(encoder), path.with_name(merges))
    content = read_bytes(path)
    if path.suffix == ".txt":
        return wordpiece.read_vocab_txt(content, config=path.with_name("tokenizer_config.json"))
    description = json.loads(content.decode("utf-8", "surrogatepass"))
    if not isinstance(description, dict):
        raise FormatError(f"holds {kind_of(description)} (must be an object that describes a tokenizer)")
    return described_tokenizer(description)


def described_tokenizer(description: dict[str, Any]) -> Tokenizer:
    """The tokenizer described by a `tokenizer.json`, Hugging Face's or our own."""
    model = description.get("model")
    if "type" in description or not isinstance(model, dict):  # only our own says its type
        return from_dict(description)
    kind = model.get("type")
    if not isinstance(kind, str) or kind not in HUGGING_FACE:
        raise FormatError(f"model type {kind!r} (must be one of {', '.join(HUGGING_FACE)})")
    other = [module for module in OTHER_BPE if kind == "BPE" and module.matches(description)]
    module: Any = other[0] if other else HUGGING_FACE[kind]
    try:
        return module.read(description)
    except OtherParts:  # no class of its own
        return pipeline.read(description)


def find_tokenizer(directory: Path) -> Path | None:
    """The tokenizer file of a directory; None if it holds none."""
    found = [directory / name for name in NAMES if (directory / name).is_file()]
    for ending in ENDINGS:
        found += sorted(directory.glob(ending))
    return found[0] if found else None


def _find(directory: Path) -> Path:
    """The tokenizer file of `directory` or, if it is a run, of its newest checkpoint."""
    for place in [directory, *_newest_checkpoint(directory)]:
        if (found := find_tokenizer(place)) is not None:
            return found
    raise DataError(
        f"{directory}: holds no tokenizer (must have {', '.join(NAMES)} or {', '.join(ENDINGS)}, or be a run)"
    )


def _newest_checkpoint(run: Path) -> list[Path]:
    """The newest RUN/checkpoints/step_N in a list, or an empty list."""
    found = [path for path in run.glob("checkpoints/step_*") if path.name[5:].isdecimal()]
    return sorted(found, key=lambda path: int(path.name[5:]))[-1:]
