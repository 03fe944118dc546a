"""Sources and plans as Parquet, by DuckDB (the extra ``parquet``).

DuckDB sees one file and nothing else: it neither reaches the network nor loads extensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.commands.sources.columns import (
    BadSources,
    FileColumns,
    UnusableFile,
    check_header,
)

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
    """Raise :class:`UnusableFile` unless Parquet can be read and written here."""
    if find_spec("duckdb") is None:
        raise UnusableFile(
            f"{path}: Parquet needs DuckDB; `pip install 'freshet[parquet]'` brings it"
        )


def read_parquet(path: Path) -> FileColumns:
    """The columns of a Parquet file.

    Raises:
        OSError: as opening does.
        UnusableFile: DuckDB is not installed, or it cannot read the file.
        BadSources: naming the row, the column and what is accepted.
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
    """A DuckDB that may open the file of this name; its errors tell of ``path``."""
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


def _columns(path: Path, found: Mapping[str, NDArray[Any]]) -> FileColumns:
    host, complete = found.get("host"), found.get("complete_observations")
    columns = FileColumns(
        path,
        "row",
        np.arange(1, len(found["url"]) + 1),
        found["url"].tolist(),
        np.asarray(found["change_rate"]),
        None if (importance := found.get("importance")) is None else np.asarray(importance),
        None if host is None else host.tolist(),
        None if complete is None else np.asarray(complete),
    )
    for name, values in found.items():
        missing = np.ma.getmaskarray(values)
        if missing.any():
            columns.refuse(int(np.argmax(missing)), name, "null", _TYPES[name][2])
    return columns
