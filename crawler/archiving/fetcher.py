"""A fetcher whose exchanges are archived: whatever goes over the wire passes here."""

from __future__ import annotations

from collections.abc import Callable

from freshet.crawler.archiving.warc import Exchange
from freshet.crawler.network.fetch import Fetcher, Request
from freshet.storage.records import FetchResult


class ArchivingFetcher:
    """Another fetcher, of whose exchanges ``keep`` is told as they end."""

    def __init__(self, fetcher: Fetcher, keep: Callable[[Exchange], None]) -> None:
        self._fetcher = fetcher
        self._keep = keep

    async def fetch(self, request: Request) -> FetchResult:
        """Make the exchange. One that is broken off has not ended, and is not kept."""
        result = await self._fetcher.fetch(request)
        self._keep(Exchange(request, result))
        return result

    async def close(self) -> None:
        """Close the other fetcher."""
        await self._fetcher.close()
