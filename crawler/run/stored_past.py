"""The store as seen by the stages of a visit: data of earlier visits and runs."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from freshet.crawler.admission.copies import MOST_BYTES, CopyCandidate
from freshet.crawler.reduce.parser_process import Parser, Unparsable
from freshet.crawler.visit import sketch_of
from freshet.storage.tables import hosts, links, observations, pages, url_patterns

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    import aiosqlite
    from zstandard import ZstdCompressionDict

    from freshet.crawler.compare.detection import Content
    from freshet.crawler.frontier.clock import Clock
    from freshet.crawler.reduce.blocks import Blocks
    from freshet.crawler.reduce.page import ParsedPage
    from freshet.crawler.reduce.sitemaps import Feed
    from freshet.crawler.reduce.sketch import Sketch
    from freshet.storage.entries import Host, Role
    from freshet.storage.records import DueUrl, PageHistory, SitemapSource
    from freshet.storage.writer import VisitTables


class StoredPast:
    """Answers the queries of the stages from a store.

    The ``tables`` of a run identify pages without a predecessor. A redirect seen in the run is
    trusted for ``alias_age_s`` by its ``clock``.
    """

    def __init__(
        self,
        reader: aiosqlite.Connection,
        parser: Parser,
        tables: VisitTables | None = None,
        *,
        clock: Clock | None = None,
        alias_age_s: float = inf,
    ) -> None:
        self._reader, self._parser, self._tables = reader, parser, tables
        self._clock, self._alias_age_s = clock, alias_age_s

    # -- queries of a comparison (:class:`~.detection.PageHistories`, :class:`~.kinds.Versions`)

    async def history(self, page_id: int) -> PageHistory | None:
        """Return the history of a page, or None before its first capture with text."""
        return await observations.load(self._reader, page_id)

    async def predecessor(self, page_id: int) -> PageHistory | None:
        """Return the history of the URL from which a page has moved here."""
        if self._tables is not None and not self._tables.may_be_final(page_id):
            return None
        return await observations.predecessor(self._reader, page_id)

    async def sample(self, host_id: int, most: int) -> list[PageHistory]:
        """Return histories of at most ``most`` pages of a host."""
        return await observations.sample(self._reader, host_id, most)

    async def not_content(self, host_id: int) -> bytes | None:
        """Return a host's stored block pages."""
        return await hosts.not_content(self._reader, host_id)

    async def dictionary(self, host_id: int) -> ZstdCompressionDict | None:
        """Return the newest compression dictionary of a host."""
        return await observations.newest_dictionary(self._reader, host_id)

    async def text(self, due: DueUrl, content: Content | None = None) -> Blocks | None:
        """Return the text of a page's last version, by the current extraction."""
        if (found := content or await self.content(due.page_id)) is None:
            return None
        parsed = await parse_content(self._parser, due.role, due.fetch_url, found)
        return None if isinstance(parsed, Unparsable) else parsed.blocks

    async def standing(self, due: DueUrl, content: Content, digests: Set[int]) -> Blocks | None:
        """Return the blocks of a version that have these digests, from its complete text."""
        body, content_type = content
        found = await self._parser.standing(body, due.fetch_url, content_type, digests)
        return None if isinstance(found, Unparsable) else found

    async def again(self, due: DueUrl) -> Sketch | None:
        """Return the sketch of that text."""
        last = await self.text(due)
        return None if last is None else await sketch_of(last)

    async def content(self, page_id: int) -> Content | None:
        """Return the bytes of a page's last version, and their type."""
        from freshet.storage.queries import page  # noqa: PLC0415 - no first crawl asks

        return await page.last_content(self._reader, page_id)

    async def channels(self, page_id: int) -> bytes | None:
        """Return the channels of a page's last version."""
        from freshet.storage.queries import page  # noqa: PLC0415 - likewise

        return await page.channels(self._reader, page_id)

    # -- queries of admission (:class:`~.admit.Aliases`, :class:`~.copies.HostTexts`)

    async def alias_target(self, url: str) -> int | None:
        """Return the page that a URL is an alias of, or None."""
        since = -inf if self._clock is None else self._clock.now() - self._alias_age_s
        return await pages.alias_target(self._reader, url, since)

    async def led_to(self, page_id: int) -> str | None:
        """Return the URL to which a page led at its last visit."""
        return await pages.led_to(self._reader, page_id)

    async def texts(self, host_id: int, most: int) -> Sequence[tuple[int, str, bytes]]:
        """Return the first pages of a host: id, URL and versioned sketch."""
        return await url_patterns.texts(self._reader, host_id, most)

    async def shown(self, page_id: int, url: str) -> CopyCandidate | None:
        """Read a page again; ``url`` is a URL of its host."""
        found = await self.content(page_id)
        if found is None or len(found[0]) > MOST_BYTES:
            return None
        parsed = await self._parser.parse(found[0], url, found[1])
        return (
            None
            if isinstance(parsed, Unparsable)
            else CopyCandidate(url, parsed.blocks.texts, *found)
        )

    # -- queries of listings and requests

    async def sources(self, page_id: int) -> Sequence[SitemapSource]:
        """Return the sitemaps that redirect to a page, or name it in an index."""
        return await pages.sources(self._reader, page_id)

    async def offsite_at(self, url: str, origin: str) -> list[tuple[str, int]]:
        """Return the URLs of an origin to which a page links out of scope, with its depth."""
        return await links.offsite_at(self._reader, url, origin)

    async def hosts(self, host_ids: Sequence[int]) -> list[Host]:
        """Return hosts with all their stored data."""
        return await hosts.load(self._reader, host_ids, whole=True)


async def parse_content(
    parser: Parser, role: Role, url: str, content: tuple[bytes, str | None]
) -> ParsedPage | Feed | Unparsable:
    """Parse the content of a page or feed, given as bytes and content type."""
    if role == "feed":
        return await parser.parse_feed(content[0], url)
    return await parser.parse(content[0], url, content[1])
