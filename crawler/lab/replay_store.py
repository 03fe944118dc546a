"""A Freshet database with its stored bodies, as the runs that a replay takes in.

It is only read, as one snapshot: a daemon may write it meanwhile, and its log grows until the
replay has ended. Nothing is made up: a look at content whose bytes are not kept is left out and
counted, and a capture that was taken back, with which its bytes went, is the failure as which the
store knows it. Of a host's robots.txt the last body is known alone, and given before its first page
of each run; what was asked is not judged by it again. Answers to probes are not kept.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Final

import aiosqlite

from freshet.crawler.archive.replay import Played
from freshet.crawler.fetch.client import Accept
from freshet.crawler.lab.replay import REPLAYED_FROM, RunPast
from freshet.crawler.reduce.sketch import body_digest
from freshet.crawler.tally import CrawlError
from freshet.crawler.urls import canonical, is_http, origin
from freshet.storage.database import StoreError, reading
from freshet.storage.entries import RobotsRecord
from freshet.storage.queries import page as page_queries
from freshet.storage.queries import replay
from freshet.storage.queries.replay import Extent, Look, LookPage, LookRun, SeenVersion
from freshet.storage.records import FetchResult, SeedLine
from freshet.storage.tables import hosts
from freshet.storage.words import Kind, Outcome, RobotsStanding, Role, Rung

# -- stored looks ------------------------------------------------------------
#
# A look that a store has written down, as the exchange that it came of.
#
# A store keeps what was found, not what went over the wire. Given back is what it knows: outcome,
# status and words as they were observed; the bytes of a content with its Content-Type, of which
# its encoding follows as before; ETag and Last-Modified of the page's last answer, and what its
# last content asks of crawlers. Date, Cache-Control and Link are not known, and so not given.

#: The reason of a redirect to another spelling of the same URL.
_RESPELLED: Final = "respelled"
_CONTENT: Final = frozenset({str(Kind.NEW), str(Kind.CHANGED), str(Kind.UNCHANGED)})
_OTHERS: Final = {
    str(outcome): outcome
    for outcome in (
        Outcome.REDIRECTED, Outcome.GONE, Outcome.REFUSED, Outcome.SKIPPED, Outcome.FAILED
    )
}  # fmt: skip


def outcome_of(look: Look) -> Outcome | None:
    """How the exchange ended; None where it cannot be given back.

    That is where it saw content that is not kept, or is of no kind.
    """
    if look.is_taken_back:
        return Outcome.FAILED
    if look.kind not in _CONTENT:
        return _OTHERS.get(look.kind)
    if look.version is None or not look.version.is_kept:
        return None
    return Outcome.NOT_MODIFIED if look.rung == Rung.NOT_MODIFIED else Outcome.FETCHED


def played_of(look: Look, outcome: Outcome, body: bytes = b"") -> Played:
    """The exchange; ``body`` are the bytes of what was fetched, decoded."""
    page, has_ended_well = look.page, outcome in (Outcome.FETCHED, Outcome.NOT_MODIFIED)
    result = FetchResult(
        _asked(look),
        outcome,
        look.at - look.duration_s,
        look.duration_s,
        status=look.status,
        reason=None if has_ended_well else look.reason,
        detail=None if has_ended_well else look.detail,
        headers=_headers(look, outcome),
        wire_body=body,
        body=body,
        location=(look.target or look.detail) if outcome is Outcome.REDIRECTED else None,
    )
    # Whatever was sent took its time, or had an answer.
    is_unasked = outcome is Outcome.FAILED and look.status is None and not look.duration_s
    accept = Accept.SITEMAP if page.role is Role.SITEMAP else Accept.PAGE
    return Played(
        result, accept, is_ours=True, is_unasked=is_unasked, depth=page.depth, role=page.role
    )


def robots_of(origin: str, known: RobotsRecord, at: float, *, no_https: bool = False) -> Played:
    """The exchange of a host's robots.txt; ``no_https``: nothing spoke TLS there."""
    url = f"{origin}/robots.txt"
    if no_https:
        result = FetchResult(url, Outcome.FAILED, at, 0.0, reason="connect", detail=known.reason)
    elif known.standing is RobotsStanding.PARSED:
        result = FetchResult(url, Outcome.FETCHED, at, 0.0, status=200, body=known.body)
    elif known.standing is RobotsStanding.ALLOW_ALL:
        result = FetchResult(url, Outcome.GONE, at, 0.0, status=404)
    else:
        reason = str(RobotsStanding.UNREACHABLE)
        result = FetchResult(url, Outcome.FAILED, at, 0.0, reason=reason, detail=known.reason)
    return Played(result, Accept.ROBOTS, is_ours=True)


