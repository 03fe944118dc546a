"""``freshet diff URL [A B]``: what changed between two stored versions of a page."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import aiosqlite
import typer

from freshet.config.settings import Settings
from freshet.crawler.commands import lookup, running
from freshet.crawler.commands.console import fail, print_json, say
from freshet.crawler.commands.diff_page import page_of
from freshet.crawler.commands.diff_view import print_difference
from freshet.crawler.commands.difference import Difference, volatile_blocks
from freshet.crawler.commands.display import moment
from freshet.crawler.commands.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings
from freshet.crawler.commands.parsers import parser_of
from freshet.crawler.commands.stored_text import NoText, read_text
from freshet.crawler.comparison.alignment import align
from freshet.crawler.parsing.quarantine import Parser
from freshet.storage.queries import page as page_queries
from freshet.storage.queries.page import StoredVersion
from freshet.storage.tables import observations


@dataclass(frozen=True, slots=True)
class DiffOrder:
    """Which versions of which page; ``before`` and ``after`` as they were typed."""

    db: Path
    url: str
    before: str | None
    after: str | None


def diff_command(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="The page; without a scheme https, then http.")
    ],
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="The older version: its number (1 is the first, -1 the last) or "
            "a date; without it the last whose text differs from B.",
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The newer version; without it the last.")
    ] = None,
    db: Db = DEFAULT_DB,
    context: Annotated[
        int, typer.Option(metavar="N", min=0, help="Unchanged blocks to show around a change.")
    ] = 1,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the diff there as one HTML page; - is stdout."),
    ] = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Show what changed between two stored versions of a page, block by block.

    Blocks of main text are edited, moved, added or removed; edited ones are shown word by
    word. Without numbers the last change is shown.
    """  # fmt: skip
    if html is not None and json:
        fail("--html and --json exclude each other", 2)
    settings, _ = read_settings(config, {})
    difference = running.run(_read(DiffOrder(db, url, before, after), settings))
    if json:
        print_json(difference.as_json())
    elif html is None:
        print_difference(difference, context, time.time())
    else:
        _write(html, page_of(difference, context))


async def _read(order: DiffOrder, settings: Settings) -> Difference:
    urls = lookup.spellings(order.url)
    parser = parser_of(settings)
    try:
        async with page_queries.snapshot(order.db) as connection:
            known = await page_queries.find(connection, urls)
            if known is None:
                fail(lookup.unknown(order.url, await lookup.nearest(connection, urls[0])))
            page_id = known.page_id if known.alias is None else known.alias.page_id
            url = known.url if known.alias is None else known.alias.url
            stored = await page_queries.versions(connection, page_id)
            before, after = _chosen(url, stored, order)
            return await _compare(connection, parser, page_id, url, before, after)
    except NoText as error:
        fail(f"{order.url}: {error}")
    finally:
        await parser.close()


async def _compare(
    connection: aiosqlite.Connection,
    parser: Parser,
    page_id: int,
    url: str,
    before: StoredVersion,
    after: StoredVersion,
) -> Difference:
    old = await read_text(connection, parser, url, before)
    new = await read_text(connection, parser, url, after)
    history = await observations.load(connection, page_id)
    volatile = volatile_blocks(history, new) if history is not None else frozenset()
    return Difference(url, before, after, align(old.texts, new.texts), volatile)


def _chosen(
    url: str, stored: list[StoredVersion], order: DiffOrder
) -> tuple[StoredVersion, StoredVersion]:
    """The two versions; ends the program where there are none such."""
    if len(stored) < 2:
        had = "one version" if stored else "no version"
        fail(f"{url}: has {had} in the store; a diff takes two")
    after = stored[-1] if order.after is None else _version_of(stored, order.after)
    if order.before is not None:
        return _version_of(stored, order.before), after
    return _last_change(stored[: after.number]), after


def _last_change(stored: list[StoredVersion]) -> StoredVersion:
    """The last version whose text may differ from that of the last one."""
    place = len(stored) - 1
    while place > 1 and stored[place].same_text:
        place -= 1
    return stored[max(place - 1, 0)]


def _version_of(stored: list[StoredVersion], text: str) -> StoredVersion:
    """By number, from the end if negative, or by date: the version that stood then."""
    numbers = f"1 to {len(stored)}, or from the end -1 to -{len(stored)}"
    if text.removeprefix("-").isdecimal():
        number = int(text)
        if not 1 <= abs(number) <= len(stored):
            fail(f"version {text}: accepted are {numbers}", 2)
        return stored[number - 1 if number > 0 else number]
    try:
        at = datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        fail(f"version {text}: accepted are {numbers}, or a date such as 2026-03-31T12:00", 2)
    then = [version for version in stored if version.at <= at]
    if not then:
        fail(f"version {text}: the first is of {moment(stored[0].at, time.time())}")
    return then[-1]


def _write(file: Path, page: str) -> None:
    if str(file) == "-":
        sys.stdout.write(page)
        return
    try:
        file.write_text(page, "utf-8")
    except OSError as error:
        fail(f"--html {file}: cannot be written: {error.strerror}")
    say("written:", "green", str(file))
