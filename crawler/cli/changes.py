"""``freshet changes --since``: the changes, newest first, each with a one-line summary."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeAlias

import aiosqlite
import typer

from freshet.config.settings import Settings
from freshet.crawler import terminal
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings, since
from freshet.crawler.documents import change_summary
from freshet.crawler.network import parser_of
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.terminal import moment, print_json, show_line, show_list
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import PageChange

_SUMMARY_WIDTH = 100


#: Changes with their summaries.
_Summarised: TypeAlias = list[tuple[PageChange, str]]


def changes_command(
    since_text: Annotated[
        str, typer.Option("--since", metavar="AGE|DATE", help="2d, 12h, 90min, 1w, or a date.")
    ] = "7d",
    db: Db = DEFAULT_DB,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**9, help="Show at most N changes.")
    ] = 50,
    all_kinds: Annotated[
        bool, typer.Option("--all", help="Also show new pages, pages that are gone, and noise.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """List what changed significantly, newest first, each change in one line.

    `freshet diff URL` shows the whole of a change, and `freshet diff URL A B` compares versions.
    """
    now = time.time()
    settings, _ = read_settings(config, {})
    after = since(since_text, now)
    found, total = terminal.run(_read(db, settings, after, limit, all_kinds=all_kinds))
    if json:
        listed = [asdict(change) | {"summary": summary} for change, summary in found]
        print_json({"since": after, "total": total, "changes": listed})
    elif not found:
        show_line(f"Nothing changed since {moment(after, now)}.")
    else:
        show_list(
            f"Changes since {moment(after, now)}",
            ("time", "kind", "version", "page", "what"),
            [
                (moment(it.at, now), it.kind, str(it.version or ""), it.url, summary)
                for it, summary in found
            ],
        )
        if older := total - len(found):
            show_line(f"… and {older:,} older; --limit shows more", "dim")


async def _read(
    db: Path, settings: Settings, after: float, limit: int, *, all_kinds: bool
) -> tuple[_Summarised, int]:
    """Return the newest changes, and the number of all."""
    parser = parser_of(settings)
    try:
        async with page.snapshot(db) as connection:
            found, total = await overview.since(connection, after, limit, all_kinds=all_kinds)
            return [(each, await _summary(connection, parser, each)) for each in found], total
    finally:
        await parser.close()


async def _summary(connection: aiosqlite.Connection, parser: Parser, change: PageChange) -> str:
    """Summarise a change; for pages that appeared or vanished, return the title."""
    if change.kind != "changed":
        return change.title or ""
    return await change_summary(connection, parser, change, _SUMMARY_WIDTH)
