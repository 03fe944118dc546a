"""Files of sources and plans: reading, checking and writing CSV and Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.capacities import numbered
from freshet.crawler.tally import CrawlError
from freshet.crawler.urls import origin

#: What a file must have of each source, and what it may.
REQUIRED = ("url", "change_rate")
OPTIONAL = ("importance", "host", "complete_observations")

_LONGEST_VALUE = 60


class UnusableFile(CrawlError):
    """A file that cannot be read or written; the message is one line."""


class BadSources(CrawlError):
    """A file with a wrong value; one line names row, column and accepted values."""


@dataclass(frozen=True, slots=True)
class PlanSources:
    """n sources; ``host`` are rows of ``hosts``, ``change_rate`` is per day."""

    url: Sequence[str]
    importance: NDArray[np.float64]
    change_rate: NDArray[np.float64]
    complete_observations: NDArray[np.bool_]
    host: NDArray[np.intp]
    hosts: Sequence[str]

    def __len__(self) -> int:
        return len(self.url)


@dataclass(frozen=True, slots=True)
class _FileColumns:
    """The columns of a file; missing ones are None.

    ``numbers`` tell people where to find the rows, counted in ``unit``: line, row.
    """

    path: Path
    unit: str
    numbers: NDArray[np.int64]
    url: list[str]
    change_rate: NDArray[np.float64]
    importance: NDArray[np.float64] | None = None
    host: list[str] | None = None
    complete_observations: NDArray[np.bool_] | None = None

    def refuse(self, row: int, column: str, shown: str, accepted: str) -> NoReturn:
        """Raise an error about a value."""
        refuse(self.path, f"{self.unit} {self.numbers[row]}", column, shown, accepted)


def refuse(path: Path, place: str, column: str, shown: str, accepted: str) -> NoReturn:
    """Raise an error about a value in a file, with the accepted values."""
    if len(shown) > _LONGEST_VALUE:
        shown = shown[: _LONGEST_VALUE - 1] + "…"
    raise BadSources(f"{path}: {place}: {column}: is {shown}; accepted is {accepted}")


def check_header(path: Path, names: Sequence[str]) -> None:
    """Refuse missing, unknown and repeated columns."""
    known = (*REQUIRED, *OPTIONAL)
    accepted = f"accepted are {', '.join(known)}, of which {' and '.join(REQUIRED)} are required"
    for name in names:
        if name not in known:
            raise BadSources(f"{path}: column {name!r} is not known; {accepted}")
        if names.count(name) > 1:
            raise BadSources(f"{path}: column {name!r} is there {names.count(name)} times")
    for name in REQUIRED:
        if name not in names:
            raise BadSources(f"{path}: column {name!r} is missing; {accepted}")


def checked(columns: _FileColumns) -> PlanSources:
    """Check the columns of a file and return its sources.

    Defaults: importance 1, the URL's origin as the host, incomplete observations.

    Raises:
        BadSources: naming the row, the column and the accepted values.
    """
    n = len(columns.url)
    if not n:
        raise BadSources(f"{columns.path}: has no rows; it needs one for each source")
    host, hosts = _origins(columns)
    if columns.host is not None:
        host, hosts = _named(columns, columns.host)
    _refuse_twice(columns)
    importance, complete = columns.importance, columns.complete_observations
    return PlanSources(
        url=columns.url,
        importance=np.ones(n) if importance is None else _rates(columns, "importance", importance),
        change_rate=_rates(columns, "change_rate", columns.change_rate),
        complete_observations=np.zeros(n, np.bool_) if complete is None else complete,
        host=host,
        hosts=hosts,
    )


def _rates(columns: _FileColumns, name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        columns.refuse(row, name, str(values[row]), "a finite number of at least 0")
    return values


def _origins(columns: _FileColumns) -> tuple[NDArray[np.intp], list[str]]:
    """Return the origin of each URL, which proves that it is a URL."""
    known: dict[str, str] = {}
    names = []
    for row, url in enumerate(columns.url):
        # URLs are many, origins few: most are told by the text before the path.
        head = "/".join(url.split("/", 3)[:3])
        name = known.get(head) or _origin(url)
        if name is None or not url.isprintable():
            columns.refuse(row, "url", repr(url), "an absolute http or https URL")
        if not head.endswith("/"):
            # Behind further slashes another host may stand.
            known[head] = name
        names.append(name)
    return numbered(names)


def _origin(url: str) -> str | None:
    try:
        return str(origin(url))
    except ValueError:
        return None


def _named(columns: _FileColumns, names: list[str]) -> tuple[NDArray[np.intp], list[str]]:
    places, hosts = numbered(names)
    for name in hosts:
        if not name.strip() or not name.isprintable():
            columns.refuse(names.index(name), "host", repr(name), "a name")
    return places, hosts


def _refuse_twice(columns: _FileColumns) -> None:
    if len(set(columns.url)) == len(columns.url):
        return
    first: dict[str, Any] = {}
    for row, url in enumerate(columns.url):
        if url in first:
            earlier = f"{columns.unit} {columns.numbers[first[url]]}"
            columns.refuse(row, "url", repr(url), f"each URL once, and {earlier} has it")
        first[url] = row


# -- csv files ---------------------------------------------------------------
# RFC 4180, UTF-8; the first line names the columns.
#: Rows that are turned into columns at once: texts of numbers are not kept for longer.
_ROWS = 50_000

_TRUTH = {"true": True, "false": False, "1": True, "0": False}

#: The rows of a piece as columns by name, and the lines on which they end.
_Piece: TypeAlias = tuple[dict[str, Sequence[str]], list[int]]


def read_csv(path: Path) -> _FileColumns:
    """Read the columns of a CSV file.

    Raises:
        OSError: the file cannot be read.
        UnusableFile: it is not UTF-8, or not CSV.
        BadSources: naming the line, the column and the accepted values.
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
    return _FileColumns(
        path=path,
        unit="line",
        numbers=joined.get("line", np.empty(0, np.int64)),
        url=url,
        change_rate=joined.get("change_rate", np.empty(0)),
        importance=joined.get("importance"),
        host=host or None,
        complete_observations=joined.get("complete_observations"),
    )


