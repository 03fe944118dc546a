"""``freshet export``: pages, observations, estimates or links as CSV, JSON lines or Parquet."""

import contextlib
import csv
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Annotated, Final, Literal, TypeAlias, get_args

import typer

from freshet.crawler import terminal
from freshet.crawler.cli.options import DEFAULT_DB, Db, tell_down
from freshet.crawler.clock import dated
from freshet.crawler.errors import needs_extra
from freshet.crawler.terminal import err, fail, inert, json_text, replacing, say, written
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import EXPORTS
from freshet.storage.stores import open_stores

# -- parquet -----------------------------------------------------------------
Batches: TypeAlias = AsyncIterator[list[tuple[object, ...]]]
_TYPES: Final = {"TEXT": "VARCHAR", "INTEGER": "BIGINT", "REAL": "DOUBLE"}


async def write_parquet(path: Path, columns: Mapping[str, str], batches: Batches) -> int:
    """Write rows with named columns of SQLite types; return their number. Exit without DuckDB."""
    if find_spec("duckdb") is None:
        fail(needs_extra("Parquet", "parquet"))
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


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # OWASP, "CSV injection"

_Table = Literal["pages", "observations", "estimates", "links"]
_ExportFormat = Literal["csv", "jsonl", "parquet"]
_FORMATS: Final[dict[str, _ExportFormat]] = {each: each for each in get_args(_ExportFormat)}


def export_command(
    table: Annotated[_Table, typer.Argument(help="What to export.")] = "pages",
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help=".csv, .jsonl or .parquet; - is stdout."
        ),
    ] = Path("-"),
    kind: Annotated[
        _ExportFormat | None,
        typer.Option(
            "--format", help="The format, if the file's name does not tell.", show_default="csv"
        ),
    ] = None,
    db: Db = DEFAULT_DB,
) -> None:
    """Write pages, observations, links or estimates as a table.

    Times are Unix seconds (UTC), in JSONL ISO 8601. A file appears when it is whole: an interrupted
    export leaves the old one in place.
    """
    chosen = kind or _by_name(output)
    if chosen == "parquet" and str(output) == "-":
        fail("--format parquet: needs --output FILE", 2)
    count = terminal.run(_export(db, table, output, chosen))
    if str(output) != "-":
        say("written:", "green", f"{output} ({count:,} {table})")


def _by_name(output: Path) -> _ExportFormat:
    """Return the format by a file's name; CSV on stdout."""
    if str(output) == "-":
        return "csv"
    ending = output.suffix.removeprefix(".").lower()
    if ending not in _FORMATS:
        fail(f"--output {output}: name a .csv, .jsonl or .parquet file, or give --format", 2)
    return _FORMATS[ending]


async def _export(db: Path, table: str, output: Path, kind: _ExportFormat) -> int:
    stores = open_stores(db)
    there = await stores.readable()
    tell_down(db, stores.down)
    columns: dict[str, str] = EXPORTS[table]["columns"]
    # A run's number is that of a shard.
    numbered = stores.shards is not None and "run" in columns

    async def batches() -> AsyncGenerator[list[tuple[object, ...]], None]:
        for shard, path in there.items():
            async with page.snapshot(path) as reader:
                async for rows in overview.batches(reader, table):
                    yield [(shard, *row) for row in rows] if numbered else rows

    async with contextlib.aclosing(batches()) as found:
        shown = {"shard": "INTEGER"} | columns if numbered else columns
        return await _write(shown, found, output, kind)


async def _write(columns: dict[str, str], rows: Batches, output: Path, kind: _ExportFormat) -> int:
    if kind == "parquet":
        with replacing(output) as whole, err.status("Exporting"):
            return await write_parquet(whole, columns, rows)
    write = _write_csv if kind == "csv" else _write_jsonl
    with written(output) as file:
        return await write(file, list(columns), rows)


async def _write_csv(file: IO[str], names: Sequence[str], batches: Batches) -> int:
    writer, count = csv.writer(file, lineterminator="\n"), 0
    writer.writerow(names)
    async for rows in batches:
        writer.writerows(map(_quoted, row) for row in rows)
        count += len(rows)
    return count


def _quoted(cell: object) -> object:
    """Mark a text that a spreadsheet would take for a formula; no text steers a terminal."""
    if not isinstance(cell, str):
        return cell
    shown = inert(cell)
    return f"'{shown}" if cell.startswith(_FORMULA) else shown


async def _write_jsonl(file: IO[str], names: Sequence[str], batches: Batches) -> int:
    count = 0
    async for rows in batches:
        for row in rows:
            values = dict(zip(names, row, strict=True))
            file.write(json_text(dated(values)) + "\n")
        count += len(rows)
    return count
