"""``freshet changes --since``: the changes, newest first, each with a one-line summary."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import aiosqlite
import typer

from freshet.config.settings import Settings
from freshet.crawler import terminal
from freshet.crawler.alerts.messages import Versions, change_summary
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings, since
from freshet.crawler.network import parser_of
from freshet.crawler.reduce.parser_process import Parser
from freshet.crawler.terminal import moment, print_json, show_line, show_list
from freshet.storage.queries import overview, page
from freshet.storage.queries.overview import PageChange

_SUMMARY_WIDTH = 100


@dataclass(frozen=True, slots=True)
class _SummarisedChange:
    """A change and its summary."""

    change: PageChange
    summary: str

    def as_json(self) -> dict[str, object]:
        """Return the change as JSON values."""
        return asdict(self.change) | {"summary": self.summary}


@dataclass(frozen=True, slots=True)
class Changes:
    """The newest changes after ``since`` (Unix seconds), out of ``total``."""

    since: float
    total: int
    changes: list[_SummarisedChange]


def changes_command(
    since_text: Annotated[
        str, typer.Option("--since", metavar="AGE|DATE", help="2d, 12h, 90min, 1w, or a date.")
    ] = "7d",
    db: Db = DEFAULT_DB,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most N changes.")] = 50,
    all_kinds: Annotated[
        bool, typer.Option("--all", help="Also show new pages and pages that are gone.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """List what changed significantly, newest first, each change in one line.

    `freshet diff URL` shows the whole of a change.
    """
    now = time.time()
    settings, _ = read_settings(config, {})
    after = since(since_text, now)
    found = terminal.run(_read(db, settings, after, limit, all_kinds=all_kinds))
    if json:
        listed = [each.as_json() for each in found.changes]
        print_json({"since": found.since, "total": found.total, "changes": listed})
    else:
        _print(found, now)


async def _read(
    db: Path, settings: Settings, after: float, limit: int, *, all_kinds: bool
) -> Changes:
    parser = parser_of(settings)
    try:
        async with page.snapshot(db) as connection:
            found = await overview.since(connection, after, limit, all_kinds=all_kinds)
            found_changes = [
                _SummarisedChange(each, await _summary(connection, parser, each)) for each in found
            ]
            return Changes(after, await overview.count_since(connection, after), found_changes)
    finally:
        await parser.close()


async def _summary(connection: aiosqlite.Connection, parser: Parser, change: PageChange) -> str:
    """Summarise a change; for pages that appeared or vanished, return the title."""
    if change.kind != "changed":
        return change.title or ""
    both = Versions(
        change.url, change.version_id, change.before_id, change.blocks_added, change.blocks_removed
    )
    return await change_summary(connection, parser, both, _SUMMARY_WIDTH)


def _print(found: Changes, now: float) -> None:
    if not found.changes:
        show_line(f"Nothing changed since {moment(found.since, now)}.")
        return
    show_list(
        f"Changes since {moment(found.since, now)}",
        ("time", "kind", "page", "what"),
        [
            (moment(each.change.at, now), each.change.kind, each.change.url, each.summary)
            for each in found.changes
        ],
    )
    shown = sum(each.change.kind == "changed" for each in found.changes)
    if found.total > shown:
        show_line(f"… and {found.total - shown:,} older; --limit shows more", "dim")
