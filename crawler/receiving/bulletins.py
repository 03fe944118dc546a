"""The bodies of notifications that are feeds: which pages may there be?

A hub with a secret of its own may send what it likes. So a body is read out of the event loop's
process, one at a time, and of a subscription once in five minutes; what is not read is not missed:
the topic itself is fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from freshet.crawler.parsing.quarantine import Parser, Unparsable
from freshet.crawler.parsing.sitemaps import looks_like_feed
from freshet.crawler.receiving.buckets import Buckets, Flow
from freshet.crawler.receiving.subscriber import Subscriber
from freshet.crawler.urls import origin
from freshet.storage.entries import Subscription

_READ: Final = Flow(1.0, 1.0 / 300.0)
_PREFIX_BYTES: Final = 2_048
#: A feed of more is read in part: the front, where what is new stands.
_ENTRIES: Final = 500


class Bulletins:
    """Reads feeds that were pushed, where ``parser`` has time for it."""

    def __init__(self, parser: Parser, now: Callable[[], float]) -> None:
        self._parser = parser
        self._now = now
        self._reads = Buckets(_READ, 10_000)
        self._task: asyncio.Task[None] | None = None

    def read(self, subscriber: Subscriber, known: Subscription, body: bytes) -> None:
        """Read a body, unless that is too much now."""
        if not looks_like_feed(body[:_PREFIX_BYTES]):
            return
        if self._task is not None and not self._task.done():
            return
        if self._reads.take(known.page_id, self._now()):
            self._task = asyncio.create_task(self._read(subscriber, known, body))

    async def _read(self, subscriber: Subscriber, known: Subscription, body: bytes) -> None:
        feed = await self._parser.parse_feed(body, known.topic)
        if isinstance(feed, Unparsable):
            return
        home = origin(known.url)
        urls = [url for url in feed.links.fetch_urls if origin(url) == home]
        subscriber.lists(known, urls[:_ENTRIES], self._now())

    async def close(self) -> None:
        """Leave what is being read."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
