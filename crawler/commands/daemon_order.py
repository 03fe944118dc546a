"""What a daemon is told to do, and the run that is begun for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from freshet.config.settings import Settings
from freshet.crawler.admission.sites import Seed
from freshet.crawler.commands.assembly import copy_rule
from freshet.crawler.errors import CrawlError
from freshet.storage.database import Database
from freshet.storage.records import SeedLine
from freshet.storage.tables import pages, runs, url_patterns

NOTHING_TO_KEEP = "there is nothing to keep fresh: name a SITE, or a list with --sites FILE"


@dataclass(frozen=True, slots=True)
class DaemonOrder:
    """What to keep fresh, and how. ``budget`` is in requests a day, ``time_limit_s`` 0: none.

    ``settings`` come with an order that is given to a running daemon.
    """

    db: Path
    seeds: Sequence[Seed]
    budget: float
    policy: str = "greedy_index"
    time_limit_s: float = 0.0
    settings: Settings | None = None


#: Reads the order again; raises CrawlError where it cannot be followed.
Reread = Callable[[], DaemonOrder]


def given(named: Sequence[Seed]) -> list[SeedLine]:
    """Seeds as the store takes them."""
    return [SeedLine(s.text, s.url, s.fallback_url, s.importance, s.half_life_hours) for s in named]


async def open_run(database: Database, settings: Settings, order: DaemonOrder, now: float) -> int:
    """Start a run, or go on with one that was killed; its id.

    Raises:
        CrawlError: there is nothing to keep fresh.
    """
    last = await runs.latest(database.reader)
    if not order.seeds and not await runs.load(database.reader):
        raise CrawlError(NOTHING_TO_KEEP)
    async with database.transaction() as connection:
        await runs.add(connection, given(order.seeds), now)
        await pages.lift_depth(connection, settings.crawl.max_depth)
        await url_patterns.reconsider(connection, copy_rule(settings), now)
        if last is not None and last.ended_at is None:
            await runs.reopen(connection, last.run_id)
            await runs.record_settings(connection, last.run_id, recorded(settings, order))
            return last.run_id
        return await runs.start(connection, now, recorded(settings, order))


def recorded(settings: Settings, order: DaemonOrder) -> str:
    """The settings as the run keeps them, with what is in force of the order."""
    said = {"budget": f"{order.budget:g}/day", "policy": order.policy}
    daemon = settings.daemon.model_copy(update=said)
    return settings.model_copy(update={"daemon": daemon}).model_dump_json()
