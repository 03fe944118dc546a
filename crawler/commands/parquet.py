"""Tables as Parquet, by DuckDB (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from freshet.crawler.commands.console import fail

_TYPES: Final = {"TEXT": "VARCHAR", "INTEGER": "BIGINT", "REAL": "DOUBLE"}


async def write_parquet(
    path: Path, columns: Mapping[str, str], batches: AsyncIterator[list[tuple[object, ...]]]
) -> int:
    """Write rows with named columns of SQLite types; how many. Ends the program without DuckDB."""
    if find_spec("duckdb") is None:
        fail("Parquet needs DuckDB: `pip install 'freshet[parquet]'` brings it")
    import duckdb  # noqa: PLC0415 - an extra

    declared = ", ".join(f'"{name}" {_TYPES[kind]}' for name, kind in columns.items())
    marks = ", ".join("?" * len(columns))
    count = 0
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE export ({declared})")
        async for rows in batches:
            connection.executemany(f"INSERT INTO export VALUES ({marks})", rows)
            count += len(rows)
        connection.table("export").write_parquet(str(path), compression="zstd")
    return count
