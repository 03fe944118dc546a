"""Sources and plans as CSV: RFC 4180, UTF-8, the first line names the columns."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.commands.sources.columns import (
    BadSources,
    FileColumns,
    UnusableFile,
    check_header,
    refuse,
)

#: Rows that are turned into columns at once: texts of numbers are not kept for longer.
_ROWS = 50_000

_TRUTH = {"true": True, "false": False, "1": True, "0": False}

#: The rows of a piece as columns by name, and the lines on which they end.
_Piece: TypeAlias = tuple[dict[str, Sequence[str]], list[int]]


def read_csv(path: Path) -> FileColumns:
    """The columns of a CSV file.

    Raises:
        OSError: as opening and reading do.
        UnusableFile: it is not UTF-8, or no CSV.
        BadSources: naming the line, the column and what is accepted.
    """
    url: list[str] = []
    host: list[str] = []
    pieces: dict[str, list[NDArray[Any]]] = {"line": []}
    for columns, lines in _pieces(path):
        url.extend(columns["url"])
        host.extend(columns.get("host", ()))
        pieces["line"].append(np.array(lines, np.int64))
        for name, read in _READ.items():
            if name in columns:
                values = _column(path, name, columns[name], lines, read)
                pieces.setdefault(name, []).append(values)
    joined = {name: np.concatenate(parts) for name, parts in pieces.items() if parts}
    return FileColumns(
        path,
        "line",
        joined.get("line", np.empty(0, np.int64)),
        url,
        joined.get("change_rate", np.empty(0)),
        joined.get("importance"),
        host or None,
        joined.get("complete_observations"),
    )


def write_csv(path: Path, columns: Mapping[str, NDArray[Any] | Sequence[Any]]) -> None:
    """Write columns of one length.

    Numbers have all their digits; an interval or a cost without end is ``inf``, a truth
    value ``true`` or ``false``.

    Raises:
        OSError: as opening and writing do.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for start in range(0, len(next(iter(columns.values()))), _ROWS):
            rows = slice(start, start + _ROWS)
            writer.writerows(zip(*(_texts(c[rows]) for c in columns.values()), strict=True))


def _texts(values: NDArray[Any] | Sequence[Any]) -> Sequence[Any]:
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype == np.bool_:
        return ["true" if value else "false" for value in values.tolist()]
    texts: list[Any] = values.tolist()
    return texts


def _pieces(path: Path) -> Iterator[_Piece]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            names = [name.strip() for name in next(reader, [])]
            if not names:
                raise BadSources(f"{path}: is empty; accepted is a line of column names and rows")
            check_header(path, names)
            for rows, lines in _rows(path, reader, len(names)):
                yield dict(zip(names, zip(*rows, strict=True), strict=True)), lines
        except csv.Error as error:
            raise UnusableFile(f"{path}: line {reader.line_num}: is no CSV ({error})") from error
        except UnicodeDecodeError:
            raise UnusableFile(f"{path}: {_undecodable(path)}") from None


def _rows(
    path: Path, reader: Iterator[list[str]], width: int
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """The rows, some at a time, with their lines; blank lines are left out."""
    rows: list[list[str]] = []
    lines: list[int] = []
    for row in reader:
        if not row:
            continue
        line = reader.line_num  # type: ignore[attr-defined]
        if len(row) != width:
            raise BadSources(f"{path}: line {line}: has {len(row)} fields; accepted are {width}")
        rows.append(row)
        lines.append(line)
        if len(rows) == _ROWS:
            yield rows, lines
            rows, lines = [], []
    if rows:
        yield rows, lines


def _numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    return np.fromiter(map(float, texts), np.float64, len(texts))


def _truths(texts: Sequence[str]) -> NDArray[np.bool_]:
    return np.array([_truth(text) for text in texts], np.bool_)


def _truth(text: str) -> bool:
    """A truth value.

    Raises:
        ValueError: if the text is none.
    """
    value = _TRUTH.get(text.strip().lower())
    if value is None:
        raise ValueError(text)
    return value


#: How a column is read, and what is accepted in it.
_READ: dict[str, tuple[Callable[[Sequence[str]], NDArray[Any]], str]] = {
    "importance": (_numbers, "a finite number of at least 0"),
    "change_rate": (_numbers, "a finite number of at least 0"),
    "complete_observations": (_truths, "true or false"),
}


def _column(
    path: Path,
    name: str,
    texts: Sequence[str],
    lines: Sequence[int],
    read: tuple[Callable[[Sequence[str]], NDArray[Any]], str],
) -> NDArray[Any]:
    parse, accepted = read
    try:
        return parse(texts)
    except ValueError:
        row = next(row for row, text in enumerate(texts) if not _parses(parse, text))
        refuse(path, f"line {lines[row]}", name, repr(texts[row]), accepted)


def _parses(parse: Callable[[Sequence[str]], NDArray[Any]], text: str) -> bool:
    try:
        parse([text])
    except ValueError:
        return False
    return True


def _undecodable(path: Path) -> str:
    """Where a file stops being UTF-8."""
    data = path.read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"line {line}: is not UTF-8"
    return "is not UTF-8"
