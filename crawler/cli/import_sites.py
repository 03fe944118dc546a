"""``freshet import``: add another program's watch list to a site list."""

import json as jsons
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from freshet.crawler.admission import importers
from freshet.crawler.admission.importers import (
    SNIFFED_BYTES,
    Entry,
    ListFormat,
    MergedSiteList,
    is_zip,
    merged,
    page,
    recognised,
)
from freshet.crawler.cli.options import Json, read_list
from freshet.crawler.errors import CrawlError, UnreadableList
from freshet.crawler.run.terminal import (
    counted,
    plain,
    print_json,
    replacing,
    say,
    show_line,
    show_list,
    told_in_one_line,
)
from freshet.storage.errors import trouble

_SHOWN: Final = 20


def _import(
    files: Sequence[Path], kind: ListFormat, into: Path, *, dry_run: bool
) -> MergedSiteList:
    """Add the entries of these files to the list, unless it is a dry run."""
    with told_in_one_line():
        entries = [entry for file in files for entry in _read(file, kind)]
        with _errors_of(into):
            old = read_list(into) if into.exists() else b""
            found = merged(old, into.name, entries)
        if found.data != old and not dry_run:
            with replacing(into) as whole:
                whole.write_bytes(found.data)
    return found


def _print_intervals(found: MergedSiteList) -> None:
    """Print the visit intervals as tables of a configuration file."""
    for each in found.sites:
        if each.days is not None:
            match = jsons.dumps(page(each.url))
            typer.echo(f"\n[[sites]]\nmatch = {match}\nmost_days = {each.days:.6g}")


def import_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="A backup, a job list, an OPML file, a sitemap."),
    ],
    into: Annotated[
        Path,
        typer.Option("--into", metavar="LIST", help="The site list: text, or .csv with a header."),
    ],
    kind: Annotated[
        ListFormat,
        typer.Option(
            "--format",
            metavar="KIND",
            help="auto, or changedetection, urlwatch, opml, sitemap if that fails.",
        ),
    ] = "auto",
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Print their visit intervals as [[sites]].")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be added, and write nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Turn the watch list of another program into a site list.

    It reads backups, data stores and lists of changedetection.io, urlwatch's urls.yaml, OPML and
    sitemaps. Existing lines stay, so importing a file again adds nothing. Settings without a
    counterpart are reported.
    """
    found = _import(files, kind, into, dry_run=dry_run)
    if json:
        print_json(
            {
                "added": [{"url": s.url, "name": s.name, "days": s.days} for s in found.added],
                "known": _known(found), "skipped": [asdict(s) for s in found.skipped],
                "lost": dict(_lost(found)), "dry_run": dry_run,
            }
        )  # fmt: skip
    elif intervals:
        say("import:", "green", _summary(found, into, dry_run=dry_run))
        _print_intervals(found)
    else:
        _print(found, into, dry_run=dry_run)


@contextmanager
def _errors_of(file: Path) -> Iterator[None]:
    """Add the file name to errors."""
    try:
        yield
    except UnreadableList as reason:
        raise CrawlError(f"{file}: {reason}; {reason.advice}") from reason
    except OSError as error:
        raise CrawlError(trouble(file, error)) from error


def _read(file: Path, kind: ListFormat) -> list[Entry]:
    """Read a file; put its name into its entries."""
    with _errors_of(file):
        found = _entries(file, kind)
    return [replace(entry, where=f"{file.name}, {entry.where}") for entry in found]


def _entries(file: Path, kind: ListFormat) -> list[Entry]:
    with file.open("rb") as opened:
        head = opened.read(SNIFFED_BYTES)
        found = recognised(head) if kind == "auto" else kind
        opened.seek(0)
        if found == "changedetection" and is_zip(head):
            return importers.read_zip(opened)
        # One byte too many lets each format detect an oversized file.
        data = opened.read(importers.MAX_BYTES + 1)
    if found == "urlwatch":
        return importers.read_urlwatch(data)
    if found == "opml":
        return importers.read_opml(data)
    if found == "sitemap":
        return importers.read_manifest(data, lambda name: _beside(file, name))
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return importers.read_json(data)
    return importers.read_list(data)


def _beside(file: Path, name: str) -> bytes | None:
    path = file.with_name(name)
    return read_list(path) if path.is_file() else None


def _lost(found: MergedSiteList) -> Counter[str]:
    return Counter(words for site in found.added for words in dict.fromkeys(site.lost))


def _known(found: MergedSiteList) -> int:
    return len(found.sites) - len(found.added)


def _summary(found: MergedSiteList, into: Path, *, dry_run: bool) -> str:
    added = f"{counted(len(found.added), 'site')}{' would be' if dry_run else ''} added"
    return f"{into}: {added}, {_known(found):,} known before, {len(found.skipped):,} skipped"


def _print(found: MergedSiteList, into: Path, *, dry_run: bool) -> None:
    show_line(_summary(found, into, dry_run=dry_run), "green")
    if dry_run:
        rows = [(each.url, plain(each.name) or None) for each in found.added]
        show_list("To be added", ("site", "name"), rows, _SHOWN)
    show_list(
        "Skipped",
        ("where", "what", "why"),
        [(each.where, each.text[: _SHOWN * 4], each.reason) for each in found.skipped],
        _SHOWN,
    )
    lost = _lost(found).most_common()
    show_list("Not imported: a site list cannot express it", ("what", "sites"), lost, _SHOWN)
    if asked := sum(each.days is not None for each in found.sites):
        show_line(f"{counted(asked, 'site')} have visit intervals; --intervals prints them")
    if found.added:
        show_line("--scope list crawls just these pages; by default, the hosts are crawled")
