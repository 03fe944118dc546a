"""``freshet forget``: delete pages from the store, and their records from archives."""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer

from freshet.crawler.archive.records import Damage
from freshet.crawler.archive.scan import ScannedRecord, scan
from freshet.crawler.archive.text import FileSlice
from freshet.crawler.archive.warc import RENDERED
from freshet.crawler.archive.writer import recovered
from freshet.crawler.cli.archive import warc_files
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings, stores_at
from freshet.crawler.errors import ArchiveInUse, CrawlError
from freshet.crawler.read.documents import cache_of, forget_documents
from freshet.crawler.run import terminal
from freshet.crawler.run.terminal import (
    counted,
    err,
    fail,
    print_json,
    replacing,
    say,
    show_line,
    show_list,
)
from freshet.crawler.urls import canonical, origin
from freshet.storage import forgetting
from freshet.storage.database import open_store
from freshet.storage.forgetting import Forgettable
from freshet.storage.queries import page
from freshet.storage.stores import Stores
from freshet.storage.tables import observations, runs

_SHOWN: Final = 20
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Choice:
    """The pages to forget, by canonical URL or URL prefix, and their archived records."""

    urls: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    pages: tuple[Forgettable, ...] = ()
    records: tuple[dict[str, Any], ...] = ()

    def matcher(self) -> Callable[[str], bool]:
        """Return a function that tests whether a canonical URL belongs to a chosen page."""
        urls = {*self.urls, *(url for each in self.pages for url in (each.url, each.fetch_url))}
        return lambda url: url in urls or url.startswith(self.prefixes)


