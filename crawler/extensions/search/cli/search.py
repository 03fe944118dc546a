"""``freshet search``: find pages by their words, and make the index for it."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from freshet.config.settings import Settings
from freshet.crawler.cli import options
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Index, Json, read_settings
from freshet.crawler.extensions.search import tables
from freshet.crawler.extensions.search.building import index_pending
from freshet.crawler.extensions.search.searching import Query, as_json, note_list, remember, search
from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.crawler.read.library import Library
from freshet.crawler.read.lists import SearchResult, audience_of
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import (
    counted,
    fail,
    moment,
    plain,
    print_json,
    progress_bars,
    say,
    show_line,
    show_text,
    told_in_one_line,
)
from freshet.crawler.run.upkeep import require_readable
from freshet.storage.database import open_store
from freshet.storage.stores import is_folder


def search_command(  # noqa: PLR0913, PLR0917 - the options are the arguments
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help='Words; "a phrase", prefix*, -without, site:example.org/docs, '
            "changed:>2026-11-01.",
            show_default=False,
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    site: Annotated[
        str | None, typer.Option(metavar="HOST[/PATH]", help="Only pages of this site.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="AGE|DATE", help="Only pages that changed since: 2d, 1w, or a date."),
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000, help="Show at most N pages.")
    ] = 10,
    offset: Annotated[
        int, typer.Option(metavar="N", min=0, help="Leave out the first N pages.")
    ] = 0,
    by_importance: Annotated[
        bool, typer.Option("--by-importance", help="Multiply scores by the pages' importances.")
    ] = False,
    index: Index = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Find pages by their words, the best first.

    The store needs an index: `freshet search --index on` makes it, and so do `freshet crawl` and
    `freshet daemon` with --index on. From then on it follows the crawls.

    Quote what the shell would read: `freshet search 'lock -"dead lock" changed:>7d'`.
    """
    settings, _ = read_settings(config, {"search.index": index})
    if index is not None:
        if not db.exists():
            fail(f"{db}: there is no such file; `freshet crawl --index on --db {db}` makes one")
        keep_index(db, settings)
    elif not words:
        fail("there is nothing to search: name a word", 2)
    if not words:
        return
    typed, now = " ".join(words), time.time()
    with told_in_one_line():
        query = Query.parse(typed, now, site=site, since=since)
    found, counts, down = terminal.run(
        _search(db, settings, query, now, limit=limit, offset=offset, by_importance=by_importance)
    )
    told = options.tell_down(db, down)
    if json:
        print_json(as_json(typed, found, counts) | told)
        return
    _print(found, typed, now)
    if counts[0] < counts[1]:
        lacking = counted(counts[1] - counts[0], "page")
        show_line(f"{lacking} not indexed yet: `freshet search --index on` goes on", "yellow")


async def _search(
    db: Path, settings: Settings, query: Query, now: float, **wanted: Any
) -> tuple[list[SearchResult], tuple[int, int], dict[int, str]]:
    parser = parser_of(settings)
    library = Library(db, parser, settings)
    try:
        audience = await audience_of(library, settings, now)
        found, counts, down = await search(library, query, now=now, audience=audience, **wanted)
        if audience is not None:
            await note_list(library, audience, "terminal", now, found)
        if settings.group(SearchSettings).remember:
            await remember(library, query)
        return found, counts, down
    finally:
        library.close()
        await parser.close()


def keep_index(db: Path, settings: Settings) -> None:
    """Make or delete the index of a store, following ``search.index``; show the progress."""
    if is_folder(db):
        for path in options.stores_at(db).paths:
            keep_index(path, settings)
        return
    wanted = settings.group(SearchSettings).index
    if wanted == "keep" or not db.exists():
        return
    with progress_bars() as tell:
        done, total = terminal.run(_keep_index(db, settings, tell))
    if wanted == "off":
        say("search:", "green", f"{db}: the index is deleted")
    elif done:
        say("search:", "green", f"{db}: {counted(done, 'page')} indexed, {total:,} in all")


async def _keep_index(db: Path, settings: Settings, tell: terminal.Tell) -> tuple[int, int]:
    parser = parser_of(settings)
    database = await open_store(db, owner="search")
    try:
        await require_readable(database.reader, db)
        wanted = settings.group(SearchSettings).index
        await database.write(lambda connection: tables.take_over(connection, wanted))
        done = await index_pending(database, parser, tell)
        return done, (await tables.counts(database.reader) or (0, 0))[0]
    finally:
        await database.close()
        await parser.close()


def _print(found: Sequence[SearchResult], typed: str, now: float) -> None:
    if not found:
        show_line(f"No page holds: {typed}")
    for each in found:
        title = Text(f"{each.showing.place:>2}  ", "dim")
        title.append(plain(each.title) or each.url, "bold not dim")
        title.append(f"  {moment(each.changed_at.timestamp(), now)}", "dim")
        if each.is_new:
            title.append("  new", "green")
        if each.is_partial:
            title.append("  some of the words", "yellow")
        shown = Text(each.snippet)
        for begin, end in each.marks:
            shown.stylize("bold yellow", begin, end)
        show_text(Text("\n").join([title, Text(plain(each.url), "blue"), shown, Text("")]))
