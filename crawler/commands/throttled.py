"""Which URLs of a site are not crawled, and why: what ``discover --explain`` tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import aiosqlite

from freshet.crawler.admission.traps import TrapKind, TrapLimits, classify
from freshet.crawler.commands.formats import require_readable
from freshet.crawler.commands.sources.site_history import hosts_of
from freshet.storage.queries import page
from freshet.storage.tables import hosts, url_patterns
from freshet.storage.tables.url_patterns import Reach, Throttle, Yield

#: URLs of one reason that are looked at for an example of each shape.
_LOOKED_AT: Final = 5_000
_WHY: Final = {
    "session": "a session id tells them apart",
    "calendar": "a date alone tells them apart",
    "query": "they differ in the values of the same parameters",
    "feeds": "a site is asked for so many feeds",
}
_WITHOUT_SHAPE: Final = {
    "nofollow": "all links to them are nofollow",
    "depth": "they lie deeper than crawl.max_depth",
    "extension": "their ending is in fetch.excluded_extensions",
}


@dataclass(frozen=True, slots=True)
class Throttled:
    """What keeps URLs of a site from being crawled; ``origins`` are by host id.

    ``yields`` are what its patterns gave, also those that are not throttled.
    """

    site: str
    origins: dict[int, str]
    reach: Reach
    throttles: list[Throttle]
    yields: list[Yield]


async def throttled(db: Path, site: str) -> Throttled:
    """What a store knows of a site (a host or URL).

    Raises:
        CrawlError: the store knows no such site.
        StoreError: there is no such file, or it is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        await require_readable(connection, db)
        host_ids = await hosts_of(connection, db, site)
        origins = await hosts.origins(connection)
        return Throttled(
            site,
            {host_id: origins[host_id] for host_id in host_ids},
            await url_patterns.reach(connection, host_ids),
            await _with_examples(connection, await url_patterns.throttles(connection, host_ids)),
            await url_patterns.yields(connection, host_ids),
        )


def why(throttle: Throttle) -> str:
    """Why URLs are held back, in some words."""
    if throttle.shape is None:
        return _WITHOUT_SHAPE.get(throttle.kind, throttle.kind)
    if throttle.closed_at is not None:
        return f"{throttle.copies:,} of {throttle.crawled:,} read showed nothing of their own"
    kind = throttle.kind.removeprefix("trap: ")
    if kind == TrapKind.PATH:
        return "endless depth"
    said = _WHY.get(kind, kind)
    return f"{said}; the first {throttle.crawled:,} may be crawled"


def still(throttle: Throttle) -> str | None:
    """Which of those held back are asked for all the same, None for none."""
    if throttle.closed_at is None:
        return None
    return f"one in {url_patterns.sampling(throttle.held):,} is asked for ({throttle.sampled:,} so far)"


async def _with_examples(
    connection: aiosqlite.Connection, found: Sequence[Throttle]
) -> list[Throttle]:
    """The same, each with one of the URLs that it holds back, where one is among the first."""
    wanted = {(each.host_id, each.kind) for each in found if each.example is None and each.held}
    examples: dict[tuple[int, str, str | None], str] = {}
    for host_id, kind in sorted(wanted):
        for url in reversed(await url_patterns.held(connection, host_id, kind, _LOOKED_AT)):
            sign = classify(url, TrapLimits())
            examples[host_id, kind, sign.shape if sign is not None else None] = url
    return [
        replace(each, example=each.example or examples.get((each.host_id, each.kind, each.shape)))
        for each in found
    ]
