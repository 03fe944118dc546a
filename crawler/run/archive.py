"""The archive of a crawl or a daemon: opened, described, and kept ahead of the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freshet.config.settings import Settings
from freshet.crawler import __version__
from freshet.crawler.archive.warc import Fields, Unasked
from freshet.crawler.archive.writer import (
    ArchiveInUse,
    ArchiveUnwritable,
    ArchiveWriter,
    ArchivingFetcher,
)
from freshet.crawler.clock import Clock
from freshet.crawler.fetch.client import Fetcher
from freshet.crawler.network import user_agent
from freshet.crawler.tally import CrawlError
from freshet.storage.database import StoreUnavailable
from freshet.storage.records import DueUrl, Observation, StoredSeed
from freshet.storage.words import Outcome

#: The settings that decide what is made of an answer; others may hold what is nobody's business.
_TOLD: Final = ("crawl", "fetch", "robots", "sitemaps", "signals", "traps", "change", "parse")


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """When a run began (Unix seconds), and whether it is a daemon's, which has no end."""

    began_at: float
    is_lasting: bool


class Archiving:
    """Archives what the parts of one invocation do."""

    def __init__(self, folder: Path, archive: ArchiveWriter, run: ArchivedRun) -> None:
        self._run = run
        self._folder = folder
        self._archive = archive

    def around(self, fetcher: Fetcher) -> Fetcher:
        """The same fetcher, archived."""
        return ArchivingFetcher(fetcher, self._archive.add)

    def unasked(self, due: DueUrl, observation: Observation) -> None:
        """A URL was not asked for; its observation says why."""
        self._archive.add(
            Unasked(
                due.fetch_url, observation.at, Outcome(observation.kind),
                observation.reason or "", observation.detail or "",
            )
        )  # fmt: skip

    def describe(self, settings: Settings, seeds: Sequence[StoredSeed]) -> None:
        """What is written from now on comes of these seeds and settings."""
        self._archive.describe(described(settings, seeds, self._run))

    async def secure(self) -> None:
        """Return when all exchanges that have ended are on the disk.

        Raises:
            StoreUnavailable: the archive cannot be written now; nothing is lost.
        """
        try:
            await self._archive.flush()
        except ArchiveUnwritable as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Write what is left, and close the last file.

        Raises:
            StoreUnavailable: as :meth:`secure` says.
        """
        try:
            await self._archive.close()
        except ArchiveUnwritable as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: ArchiveUnwritable) -> StoreUnavailable:
        return StoreUnavailable(
            self._folder, error.why, "free some space and run the same command again"
        )


async def archiving(
    settings: Settings,
    seeds: Sequence[StoredSeed],
    run: ArchivedRun,
    clock: Clock,
    *,
    closed_by: AsyncExitStack,
) -> Archiving | None:
    """The archive that the settings ask for, None if they ask for none.

    Raises:
        CrawlError: it cannot be written, or another process writes it.
    """
    if not settings.archive.dir:
        return None
    folder = Path(settings.archive.dir)
    try:
        archive = await asyncio.to_thread(
            ArchiveWriter, folder, described(settings, seeds, run),
            max_file_bytes=settings.archive.max_file_bytes, now=clock.now,
        )  # fmt: skip
    except ArchiveInUse as error:
        raise CrawlError(f"{folder}: another process writes this archive") from error
    except (OSError, sqlite3.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise CrawlError(f"{folder}: the archive cannot be written: {why}") from error
    opened = Archiving(folder, archive, run)
    closed_by.push_async_callback(opened.close)
    return opened


def described(settings: Settings, seeds: Sequence[StoredSeed], run: ArchivedRun) -> Fields:
    """Who archives, by which rules, and from which seeds; so a replay knows both."""
    listed = [
        {
            "text": seed.text, "url": seed.url, "fallback_url": seed.fallback_url,
            "importance": seed.importance, "half_life_hours": seed.half_life_hours,
        }
        for seed in seeds
    ]  # fmt: skip
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
        ("freshet-run", json.dumps({"began": run.began_at, "lasting": run.is_lasting})),
        ("freshet-seeds", json.dumps(listed, ensure_ascii=False)),
        ("freshet-settings", settings.model_dump_json(include=set(_TOLD))),
    )
