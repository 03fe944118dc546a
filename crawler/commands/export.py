"""``freshet export``: pages, observations or links as CSV, JSON lines or Parquet."""

from __future__ import annotations

import contextlib
import csv
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Final, TypeAlias

import typer

from freshet.crawler.commands import running
from freshet.crawler.commands.console import err, fail, say
from freshet.crawler.commands.options import DEFAULT_DB, Db
from freshet.crawler.commands.parquet import write_parquet
from freshet.crawler.commands.replacing import replacing
from freshet.storage.queries import exports, page
from freshet.storage.queries.exports import EXPORTS, Export

Batches: TypeAlias = AsyncIterator[list[tuple[object, ...]]]


class Table(StrEnum):
    """What can be exported."""

    PAGES = "pages"
    OBSERVATIONS = "observations"
    LINKS = "links"


class Format(StrEnum):
    """How it is written."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


def export_command(
    table: Annotated[Table, typer.Argument(help="What to export.")] = Table.PAGES,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help=".csv, .jsonl or .parquet; - is stdout."
        ),
    ] = Path("-"),
    kind: Annotated[
        Format | None,
        typer.Option("--format", help="Where the file's name does not say it.", show_default="csv"),
    ] = None,
    db: Db = DEFAULT_DB,
) -> None:
    """Write pages, observations or links as one table, for other programs.

    Times are Unix seconds (UTC). A file appears when it is whole: an export that is broken
    off leaves what was there before.
    """
    chosen = kind or _by_name(output)
    if chosen is Format.PARQUET and str(output) == "-":
        fail("--format parquet: needs --output FILE", 2)
    count = running.run(_export(db, EXPORTS[table], output, chosen))
    if str(output) != "-":
        say("written:", "green", f"{output} ({count:,} {table})")


def _by_name(output: Path) -> Format:
    """The format that a file's name asks for; CSV on stdout."""
    if str(output) == "-":
        return Format.CSV
    ending = output.suffix.removeprefix(".").lower()
    if ending not in set(Format):
        fail(f"--output {output}: accepted are names in .csv, .jsonl and .parquet, or --format", 2)
    return Format(ending)


async def _export(db: Path, export: Export, output: Path, kind: Format) -> int:
    gone = None
    async with (
        page.snapshot(db) as connection,
        contextlib.aclosing(exports.batches(connection, export)) as rows,
    ):
        try:
            return await _write(export, rows, output, kind)
        except BrokenPipeError as error:
            # No error of the store's, as all others are in this block.
            gone = error
    raise gone


async def _write(export: Export, rows: Batches, output: Path, kind: Format) -> int:
    if kind is Format.PARQUET:
        with replacing(output) as whole, err.status("Exporting"):
            return await write_parquet(whole, export.columns, rows)
    with _written(output) as file:
        return await _WRITERS[kind](file, list(export.columns), rows)


async def _write_csv(file: IO[str], names: Sequence[str], batches: Batches) -> int:
    writer, count = csv.writer(file, lineterminator="\n"), 0
    writer.writerow(names)
    async for rows in batches:
        writer.writerows(rows)
        count += len(rows)
    return count


async def _write_jsonl(file: IO[str], names: Sequence[str], batches: Batches) -> int:
    count = 0
    async for rows in batches:
        for row in rows:
            values = dict(zip(names, row, strict=True))
            file.write(json.dumps(values, ensure_ascii=False) + "\n")
        count += len(rows)
    return count


_WRITERS: Final[dict[Format, Callable[[IO[str], Sequence[str], Batches], Awaitable[int]]]] = {
    Format.CSV: _write_csv,
    Format.JSONL: _write_jsonl,
}


@contextmanager
def _written(output: Path) -> Iterator[IO[str]]:
    if str(output) == "-":
        yield sys.stdout
        return
    with replacing(output) as whole, whole.open("w", encoding="utf-8", newline="") as file:
        yield file
