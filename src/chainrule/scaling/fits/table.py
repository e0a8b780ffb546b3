"""Runs to fit a law to: parameters, tokens, compute and loss of each."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from chainrule.data.read.tabular.dialect import SEPARATORS
from chainrule.errors import DataError
from chainrule.scaling.laws.joint import FLOPS
from chainrule.scaling.laws.power import Floats
from chainrule.suggest import hinted

QUANTITIES = ("params", "tokens", "flops")
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Runs:
    """One entry per run. Of parameters, tokens and compute two give the third, by C = 6 N D."""

    params: Floats
    tokens: Floats
    flops: Floats
    loss: Floats
    dropped: tuple[str, ...] = field(default=())
    """What was left out, and why"""

    @classmethod
    def of(
        cls,
        loss: npt.ArrayLike,
        params: npt.ArrayLike | None = None,
        tokens: npt.ArrayLike | None = None,
        flops: npt.ArrayLike | None = None,
    ) -> Self:
        """What is not given follows from the rest, or is unknown (nan)."""
        losses = np.asarray(loss, float)
        given = {"params": params, "tokens": tokens, "flops": flops}
        N, D, C = (
            np.full(losses.shape, np.nan) if given[name] is None else np.asarray(given[name], float)
            for name in QUANTITIES
        )
        if tokens is None:
            D = C / (FLOPS * N)
        if flops is None:
            C = FLOPS * N * D
        if params is None:
            N = C / (FLOPS * D)
        arrays: dict[str, Any] = {"params": N, "tokens": D, "flops": C, "loss": losses}
        for name, array in arrays.items():
            if array.shape != losses.shape or array.ndim != 1:
                raise DataError(f"runs: {name} of shape {array.shape}, loss {losses.shape} (must be as many)")
        for name in ("loss", *(name for name in QUANTITIES if given[name] is not None)):
            wrong = ~(np.isfinite(arrays[name]) & (arrays[name] > 0))
            if wrong.any():
                place = int(wrong.argmax())
                value = arrays[name][place]
                raise DataError(f"runs: {name} of run {place + 1} is {value:g} (must be a positive number)")
        return cls(**arrays)

    @classmethod
    def read(cls, path: str | Path, columns: Mapping[str, str], where: Mapping[str, str] = NOTHING) -> Self:
        """From a table with a header; `columns` names those of loss and of params, tokens, flops

        Of all rows those in which the columns of `where` hold its values.
        """
        rows, header = _rows(Path(path))
        for what, name in [*columns.items(), *((f"where {name}", name) for name in where)]:
            if name not in header:
                listed = ", ".join(header)
                raise DataError(
                    f"{path}: has no column {name!r} for {what} ({hinted(f'must be one of {listed}', name, header)})"
                )
            if header.count(name) > 1:
                rule = "must be once: give one of them another name"
                raise DataError(f"{path}: column {name!r} is there {header.count(name)} times ({rule})")
        dropped: list[str] = []
        values: dict[str, list[float]] = {what: [] for what in columns}
        for number, row in rows:
            if any(row[header.index(name)].strip() != value for name, value in where.items()):
                continue
            texts = {what: row[header.index(name)].strip() for what, name in columns.items()}
            if empty := [columns[what] for what, text in texts.items() if not text]:
                dropped.append(f"line {number}: {', '.join(empty)} empty")
                continue
            for what, text in texts.items():
                values[what].append(_number(path, number, columns[what], text))
        if not values["loss"]:
            chosen = "".join(f", {name} equal to {value}" for name, value in where.items())
            rule = f"must have a row with numbers in {', '.join(columns.values())}{chosen}"
            raise DataError(f"{path}: no run in it ({rule})")
        found = cls.of(**{what: np.array(column) for what, column in values.items()})
        return cls(**{f.name: getattr(found, f.name) for f in fields(cls)} | {"dropped": tuple(dropped)})

    def __len__(self) -> int:
        return len(self.loss)

    def take(self, rows: Any) -> Self:
        """Some of the runs, by number or by a mask."""
        arrays = {name: getattr(self, name)[rows] for name in (*QUANTITIES, "loss")}
        return type(self)(**arrays, dropped=self.dropped)

    def known(self, *names: str) -> None:
        """Refuse a fit that needs a quantity which is not known."""
        for name in names:
            if not np.isfinite(getattr(self, name)).all():
                raise DataError(
                    f"fit: {name} are not known (must be given, or two of {', '.join(QUANTITIES)})"
                )

    def without_highest(self, k: int) -> Self:
        """Without the k runs of the highest loss: small models that were not trained long enough to count."""
        if not 0 <= k < len(self):
            raise DataError(f"fit: {k} runs to drop of {len(self)} (must be from 0 to {len(self) - 1})")
        if not k:
            return self
        order = np.argsort(self.loss, kind="stable")
        kept = self.take(np.sort(order[: len(self) - k]))
        said = f"the {k} highest of {len(self)} losses, {self.loss[order[-k]]:.4g} and above"
        return type(self)(
            **{name: getattr(kept, name) for name in (*QUANTITIES, "loss")}, dropped=(*self.dropped, said)
        )


def header(path: str | Path) -> list[str]:
    """The names of the columns of a table"""
    return _rows(Path(path))[1]


def _rows(path: Path) -> tuple[list[tuple[int, list[str]]], list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not text in UTF-8 (must be a CSV with a header)") from error
    lines = text.splitlines()
    if not lines:
        raise DataError(f"{path}: is empty (must be a CSV with a header)")
    reader = csv.reader(lines, delimiter=max(SEPARATORS, key=lines[0].count))
    header = [name.strip() for name in next(reader)]
    rows = []
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise DataError(
                f"{path}, line {reader.line_num}: {len(row)} columns, the header has {len(header)} (must be as many)"
            )
        rows.append((reader.line_num, row))
    return rows, header


def _number(path: str | Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        rule = "must be a positive number" + (", with a point and no commas" if "," in text else "")
        raise DataError(f"{path}, line {line}: {column} is {text!r} ({rule})")
    return value
