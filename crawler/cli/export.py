"""``freshet export``: write tables of a store as CSV, JSON lines or Parquet."""

import contextlib
import csv
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal, TypeAlias, cast, get_args

import typer

from freshet.config.settings import Settings
from freshet.crawler.cli.changefeed import ChunkChars
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, read_settings, tell_down
from freshet.crawler.errors import needs_extra
from freshet.crawler.frontier.clock import dated, iso
from freshet.crawler.read.changefeed import Change, Changefeed
from freshet.crawler.read.chunks import CHUNK_CHARS
from freshet.crawler.read.documents import StoredDocument
from freshet.crawler.read.library import Library
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import err, fail, inert, json_text, replacing, say, written
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import EXPORTS
from freshet.storage.stores import open_stores

# -- parquet -----------------------------------------------------------------
Batches: TypeAlias = AsyncIterator[list[tuple[object, ...]]]
_TYPES: Final = {
    "TEXT": "VARCHAR", "INTEGER": "BIGINT", "REAL": "DOUBLE", "TIME": "TIMESTAMP",
}  # fmt: skip


async def write_parquet(path: Path, columns: Mapping[str, str], batches: Batches) -> int:
    """Write typed rows to a Parquet file and return their number; exit without DuckDB.

    Times have the type TIMESTAMP, in UTC.
    """
    if find_spec("duckdb") is None:
        fail(needs_extra("Parquet", "parquet"))
    import duckdb  # noqa: PLC0415 - an extra

    declared = ", ".join(f'"{name}" {_TYPES[kind]}' for name, kind in columns.items())
    # Times are passed as microseconds.
    marks = ", ".join("make_timestamp(?)" if k == "TIME" else "?" for k in columns.values())
    times = [number for number, kind in enumerate(columns.values()) if kind == "TIME"]
    count = 0
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE export ({declared})")
        async for rows in batches:
            written = [_microseconds(row, times) for row in rows]
            connection.executemany(f"INSERT INTO export VALUES ({marks})", written)
            count += len(rows)
        connection.table("export").write_parquet(str(path), compression="zstd")
    return count


def _microseconds(row: Sequence[Any], times: Sequence[int]) -> list[object]:
    found = [*row]
    for number in times:
        if found[number] is not None:
            found[number] = round(found[number] * 1e6)
    return found


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # OWASP, "CSV injection"

_Table = Literal["pages", "documents", "chunks", "changes", "observations", "estimates", "links"]
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
            "--format", help="The format, if the file name has no such ending.", show_default="csv"
        ),
    ] = None,
    chunk_chars: ChunkChars = CHUNK_CHARS,
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
) -> None:
    """Write pages, texts, changes, visits or links as a table.

    Times are in UTC: ISO 8601, in Parquet TIMESTAMP. The file appears only when it is complete; an
    interrupted export leaves an older one in place.
    """
    settings, _ = read_settings(config, {})
    chosen = kind or _by_name(output)
    if chosen == "parquet" and str(output) == "-":
        fail("--format parquet: needs --output FILE", 2)
    if table in {"documents", "chunks"}:
        chars = chunk_chars if table == "chunks" else None
        work = _export_texts(db, settings, chars, output, chosen)
    else:
        work = _export(db, table, output, chosen)
    count = terminal.run(work)
    if str(output) != "-":
        say("written:", "green", f"{output} ({count:,} {table})")


def _by_name(output: Path) -> _ExportFormat:
    """Return the format that the file name ends in; CSV for stdout."""
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
    # Run numbers are unique only within a shard.
    numbered = stores.shards is not None and "run" in columns

    async def batches() -> AsyncGenerator[list[tuple[object, ...]], None]:
        for shard, path in there.items():
            async with page.snapshot(path) as reader:
                async for rows in overview.batches(reader, table):
                    yield [(shard, *row) for row in rows] if numbered else rows

    async with contextlib.aclosing(batches()) as found:
        shown = {"shard": "INTEGER"} | columns if numbered else columns
        return await _write(shown, found, output, kind)


async def _export_texts(
    db: Path, settings: Settings, chars: int | None, output: Path, kind: _ExportFormat
) -> int:
    """Write the documents of all pages, or their chunks if ``chars`` is given."""
    columns = EXPORTS["documents" if chars is None else "chunks"]["columns"]
    parser = parser_of(settings)
    library = Library(db, parser, settings)
    changes = Changefeed(library, docs=True, chunk_chars=chars)

    async def batches() -> AsyncGenerator[list[tuple[object, ...]], None]:
        found, place = await changes.read("0")
        while found:
            tell_down(db, changes.down)
            told = [_text_rows(each) for each in found if each.doc is not None]
            yield [tuple(map(row.get, columns)) for rows in told for row in rows]
            found, place = await changes.read(place)

    try:
        async with contextlib.aclosing(batches()) as rows:
            return await _write(columns, rows, output, kind)
    finally:
        library.close()
        await parser.close()


def _text_rows(change: Change) -> Iterator[dict[str, Any]]:
    """Yield the column values of a page's document, or of each of its chunks."""
    doc = cast("StoredDocument", change.doc)
    times = {
        "fetched_at": doc.fetched_at.timestamp(), "changed_at": doc.changed_at.timestamp(),
    }  # fmt: skip
    if change.chunks is None:
        yield doc.as_json() | times
    for each in change.chunks or ():
        yield each.as_json() | times | {
            "page_url": doc.url, "headings": " > ".join(each.headings),
        }  # fmt: skip


async def _write(columns: dict[str, str], rows: Batches, output: Path, kind: _ExportFormat) -> int:
    if kind == "parquet":
        with replacing(output) as whole, err.status("Exporting"):
            return await write_parquet(whole, columns, rows)
    write = _write_csv if kind == "csv" else _write_jsonl
    with written(output) as file:
        return await write(file, columns, rows)


async def _write_csv(file: IO[str], columns: Mapping[str, str], batches: Batches) -> int:
    writer, count = csv.writer(file, lineterminator="\n"), 0
    writer.writerow(columns)
    async for rows in batches:
        writer.writerows(map(_quoted, row, columns.values()) for row in rows)
        count += len(rows)
    return count


def _quoted(cell: Any, kind: str) -> object:
    """Return a cell that neither a spreadsheet nor a terminal interprets.

    Text that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    if kind == "TIME" and cell is not None:
        return iso(cell)
    if not isinstance(cell, str):
        return cell
    shown = inert(cell)
    return f"'{shown}" if cell.startswith(_FORMULA) else shown


async def _write_jsonl(file: IO[str], columns: Mapping[str, str], batches: Batches) -> int:
    count = 0
    async for rows in batches:
        for row in rows:
            values = dict(zip(columns, row, strict=True))
            file.write(json_text(dated(values)) + "\n")
        count += len(rows)
    return count
