"""What was fetched, taken in again, gives the store that the crawl gave."""

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.fetch.client import Fetcher, Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.archive_player import PlayedExchange
from freshet.crawler.run.crawl import crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.crawler.run.replay import Archives, RecordedRun, RunPast, replay
from freshet.crawler.urls import origin
from freshet.storage.records import FetchResult, StoredSeed
from scripts.synthetic_server import serve
from tests.integration.quick import assert_consistent, order, quick, unwatched
from tests.storage.small_store import rows

DAY_S = 86_400.0


@dataclass(slots=True)
class Tape:
    """A fetcher that keeps what another one fetched."""

    fetcher: Fetcher
    played: list[PlayedExchange] = field(default_factory=list)

    async def fetch(self, request: Request) -> FetchResult:
        result = await self.fetcher.fetch(request)
        self.played.append(PlayedExchange(result, request.accept, is_ours=True))
        return result

    def past(self, db: Path, *, is_lasting: bool = False) -> RunPast:
        """The run as an archive would have it; of its site list the store tells."""

        ((began_at,),) = rows(db, "SELECT max(started_at) FROM crawl_run")
        listed = rows(db, "SELECT text, url, fallback_url, importance FROM seed")
        seeds = [StoredSeed(*row) for row in listed]
        return RunPast(began_at, seeds, self, is_lasting)

    async def exchanges(self, after: float) -> AsyncIterator[PlayedExchange]:
        for each in sorted(self.played, key=lambda it: it.result.ended_at):
            if each.result.ended_at >= after:
                yield each

    async def probe(self, at_origin: str, after: float) -> FetchResult | None:
        for each in sorted(self.played, key=lambda it: it.result.ended_at):
            is_next = each.accept == "probe" and each.result.ended_at >= after
            if is_next and str(origin(each.result.url)) == at_origin:
                return each.result
        return None


OBSERVED = """
SELECT p.url, o.at, o.kind, o.rung, o.status, o.reason, o.detail, o.resemblance,
       o.blocks_added, o.blocks_removed, o.size_bytes
FROM observation AS o JOIN page AS p ON p.id = o.page_id
WHERE o.kind <> 'refused' ORDER BY p.url, o.at
"""
FOUND = """
SELECT p.url, o.at, o.kind, o.rung
FROM finding AS o JOIN page AS p ON p.id = o.page_id
WHERE o.kind <> 'refused' ORDER BY p.url, o.at
"""
PAGES = """
SELECT p.url, p.fetch_url, p.role, p.held_back, a.url, p.alias_kind, p.last_kind, p.status,
       p.etag, p.last_modified, p.body_digest, p.text_digest, p.title, p.copy_of IS NULL
FROM page AS p LEFT JOIN page AS a ON a.id = p.alias_of
WHERE p.last_kind <> 'refused' ORDER BY p.url
"""
LINKS = """
SELECT s.url, d.url, l.position, l.rel, l.anchor, l.first_seen_at,
       l.last_seen_at, l.gone_at
FROM link AS l JOIN page AS s ON s.id = l.src_id JOIN page AS d ON d.id = l.dst_id
ORDER BY 1, 2, 3, 5, 6
"""


def same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Whether rows are equal, times to a millisecond: an archive writes them in decimals."""
    return all(
        x == y or (isinstance(x, float) and isinstance(y, float) and abs(x - y) < 0.001)
        for x, y in zip(a, b, strict=True)
    )


def assert_equal(live: Path, again: Path, *, refused: bool = False) -> None:
    """The tables say the same, kind by kind and time by time; ``refused``: of refusals, too."""
    for part in (OBSERVED, PAGES, LINKS, FOUND):
        query = part
        if refused:
            query = part.replace("kind <> 'refused'", "kind NOT NULL")
        theirs, ours = rows(live, query), rows(again, query)
        assert theirs
        assert len(theirs) == len(ours)
        assert [(a, b) for a, b in zip(theirs, ours, strict=True) if not same(a, b)][:5] == []
    assert_consistent(again)


@pytest.mark.long
async def test_a_replay_of_a_daemon_gives_what_the_daemon_found(tmp_path: Path) -> None:
    live, again = tmp_path / "live.db", tmp_path / "again.db"
    web = showcase(seed=7, traps=False)
    clock = VirtualClock(web.start_at + 5 * DAY_S)
    tape = Tape(SyntheticFetcher(web, clock.now))
    seeds = seeds_from_arguments([f"http://{name}.localhost/" for name in web.sites]).seeds
    settings = quick(change__probe=True)
    order = DaemonOrder(live, seeds, 300.0, "site_clock", 4 * DAY_S)
    await keep(settings, order, watch=unwatched, fetcher=tape, clock=clock, rng=Random(1))
    await replay(settings, again, [tape.past(live, is_lasting=True)])
    assert_equal(live, again)


@pytest.mark.long
async def test_an_archive_gives_the_store_of_the_crawls_that_wrote_it(tmp_path: Path) -> None:
    live, again, folder = tmp_path / "live.db", tmp_path / "again.db", tmp_path / "archive"
    web = showcase(seed=7, traps=False)
    settings = quick(change__probe=True, archive__dir=str(folder))
    async with serve(web) as server:
        server.clock.advance(5 * DAY_S)
        for _ in range(2):
            await crawl(settings, order(live, server, list(web.sites)), watch=unwatched)
            server.clock.advance(10 * DAY_S)
    with closing(Archives([folder], tmp_path / "order", quick(), _untold)) as archives:
        pasts = archives.runs()
        assert [len(past.seeds) for past in pasts] == [len(web.sites)] * 2
        # Killed, and begun again: it goes on where it was.
        half = [pasts[0], cut(pasts[1], 100)]
        rule = {"name": "late", "match": "*", "url": "http://127.0.0.1:2/"}
        later = quick(change__probe=True, alerts__rules=[rule])
        await replay(later, again, half)
        await replay(later, again, pasts)
        assert archives.losses.damages == []
    assert_equal(live, again, refused=True)
    assert rows(again, "SELECT count(*) FROM alert") == [(0,)]


def _untold(_word: str) -> None:
    """Nobody looks."""


@dataclass
class Cut:
    """A run of which only so many exchanges are taken in."""

    whole: RecordedRun
    count: int

    async def exchanges(self, after: float) -> AsyncIterator[PlayedExchange]:
        left = self.count
        async for each in self.whole.exchanges(after):
            if not left:
                return
            left -= 1
            yield each

    async def probe(self, origin: str, after: float) -> FetchResult | None:
        return await self.whole.probe(origin, after)


def cut(past: RunPast, count: int) -> RunPast:
    return replace(past, recorded=Cut(past.recorded, count))


async def test_a_replay_does_not_mix_with_another_crawl(tmp_path: Path) -> None:
    db, folder = tmp_path / "crawl.db", tmp_path / "archive"
    web = showcase(seed=7, traps=False)
    async with serve(web) as server:
        one = order(db, server, ["docs"])
        await crawl(quick(archive__dir=str(folder)), one, watch=unwatched)
        other = order(tmp_path / "other.db", server, ["docs"])
        await crawl(quick(), other, watch=unwatched)
    with (
        closing(Archives([folder], tmp_path / "order", quick(), _untold)) as archives,
        pytest.raises(CrawlError, match=r"other\.db: has pages of other archives"),
    ):
        await replay(quick(), tmp_path / "other.db", archives.runs())
