"""``freshet archive``: list WARC files, and write their index or package for other programs."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from freshet import __version__
from freshet.crawler.archive.cdxj import entries, write_cdxj, write_wacz
from freshet.crawler.archive.warc import OPEN, WHOLE
from freshet.crawler.archive.writer import NAME, recovered
from freshet.crawler.cli.options import Json
from freshet.crawler.errors import ArchiveInUse, CrawlError
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import (
    counted,
    err,
    print_json,
    replacing,
    say,
    show_list,
    size,
    written,
)


@dataclass(slots=True)
class _Holdings:
    """Contents of one WARC file; ``first`` and ``last`` are timestamps of its entries."""

    file: str
    bytes: int
    responses: int = 0
    revisits: int = 0
    first: str = ""
    last: str = ""


def archive_command(
    archives: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="WARC files, or folders of them.")
    ],
    cdxj: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the sorted CDXJ index; - for standard output."),
    ] = None,
    wacz: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the archive as one WACZ package.")
    ] = None,
    json: Json = False,
) -> None:
    """Show, index or package WARC archives.

    A file that is being written is left out; one that a crash left open is closed first.
    """
    with terminal.told_in_one_line():
        files = [file for archive in archives for file in warc_files(archive)]
        if not files:
            raise CrawlError(
                f"{archives[0]}: there are no WARC files; `freshet crawl --archive DIR` makes some"
            )
        if cdxj is not None:
            with written(cdxj) as index:
                write_cdxj(files, index)
        if wacz is not None:
            with err.status("Packaging"), replacing(wacz) as part:
                write_wacz(files, part, software=f"Freshet/{__version__}")
        if cdxj is None and wacz is None:
            _show([_holdings(file) for file in files], json=json)


def warc_files(archive: Path) -> list[Path]:
    """Return the complete WARC files in order, after closing those that a crash left open."""
    if not archive.exists():
        raise CrawlError(
            f"{archive}: there is no such file or folder; give WARC files, or a folder of them"
        )
    if not archive.is_dir():
        return [archive]
    if (archive / NAME).exists():
        try:
            # If the archive is in use, its open file is reported below.
            with suppress(ArchiveInUse):
                recovered(archive).close()
        except sqlite3.Error as error:
            raise CrawlError(
                f"{archive / NAME}: {error}; check its permissions and disk"
            ) from error
    if growing := len(list(archive.glob(f"*{OPEN}"))):
        left_out = f"{counted(growing, 'file')} being written, left out"
        say("freshet:", "yellow", f"{archive}: {left_out}")
    return sorted(p for end in (WHOLE, ".warc") for p in archive.glob(f"*{end}"))


def _holdings(file: Path) -> _Holdings:
    found = _Holdings(file.name, file.stat().st_size)
    for entry in entries(file):
        found.responses += not entry.is_revisit
        found.revisits += entry.is_revisit
        found.first = min(found.first or entry.timestamp, entry.timestamp)
        found.last = max(found.last, entry.timestamp)
    return found


def _show(found: Sequence[_Holdings], *, json: bool) -> None:
    if json:
        print_json({"files": [asdict(each) for each in found]})
        return
    show_list(
        f"{counted(len(found), 'WARC file')}, {size(sum(each.bytes for each in found))}",
        ("file", "size", "responses", "revisits", "first", "last"),
        [
            (each.file, size(each.bytes), each.responses, each.revisits, each.first, each.last)
            for each in found
        ],
    )
