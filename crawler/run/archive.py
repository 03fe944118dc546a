"""The WARC archive of a crawl or a daemon, which is written before the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler.archive.warc import Fields
from freshet.crawler.archive.writer import ArchiveInUse, ArchiveUnwritable, ArchiveWriter
from freshet.crawler.clock import Clock
from freshet.crawler.network import user_agent
from freshet.crawler.tally import CrawlError
from freshet.storage.database import StoreUnavailable
from freshet.storage.records import StoredSeed

#: Settings that decide how a response is processed; others may hold secrets.
_DESCRIBED: Final = ("crawl", "fetch", "robots", "sitemaps", "signals", "traps", "change", "parse")


async def archiving(
    settings: Settings,
    seeds: Sequence[StoredSeed],
    clock: Clock,
    *,
    began_at: float,
    lasting: bool,
    closed_by: AsyncExitStack,
) -> ArchiveWriter | None:
    """Open the archive of the settings, if they name one, for a run begun at ``began_at``.

    Raises:
        CrawlError: the archive cannot be written, or another process writes it.
    """
    if not settings.archive.dir:
        return None
    folder = Path(settings.archive.dir)
    try:
        archive = await asyncio.to_thread(
            ArchiveWriter,
            folder,
            described(settings, seeds, began_at=began_at, lasting=lasting),
            max_file_bytes=settings.archive.max_file_bytes,
            now=clock.now,
        )
    except ArchiveInUse as error:
        raise CrawlError(
            f"{folder}: another process writes this archive; name another folder"
        ) from error
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise CrawlError(f"{folder}: the archive cannot be written: {why}") from error
    closed_by.push_async_callback(secure, archive.close)
    return archive


async def secure(write: Callable[[], Awaitable[None]]) -> None:
    """Flush or close an archive.

    Raises:
        StoreUnavailable: the archive cannot be written now; nothing is lost.
    """
    try:
        await write()
    except ArchiveUnwritable as error:
        advice = "free some space and run the same command again"
        raise StoreUnavailable(error.folder, error.why, advice) from error


def described(
    settings: Settings, seeds: Sequence[StoredSeed], *, began_at: float, lasting: bool
) -> Fields:
    """Return the software, settings and seeds of a run, which a replay needs."""
    columns = ("text", "url", "fallback_url", "importance", "half_life_hours")
    listed = [{name: getattr(seed, name) for name in columns} for seed in seeds]
    return (
        ("software", f"Freshet/{__version__}"),
        ("format", "WARC File Format 1.1"),
        (
            "conformsTo",
            "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        ),
        ("isPartOf", settings.crawl.product),
        ("robots", "obey"),
        ("http-header-user-agent", user_agent(settings.crawl.product, settings.crawl.contact)),
        ("freshet-run", json.dumps({"began": began_at, "lasting": lasting})),
        ("freshet-seeds", json.dumps(listed, ensure_ascii=False)),
        ("freshet-settings", settings.model_dump_json(include=set(_DESCRIBED))),
    )
