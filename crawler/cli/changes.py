"""``freshet changes --since``: changes, newest first, each with a one-line summary."""

import heapq
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from freshet.config.settings import Settings
from freshet.crawler.cli import options
from freshet.crawler.cli.options import DEFAULT_DB, ConfigFile, Db, Json, read_settings, since
from freshet.crawler.read.documents import Documents, change_summary
from freshet.crawler.read.library import Library, asking
from freshet.crawler.run import terminal
from freshet.crawler.run.network import parser_of
from freshet.crawler.run.terminal import moment, print_json, show_line, show_list
from freshet.storage.entries import REFRESHED
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
        bool, typer.Option("--all", help="Include noise, and new, gone and refreshed pages.")
    ] = False,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """List what changed, newest first, one change a line.

    `freshet diff URL` shows a change in full; `freshet diff URL A B` compares two versions.
    """
    now = time.time()
    settings, _ = read_settings(config, {})
    after = since(since_text, now)
    found, total, down = terminal.run(_read(db, settings, after, limit, all_kinds=all_kinds))
    told = options.tell_down(db, down)
    if json:
        listed = [asdict(change) | {"summary": summary} for change, summary in found]
        print_json({"since": after, "total": total, "changes": listed} | told)
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
) -> tuple[_Summarised, int, dict[int, str]]:
    """Return the newest changes, the total number, and the unreadable shards with the reason."""
    parser = parser_of(settings)
    library = Library(db, parser, settings)
    try:
        read = asking(overview.since, at=after, limit=limit, all_kinds=all_kinds)
        by_shard, down = await library.each(lambda _: read)
        parts = [[(shard, it) for it in found] for shard, (found, _) in by_shard.items()]
        newest = list(islice(heapq.merge(*parts, key=lambda one: -one[1].at), limit))
        of = {shard: [it for home, it in newest if home == shard] for shard, _ in newest}
        summed, gone = await library.each(
            lambda shard: partial(_summaries, changes=of[shard]) if shard in of else None
        )
        summaries = {shard: iter(each) for shard, each in summed.items()}
        found = [(it, next(summaries[shard])) for shard, it in newest if shard in summaries]
        return found, sum(total for _, total in by_shard.values()), down | gone
    finally:
        library.close()
        await parser.close()


async def _summaries(made: Documents, changes: Sequence[PageChange]) -> list[str]:
    """Return a summary of each change; for pages that appeared or vanished, the title."""
    async with page.snapshot(made.path) as db:
        return [
            await change_summary(db, made.parser, it, _SUMMARY_WIDTH)
            if it.kind in {"changed", REFRESHED}
            else it.title or ""
            for it in changes
        ]