def write_csv(path: Path, columns: Mapping[str, NDArray[Any] | Sequence[Any]]) -> None:
    """Write columns of one length.

    Numbers have all their digits; infinity is ``inf``, a truth value ``true`` or ``false``.

    Raises:
        OSError: the file cannot be written.
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
            raise UnusableFile(f"{path}: line {reader.line_num}: is not CSV ({error})") from error
        except UnicodeDecodeError:
            raise UnusableFile(f"{path}: {_undecodable(path)}") from None


def _rows(
    path: Path, reader: Iterator[list[str]], width: int
) -> Iterator[tuple[list[list[str]], list[int]]]:
    """Yield the rows in batches, with their lines; blank lines are left out."""
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
    """Read a truth value.

    Raises:
        ValueError: the text is not one.
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
    """Say where a file stops being UTF-8."""
    data = path.read_bytes()
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"line {line}: is not UTF-8"
    return "is not UTF-8"


# -- parquet files -----------------------------------------------------------
# DuckDB (the extra ``parquet``) sees one file and nothing else: it neither reaches the network
# nor loads extensions.
if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY = "2GB"

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = (*_INTEGERS, *(f"U{name}" for name in _INTEGERS), "FLOAT", "DOUBLE", "DECIMAL")

#: For each column what it is read as, DuckDB's names of the types that are accepted, and ours.
_TYPES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "url": ("VARCHAR", ("VARCHAR",), "text"),
    "change_rate": ("DOUBLE", _NUMBERS, "numbers"),
    "importance": ("DOUBLE", _NUMBERS, "numbers"),
    "host": ("VARCHAR", ("VARCHAR", "ENUM"), "text"),
    "complete_observations": ("BOOLEAN", ("BOOLEAN",), "truth values"),
}


def require_duckdb(path: Path) -> None:
    """Raise :class:`UnusableFile` if DuckDB is not installed."""
    if find_spec("duckdb") is None:
        raise UnusableFile(
            f"{path}: Parquet needs DuckDB; `pip install 'freshet[parquet]'` brings it"
        )


