"""The WARC archive of a crawl or a daemon, which is written before the store."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler.archive.warc import Fields, WireExchange
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
from freshet.storage.records import DueUrl, FetchResult, Observation, StoredSeed

_DescribeRun: TypeAlias = Callable[[Settings, Sequence[StoredSeed]], Fields]
#: Settings that decide how a response is processed; others may hold secrets.
_DESCRIBED: Final = ("crawl", "fetch", "robots", "sitemaps", "signals", "traps", "change", "parse")


class RunArchive:
    """The archive of one invocation; ``describe_run`` gives the fields of its records."""

    def __init__(self, folder: Path, archive: ArchiveWriter, describe_run: _DescribeRun) -> None:
        self._describe_run = describe_run
        self._folder = folder
        self._archive = archive

    def wrap(self, fetcher: Fetcher) -> Fetcher:
        """Return a fetcher that archives what this one fetches."""
        return ArchivingFetcher(fetcher, self._archive.add)

    def unasked(self, due: DueUrl, observation: Observation) -> None:
        """Archive a URL that was not requested, with the reason."""
        result = FetchResult(
            due.fetch_url,
            "failed" if observation.kind == "failed" else "refused",
            observation.at,
            duration_s=0.0,
            reason=observation.reason or "",
            detail=observation.detail or "",
        )
        self._archive.add(WireExchange(None, result))

    def describe(self, settings: Settings, seeds: Sequence[StoredSeed]) -> None:
        """Describe all further records by these seeds and settings."""
        self._archive.describe(self._describe_run(settings, seeds))

    async def secure(self) -> None:
        """Write all finished requests to disk.

        Raises:
            StoreUnavailable: the archive cannot be written now; nothing is lost.
        """
        try:
            await self._archive.flush()
        except ArchiveUnwritable as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Write the rest, and close the last file.

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
    clock: Clock,
    *,
    began_at: float,
    lasting: bool,
    closed_by: AsyncExitStack,
) -> RunArchive | None:
    """Open the archive of the settings, if they name one, for a run begun at ``began_at``.

    Raises:
        CrawlError: the archive cannot be written, or another process writes it.
    """
    if not settings.archive.dir:
        return None
    folder = Path(settings.archive.dir)
    describe_run = partial(_described, run={"began": began_at, "lasting": lasting})
    try:
        archive = await asyncio.to_thread(
            ArchiveWriter,
            folder,
            describe_run(settings, seeds),
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
    opened = RunArchive(folder, archive, describe_run)
    closed_by.push_async_callback(opened.close)
    return opened


def _described(
    settings: Settings, seeds: Sequence[StoredSeed], run: Mapping[str, object]
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
        ("freshet-run", json.dumps(run)),
        ("freshet-seeds", json.dumps(listed, ensure_ascii=False)),
        ("freshet-settings", settings.model_dump_json(include=set(_DESCRIBED))),
    )