def _asked(look: Look) -> str:
    """What went on the wire: as far as is known what does now."""
    if look.kind == Kind.REDIRECTED and look.reason == _RESPELLED:
        # Another spelling than the one that it led to; which, is not known.
        return look.page.url if look.page.url != look.detail else f"{look.page.url}#"
    return look.page.fetch_url if _names(look.page.fetch_url, look.page) else look.page.url


def _names(url: str, page: LookPage) -> bool:
    try:
        return canonical(url) == page.url
    except ValueError:
        return False


def _headers(look: Look, outcome: Outcome) -> tuple[tuple[bytes, bytes], ...]:
    version = look.version
    if outcome is not Outcome.FETCHED or version is None:
        return ()
    known = {
        "Content-Type": version.content_type,
        "ETag": look.validators.etag,
        "Last-Modified": look.validators.last_modified,
        "X-Robots-Tag": ", ".join(version.directives) or None,
    }
    return tuple(
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in known.items()
        if value is not None
    )


_TOLD_EVERY: Final = 500
_SAW_CONTENT: Final = frozenset({Outcome.FETCHED, Outcome.NOT_MODIFIED})
#: Of damages so many are told one by one.
_LISTED: Final = 20


#: A line of the site list: its text, URL, URL to fall back to and importance.


@dataclass(slots=True)
class Gaps:
    """What of a store could not be taken in: ``extent`` of all of it, damages of this replay."""

    extent: Extent
    damages: list[str] = field(default_factory=list)
    damaged: int = 0

    def add(self, damage: str) -> None:
        """Note a look whose body is damaged; the first ones word for word."""
        self.damaged += 1
        if len(self.damages) < _LISTED:
            self.damages.append(damage)

    def as_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "looks": self.extent.looks,
            "looks_without_bodies": self.extent.not_kept,
            "looks_taken_back": self.extent.taken_back,
            "looks_odd": self.extent.odd,
            "looks_with_damaged_bodies": self.damaged,
            "first_damages": self.damages,
        }

    def lines(self) -> list[str]:
        """The same as lines for people; the last one is of what is not there."""
        found = [*self.damages]
        if self.damaged > len(self.damages):
            found.append(
                f"and {self.damaged - len(self.damages):,} more looks whose bodies are damaged"
            )
        it = self.extent
        if it.odd:
            found.append(f"{it.odd:,} looks of no kind, time or page that there could be: left out")
        if it.taken_back:
            found.append(
                f"{it.taken_back:,} captures that were taken back as no content: their bytes are "
                "not kept, and they are failures as in the store"
            )
        found.append(
            f"{it.not_kept:,} of {it.looks:,} looks saw content whose bodies are not kept, and "
            "are left out"
        )
        return found


