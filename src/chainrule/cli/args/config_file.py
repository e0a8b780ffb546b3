"""Options from a TOML file: `--config FILE`. Tables group them as one likes; their names are not read.

n_layer = 6
[training]
lr = 1e-3
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from chainrule.cli.args.familiar import option_hint
from chainrule.cli.args.options import Option
from chainrule.errors import ConfigError
from chainrule.files import regular_bytes
from chainrule.suggest import did_you_mean

CONFIG = "config"  # the field that names the file


def from_file(path: Path, options: Sequence[Option], family: str) -> dict[str, Any]:
    """The values in a file; for which family of models, it may say too."""
    found = read_settings(path)
    named = found.pop("family", family)
    if named != family:
        raise ConfigError(f"{path}: family is {named!r} (must be {family}: say train {named})")
    known = {option.name: option for option in options}
    return {name: _checked(path, name, value, known) for name, value in found.items()}


def read_settings(path: Path) -> dict[str, Any]:
    """The options in a file, by the names of their fields."""
    try:
        return dict(_flat(tomllib.loads(regular_bytes(path).decode())))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML ({error})") from error


def toml(settings: Mapping[str, Any]) -> str:
    """Settings as a file for `--config`; what is None is left out."""
    return "".join(f"{name} = {_value(value)}\n" for name, value in settings.items() if value is not None)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False)  # TOML escapes as JSON does


def _checked(path: Path, name: str, value: Any, known: Mapping[str, Option]) -> Any:
    """The value as its field holds it."""
    if name not in known:
        hint = did_you_mean(name, known) or option_hint(name, [option.flag for option in known.values()])
        raise ConfigError(f"{path}: unknown option {name!r}{hint and f' ({hint})'}")
    kind = known[name].kind
    if not kind.takes(value):
        said = _value(value) if isinstance(value, bool | int | float | str) else value
        raise ConfigError(f"{path}: {name} is {said} ({kind.toml_rule})")
    return value if isinstance(value, bool) else kind.value(f"{path}: {name}", [str(value)])


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value)
        else:
            yield name.replace("-", "_"), value
