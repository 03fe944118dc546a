"""A change in one line, from the stored bytes; from the counts where these are not kept."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from freshet.crawler.commands.stored_text import NoText, read_text
from freshet.crawler.comparison.alignment import align
from freshet.crawler.comparison.summary import in_one_line
from freshet.crawler.parsing.quarantine import Parser
from freshet.storage.queries import page


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of the page at ``url`` after a change and before it, None: there is none."""

    url: str
    version_id: int | None
    before_id: int | None
    blocks_added: int | None
    blocks_removed: int | None


async def change_summary(
    connection: aiosqlite.Connection, parser: Parser, change: Versions, width: int
) -> str:
    """What changed, at most about ``width`` characters."""
    if change.version_id is None or change.before_id is None:
        return in_counts(change)
    found = await page.by_id(connection, change.before_id, change.version_id)
    if len(found) != 2:
        return in_counts(change)
    try:
        old, new = [await read_text(connection, parser, change.url, each) for each in found]
    except NoText:
        return in_counts(change)
    return in_one_line(align(old.texts, new.texts), width)


def in_counts(change: Versions) -> str:
    """How many blocks came and went."""
    return f"{change.blocks_added or 0} blocks added, {change.blocks_removed or 0} removed"