def forget_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The page, with its aliases.")
    ] = None,
    site: Annotated[
        str | None, typer.Option(metavar="HOST", help="All pages of a host, http and https.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="URL", help="All pages whose URL starts with this.")
    ] = None,
    keep_refusing: Annotated[
        bool, typer.Option("--keep-refusing", help="Never fetch these pages again.")
    ] = False,
    archives: Annotated[
        bool, typer.Option("--archives", help="Also remove their records from the WARC files.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be deleted, and change nothing.")
    ] = False,
    db: Db = DEFAULT_DB,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Delete pages, with all that was learnt from them.

    Only the URL stays, so that the changefeed can report `deleted`. The store file is rewritten, so
    that no deleted data can be recovered from it. Records in archives are listed; --archives
    removes them. You must delete older backups, WACZ packages and CDXJ indexes yourself.
    """
    urls, prefixes = _addresses(url, site, prefix)
    settings, _ = read_settings(config, {})
    stores = stores_at(db)
    found = _found_in(stores, urls, prefixes)
    pages, named = [], {settings.archive.dir}
    for some, archived in found.values():
        pages.append(some)
        named.update(archived)
    folders = _archives(named)
    choice = _choice(urls, prefixes, pages, folders)
    if not (keep_refusing and prefixes):
        _require_some(choice, db, url or site or prefix)
    removed = archives and not dry_run
    if not dry_run:
        with err.status("Forgetting"), terminal.told_in_one_line():
            _forget_all(stores, found, prefixes, refused=keep_refusing)
            if removed:
                _remove(folders, choice)
        _require_all_overwritten(stores)
    shown = _print_as_json if json else _print
    shown(choice, dry_run=dry_run, removed=removed)


def _forget_in(
    path: Path,
    pages: Sequence[Forgettable],
    prefixes: Sequence[str],
    origins: Collection[str],
    *,
    refused: bool,
) -> None:
    """Forget pages of one store, and the documents cached for them."""
    terminal.run(_forget(path, pages, prefixes, origins, refused=refused))
    forget_documents(path, [each.page_id for each in pages])


def _print_as_json(choice: _Choice, *, dry_run: bool, removed: bool) -> None:
    print_json(
        {
            "pages": [asdict(each) for each in choice.pages],
            "records": choice.records,
            "done": not dry_run,
            "records_removed": removed,
        }
    )


def _archives(named: Iterable[str]) -> list[Path]:
    """Return the existing folders among the archive folders that settings name."""
    return [folder for folder in map(Path, sorted({*named} - {""})) if folder.is_dir()]


def _addresses(
    url: str | None, site: str | None, prefix: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the canonical URLs and the URL prefixes that the arguments name."""
    if sum(each is not None for each in (url, site, prefix)) != 1:
        fail("give one of URL, --site HOST and --prefix URL", 2)
    if url is not None:
        return tuple(terminal.spellings(url)), ()
    if site is not None:
        hosts = [str(origin(each)) for each in terminal.spellings(site)]
        return (), tuple(f"{each}/" for each in hosts)
    try:
        return (), (canonical(prefix or ""),)
    except ValueError:
        fail(f"--prefix {prefix}: not an http or https URL such as https://example.org/docs/", 2)


def _found_in(
    stores: Stores, urls: tuple[str, ...], prefixes: tuple[str, ...]
) -> Mapping[int, tuple[list[Forgettable], Iterable[str]]]:
    """Return what each shard would forget; exit if a shard cannot be read."""
    found = terminal.run(stores.each(partial(_chosen, urls=urls, prefixes=prefixes)))
    for shard, why in stores.down.items():
        fail(f"shard {shard}: {why}; nothing is deleted until all shards can be read")
    return found


async def _chosen(
    db: Path, urls: tuple[str, ...], prefixes: tuple[str, ...]
) -> tuple[list[Forgettable], Iterable[str]]:
    """Return the pages to forget, and the archive folders that runs of the store wrote."""
    async with page.snapshot(db) as connection:
        found = await forgetting.forgettable(connection, urls=urls, prefixes=prefixes)
        return found, await runs.archive_folders(connection)


def _choice(
    urls: tuple[str, ...], prefixes: tuple[str, ...],
    found: Iterable[Sequence[Forgettable]], folders: Sequence[Path],
) -> _Choice:  # fmt: skip
    """Return the choice; of a page that several shards know, the copy with most versions counts."""
    pages: dict[str, Forgettable] = {}
    for each in chain(*found):
        if each.url not in pages or each.versions > pages[each.url].versions:
            pages[each.url] = each
    choice = _Choice(urls, prefixes, tuple(pages.values()))
    files = [file for folder in folders for file in warc_files(folder)]
    with terminal.told_in_one_line():
        records = [each for file in files for each in _doomed_records(file, choice.matcher())]
    return replace(choice, records=tuple(records))


async def _forget(
    db: Path,
    pages: Sequence[Forgettable],
    prefixes: Sequence[str],
    origins: Collection[str],
    *,
    refused: bool,
) -> None:
    database = await open_store(db, owner="forget")
    forget = partial(forgetting.forget, database, pages, time.time())
    try:
        await forget(refused=refused, prefixes=prefixes, origins=origins)
    finally:
        await database.close()


def _remove(folders: Sequence[Path], choice: _Choice) -> None:
    """Rewrite the WARC files that hold records to remove."""
    names = {each["file"] for each in choice.records}
    for folder in folders:
        try:
            with closing(recovered(folder)) as originals:
                for file in (each for each in warc_files(folder) if each.name in names):
                    with replacing(file) as partial:
                        _write_without(file, partial, choice.matcher())
                # Forget the digests of rewritten files: their content is archived in full next
                # time.
                originals.keep({name for name in originals.sizes() if name not in names})
        except ArchiveInUse as error:
            raise CrawlError(f"{folder}: another process writes this archive; stop it") from error
        except sqlite3.Error as error:
            raise CrawlError(f"{folder}: {error}; check its permissions and disk") from error


def _doomed_records(file: Path, forgotten: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return the records of a WARC file about ``forgotten`` addresses (canonical URLs).

    In a damaged file only the readable records are found. Raises OSError.
    """
    with closing(FileSlice(file)) as source:
        found = (each for each in scan(source, file.name) if isinstance(each, ScannedRecord))
        return [
            {
                "file": file.name,
                "offset": each.place.offset,
                "kind": each.fields["warc-type"],
                "url": url,
            }
            for each in found
            if forgotten(url := _url(each))
        ]


def _write_without(file: Path, target: Path, forgotten: Callable[[str], bool]) -> None:
    """Copy a WARC file without the forgotten records; all others stay byte for byte.

    Raises:
        CrawlError: the file is damaged, or its records are compressed together.
        OSError: the file cannot be read, or the target cannot be written.
    """
    unchanged = "its records were not removed"
    with closing(FileSlice(file)) as source, target.open("wb") as out:
        start, is_kept = 0, True
        for each in scan(source, file.name):
            if isinstance(each, Damage):
                raise CrawlError(
                    f"{file}: it is damaged at byte {each.offset} ({each.reason}); {unchanged}; "
                    "delete it, or replace it by an intact copy"
                )
            if each.place.nth:
                raise CrawlError(
                    f"{file}: its records are compressed together; {unchanged}; delete it, or "
                    "compress each by itself (`warcio recompress`)"
                )
            if is_kept:
                _copy(source, start, each.place.offset, out)
            start, is_kept = each.place.offset, not forgotten(_url(each))
        if is_kept:
            _copy(source, start, source.size, out)


def _copy(source: FileSlice, start: int, end: int, out: IO[bytes]) -> None:
    while start < end:
        piece = source.read_at(start, min(_PIECE_BYTES, end - start))
        out.write(piece)
        start += len(piece)


def _url(record: ScannedRecord) -> str:
    """Return the canonical URL of a record; some writers put it in angle brackets."""
    url = record.fields.get("warc-target-uri", "").strip("<>").removeprefix(RENDERED)
    try:
        return canonical(url)
    except ValueError:
        return url


def _require_some(choice: _Choice, db: Path, asked: str | None) -> None:
    if not choice.pages and not choice.records:
        fail(f"{asked}: {db} has no such page; `freshet export pages` lists them")


def _forget_all(
    stores: Stores,
    found: Mapping[int, tuple[list[Forgettable], Iterable[str]]],
    prefixes: tuple[str, ...],
    *,
    refused: bool,
) -> None:
    """Forget the pages that were found, and the rules of a prefix in all shards.

    The compression dictionaries of their origins go as well; any shard may use them.
    """
    every = chain.from_iterable(pages for pages, _ in found.values())
    origins = {str(origin(each.url)) for each in every}
    for shard, (pages, _) in found.items():
        path = stores.paths[shard]
        if pages or prefixes or stores.shards is None or terminal.run(_holds(path, origins)):
            _forget_in(path, pages, prefixes, origins, refused=refused)


async def _holds(db: Path, origins: Collection[str]) -> bool:
    async with page.snapshot(db) as connection:
        return await observations.has_dictionaries(connection, origins)


def _require_all_overwritten(stores: Stores) -> None:
    for path in stores.paths:
        _require_overwritten(path)


def _require_overwritten(db: Path) -> None:
    """Exit if a write-ahead log holds deleted data because another program reads the store."""
    for file in (db.resolve(), cache_of(db)):
        log = file.with_name(f"{file.name}-wal")
        if log.exists() and log.stat().st_size:
            fail(
                f"{log}: another program reads the store, so this file still has deleted data: "
                "end that program, and run the same command again"
            )


def _print(choice: _Choice, *, dry_run: bool, removed: bool) -> None:
    verb = "Would forget" if dry_run else "Forgot"
    rows = [(each.url, each.versions) for each in choice.pages]
    show_list(f"{verb} {counted(len(choice.pages), 'page')}", ("page", "versions"), rows, _SHOWN)
    if not choice.records:
        return
    show_list(
        f"Records in archives, {'removed' if removed else 'to be removed with --archives'}",
        ("file", "offset", "kind", "address"),
        [tuple(each.values()) for each in choice.records[:_SHOWN]],
    )
    if len(choice.records) > _SHOWN:
        show_line(f"… and {len(choice.records) - _SHOWN:,} more; --json lists all")
    if removed:
        say("note:", "yellow", "make CDXJ indexes and WACZ packages again: old ones list them")