class StoredPast:
    """A store in the order of time. ``connection`` is one snapshot of it, ``tell`` shows progress.

    Make it by :meth:`of`.
    """

    def __init__(
        self,
        connection: aiosqlite.Connection,
        made_at: float,
        extent: Extent,
        tell: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._made_at = made_at
        self._tell = tell
        self._played = 0
        self.gaps = Gaps(extent)

    @classmethod
    async def of(cls, connection: aiosqlite.Connection, tell: Callable[[str], None]) -> StoredPast:
        """See how much there is, before anything is played."""
        made_at, extent = await replay.born_at(connection), await replay.extent(connection)
        return cls(connection, made_at, extent, tell)

    async def runs(self) -> list[RunPast]:
        """The runs of the store.

        Raises:
            CrawlError: there is nothing in them.
        """
        found = await replay.runs(self._connection)
        if not found or self.gaps.extent.looks == self.gaps.extent.odd:
            raise CrawlError("the store has seen no page yet; there is nothing to replay")
        ends = [run.began_at for run in found[1:]]
        return [await self._run(run, end) for run, end in zip(found, [*ends, inf], strict=True)]

    async def _run(self, run: LookRun, end: float) -> RunPast:
        seeds = [line for line in await replay.seeds(self._connection, end) if _is_site(line)]

        async def exchanges(after: float) -> AsyncIterator[Played]:
            async for played in self._schemes(run, seeds):
                yield played
            async for played in self._exchanges(run, after):
                yield played

        return RunPast(
            run.began_at, seeds, exchanges, _no_probe, run.is_lasting, source=self._made_at
        )

    async def _schemes(self, run: LookRun, seeds: Sequence[SeedLine]) -> AsyncIterator[Played]:
        """The robots.txt by which it was decided whether a line without a scheme is https."""
        open_lines = {
            str(origin(line.url)): line for line in seeds if line.fallback_url is not None
        }
        for at_origin, line in open_lines.items():
            secure = await replay.found_at(self._connection, canonical(line.url))
            plain = await replay.found_at(
                self._connection, canonical(line.fallback_url or line.url)
            )
            robots = await self._robots_at(at_origin)
            if robots is not None and (secure is not None or plain is not None):
                no_https = plain is not None and (secure is None or plain < secure)
                yield robots_of(at_origin, robots, run.began_at, no_https=no_https)

    async def _exchanges(self, run: LookRun, after: float) -> AsyncIterator[Played]:
        known: set[int] = set()
        async for some in replay.looks(self._connection, run.run_id, after):
            for look in some:
                if look.page.host_id not in known:
                    known.add(look.page.host_id)
                    robots = await self._robots_at(look.page.origin)
                    if robots is not None:
                        yield robots_of(look.page.origin, robots, look.at - look.duration_s)
                played = await self._exchange(look)
                if played is not None:
                    yield played

    async def _exchange(self, look: Look) -> Played | None:
        self._played += 1
        if self._played % _TOLD_EVERY == 0:
            self._tell(f"Replaying {self._played:,} of {self.gaps.extent.looks:,}")
        outcome, version = outcome_of(look), look.version
        if outcome is None:
            return None
        if version is None or outcome not in _SAW_CONTENT:
            return played_of(look, outcome)
        try:
            # A 304 says that it is still so: that must be there, too.
            body = await self._body(version)
        except StoreError as error:
            self.gaps.add(f"{look.page.url}: {error}; the look of {look.at:.0f} is left out")
            return None
        return played_of(look, outcome, body if outcome is Outcome.FETCHED else b"")

    async def _body(self, version: SeenVersion) -> bytes:
        """The bytes of a version.

        Raises:
            StoreError: they are damaged.
        """
        body = await page_queries.body(self._connection, version.version_id)
        if body is None or body_digest(body) != version.body_digest:
            raise StoreError(f"the body of version {version.version_id} is another one")
        return body

    async def _robots_at(self, at_origin: str) -> RobotsRecord | None:
        try:
            host = await hosts.find(self._connection, at_origin)
        except ValueError:
            # A word that no Freshet wrote.
            return None
        return None if host is None else host.robots


async def require_new(db: Path, store: Path) -> None:
    """See to it that a file is new, or what a replay of this very store has made of it.

    Every run of such a file says so. Consequence: no crawl has ever written into it.

    Raises:
        CrawlError: it is something else.
        StoreError: one of them cannot be read.
    """
    if not db.exists() or (db.is_file() and not db.stat().st_size):
        return
    async with reading(store) as connection:
        made_at = await replay.born_at(connection)
    async with reading(db) as connection:
        if await replay.born_at(connection) == made_at:
            raise CrawlError(f"{db}: is {store} itself or a copy of it; name a new file with --db")
        records = await replay.records_of_runs(connection)
    if any(_source_of(record) != made_at for record in records):
        raise CrawlError(f"{db}: no replay of {store} made it; name a new file with --db")


def _source_of(record: str) -> object:
    try:
        said = json.loads(record)
    except ValueError:
        return None
    return said.get(REPLAYED_FROM) if isinstance(said, dict) else None


def _is_site(line: SeedLine) -> bool:
    """Whether a line has addresses that are any."""
    try:
        return all(
            is_http(canonical(url)) for url in (line.url, line.fallback_url) if url is not None
        )
    except ValueError:
        return False


async def _no_probe(_at_origin: str, _after: float) -> FetchResult | None:
    return None