def read_parquet(path: Path) -> _FileColumns:
    """Read the columns of a Parquet file.

    Raises:
        OSError: the file cannot be opened.
        UnusableFile: DuckDB is not installed, or it cannot read the file.
        BadSources: naming the row, the column and the accepted values.
    """
    require_duckdb(path)
    with path.open("rb") as file:
        # By this name no character of the path is taken for a pattern.
        name = f"/dev/fd/{file.fileno()}"
        with _duckdb(path, name) as connection:
            names = _checked_names(path, connection, name)
            columns = ", ".join(
                f'"{column}"::{_TYPES[column][0]} AS "{column}"' for column in names
            )
            found = connection.execute(f"SELECT {columns} FROM read_parquet(?)", [name])
            return _columns(path, found.fetchnumpy())


def write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of one length, texts as arrays of objects.

    Raises:
        UnusableFile: DuckDB is not installed, or it cannot write the file.
    """
    require_duckdb(path)
    with _duckdb(path, str(path)) as connection:
        connection.register("plan", dict(columns))
        connection.table("plan").write_parquet(str(path), compression="zstd")


@contextmanager
def _duckdb(path: Path, name: str) -> Iterator[DuckDBPyConnection]:
    """Open a DuckDB that may read only the file of this name; its errors name ``path``."""
    import duckdb  # noqa: PLC0415 - an extra

    quoted = name.replace("'", "''")
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": _MEMORY,
    }
    try:
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute(f"SET allowed_paths = ['{quoted}']")
            connection.execute("SET enable_external_access = false")
            yield connection
    except duckdb.Error as error:
        sentence = str(error).partition("\n")[0].replace(name, path.name)
        raise UnusableFile(f"{path}: {sentence}") from error


def _checked_names(path: Path, connection: DuckDBPyConnection, name: str) -> list[str]:
    rows = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [name]).fetchall()
    types: dict[str, str] = {row[0]: row[1] for row in rows}
    check_header(path, list(types))
    for column, of_type in types.items():
        _, accepted, words = _TYPES[column]
        if of_type.partition("(")[0] not in accepted:
            raise BadSources(f"{path}: {column}: is of type {of_type}; accepted are {words}")
    return list(types)


def _columns(path: Path, found: Mapping[str, NDArray[Any]]) -> _FileColumns:
    host, complete = found.get("host"), found.get("complete_observations")
    columns = _FileColumns(
        path=path,
        unit="row",
        numbers=np.arange(1, len(found["url"]) + 1),
        url=found["url"].tolist(),
        change_rate=np.asarray(found["change_rate"]),
        importance=None
        if (importance := found.get("importance")) is None
        else np.asarray(importance),
        host=None if host is None else host.tolist(),
        complete_observations=None if complete is None else np.asarray(complete),
    )
    for name, values in found.items():
        missing = np.ma.getmaskarray(values)
        if missing.any():
            columns.refuse(int(np.argmax(missing)), name, "null", _TYPES[name][2])
    return columns


# -- files -------------------------------------------------------------------
# The ending of a name selects the format.
_READERS = {".csv": read_csv, ".parquet": read_parquet}
_WRITE = {".csv": write_csv, ".parquet": write_parquet}


def read_sources(path: Path) -> PlanSources:
    """Read the sources in a file.

    Raises:
        UnusableFile: the file does not exist, or is not what its ending says.
        BadSources: naming the row, the column and the accepted values.
    """
    try:
        return checked(_READERS[_ending(path)](path))
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror or error}") from error


def check_writable(path: Path) -> None:
    """Check before the work that a plan can be written here; write nothing.

    Raises:
        BadSources: the ending is not accepted.
        UnusableFile: the folder or the file to replace is of a wrong kind, or an extra is missing.
    """
    if _ending(path) == ".parquet":
        require_duckdb(path)
    if not path.parent.is_dir():
        raise UnusableFile(f"{path}: the folder does not exist: {path.parent}")
    if path.exists() and not path.is_file():
        raise UnusableFile(f"{path}: not a file, so it is not replaced")


def write_plan(path: Path, columns: Mapping[str, NDArray[Any]]) -> bool:
    """Write the columns of a plan, whole or not at all; return whether a file was replaced.

    Raises:
        UnusableFile: it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _WRITE[_ending(path)](unfinished, columns)
        replaced = path.exists()
        unfinished.replace(path)
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return replaced


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in _READERS:
        raise BadSources(f"{path}: accepted are files that end in {' or '.join(_READERS)}")
    return ending
