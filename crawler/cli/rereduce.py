"""``freshet rereduce``: extract the text of kept bodies again with the current extraction."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Final

from freshet.config.settings import Settings
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.compare.history import PageRecord
from freshet.crawler.errors import CrawlError, ParserLost
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.page import ParsedPage
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.reduce.sketch import sketch
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of, with_kept
from freshet.crawler.run.stored_past import parse_content
from freshet.crawler.run.terminal import Tell, counted, fail, print_json, progress_bars, show_line
from freshet.crawler.run.upkeep import require_readable
from freshet.storage.database import Database, open_store
from freshet.storage.errors import StoreError
from freshet.storage.extensions import index
from freshet.storage.queries import page
from freshet.storage.tables import observations
from freshet.storage.tables.observations import NewestText

#: Pages in one transaction, which a kill loses.
_BATCH: Final = 100


@dataclass(slots=True)
class _Rereduced:
    """Counts of pages with a text, by result.

    Attributes:
        pages: all pages.
        reread: pages extracted again in this invocation; the text of ``other_texts`` changed.
        without_body, unreadable: pages without stored bytes, and pages with damaged or
            unparsable ones. Their next visit with other bytes starts a new baseline.
    """

    pages: int = 0
    reread: int = 0
    other_texts: int = 0
    without_body: int = 0
    unreadable: int = 0
    seconds: float = 0.0


def rereduce_command(db: Db = DEFAULT_DB, config: ConfigFile = None, json: Json = False) -> None:
    """Extract the texts of kept pages again, after an upgrade.

    Run this after an upgrade of Freshet that changes the extraction, or after a change of include
    or ignore in [[sites]], to update the search index at once. It extracts the text and sketch of
    each page from the stored body of its newest version. Without this command, a page is extracted
    again at its next visit that finds other bytes.

    Nothing is fetched. An interrupted run resumes.
    """
    settings, _ = read_settings(config, {})
    if not db.exists():
        fail(f"{db}: there is no such file; --db names the store")
    with progress_bars() as tell:
        found = terminal.run(_rereduce(db, settings, tell))
    if json:
        print_json(asdict(found))
    else:
        _print(found, db)


def _print(found: _Rereduced, db: Path) -> None:
    left = found.without_body + found.unreadable
    show_line(
        f"{db}: {counted(found.reread, 'page')} of {found.pages:,} extracted again in "
        f"{found.seconds:.1f} s; {found.other_texts:,} texts changed",
        "green",
    )
    if left:
        show_line(
            f"{counted(left, 'page')} not extracted ({found.without_body:,} without a stored body, "
            f"{found.unreadable:,} unreadable): the next visit with other bytes is a new baseline"
        )


async def _rereduce(db: Path, settings: Settings, tell: Tell | None) -> _Rereduced:
    async with AsyncExitStack() as stack:
        database = await open_store(db, owner="rereduce")
        stack.push_async_callback(database.close)
        await require_readable(database.reader, db)
        parser = parser_of(await with_kept(settings, database.reader))
        stack.push_async_callback(parser.close)
        try:
            return await rereduce(database, parser, tell)
        except ParserLost as error:
            raise CrawlError(f"{error}; run it again, finished pages are kept") from error


async def rereduce(database: Database, parser: Parser, tell: Tell | None = None) -> _Rereduced:
    """Extract from stored bodies the texts that an older extraction made."""
    found, began, after = _Rereduced(), time.perf_counter(), 0
    last = await observations.last_page_id(database.reader)
    while texts := await observations.newest_texts(database.reader, after, _BATCH):
        after = texts[-1].page_id
        found.pages += len(texts)
        new = [await _reread(database, parser, text, found) for text in texts]
        reread = [each for each in new if each is not None]
        if reread:
            await database.write(partial(_replace, reread=reread))
        found.reread += len(reread)
        if tell is not None:
            tell("pages", after / last)
    found.seconds = round(time.perf_counter() - began, 3)
    return found


def _replace(db: Connection, reread: Sequence[tuple[NewestText, str]]) -> None:
    observations.reread(db, [text for text, _ in reread])
    if (indexed := index()) is not None:
        # If the newest version is noise, the indexed text of the page is still this one.
        indexed.renew(db, {text.page_id: lines for text, lines in reread})


async def _reread(
    database: Database, parser: Parser, text: NewestText, found: _Rereduced
) -> tuple[NewestText, str] | None:
    """Return the page's new baseline and its lines for the index; None if it stays."""
    text_version = parser.text_version(text.fetch_url, text.content_type)
    if text.text_version == text_version:
        return None
    try:
        body = await page.body(database.reader, text.version_id)
    except StoreError:
        found.unreadable += 1
        return None
    if body is None:
        found.without_body += 1
        return None
    parsed = await parse_content(parser, text.role, text.fetch_url, (body, text.content_type))
    if isinstance(parsed, Unparsable):
        found.unreadable += 1
        return None
    new = sketch(parsed.blocks.texts, parsed.blocks.places)
    found.other_texts += new.text_digest != text.text_digest
    history = await observations.load(database.reader, text.page_id)
    memory = None
    if history is not None and history.memory is not None:
        memory = PageRecord.of(history).read_again(new, text_version).memory
    title = parsed.title if isinstance(parsed, ParsedPage) else None
    return replace(
        text,
        text_digest=new.text_digest,
        sketch=new.to_bytes(),
        text_version=text_version,
        memory=memory,
    ), _lines(title, parsed.blocks)


def _lines(title: str | None, blocks: Blocks) -> str:
    indexed = index()
    return "" if indexed is None else indexed.lines(title, blocks.texts, blocks.kinds)
