"""Failures of our own network: whatever the requests end with, no host is held responsible."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.storage.records import FetchResult
from tests.integration.quick import quick, unwatched
from tests.integration.test_daemon import HOUR_S, Server, Stage
from tests.variants import first

#: An hour of each: the reason, the status if there is one, and how long a request takes.
KINDS = {
    "refused": ("connect", None, 0.0),
    "dead proxy": ("connect", None, 0.0),
    "reset": ("hung_up", None, 0.1),
    "silent": ("timeout_headers", None, 30.0),
    "unreachable": ("timeout_connect", None, 10.0),
    "dns": ("dns", None, 0.0),
    "no resolver": ("no_resolver", None, 5.0),
    "link down": ("no_network", None, 0.0),
    "tls broken off": ("tls", None, 0.0),
    "tls replaced": ("not_tls", None, 0.0),
    "names denied": ("no_such_host", None, 0.0),
    "gateway": ("http_502", 502, 0.1),
    "gateway without a way": ("http_503", 503, 0.1),
    "gateway waits": ("http_504", 504, 0.1),
}
#: They differ in what tells the network from a host: what was sent, and what was not.
TELLING = ("reset", "dns")


def each_of(kinds: Iterable[str], telling: Collection[str] = TELLING) -> list[object]:
    """Return parameters of which only the telling ones are tried in a quick run."""
    return [pytest.param(it, marks=[] if it in telling else pytest.mark.long) for it in kinds]


EACH = each_of(KINDS)
#: What comes, but is no HTTP.
RUBBISH = {
    "rubbish": ("protocol", None, 0.1),
    "a huge head": ("headers_too_large", None, 0.1),
    "half a head": ("cut_short", None, 0.1),
}


@dataclass(slots=True)
class Cut(Server):
    """Between two times every request ends in one way."""

    kind: str = "refused"
    from_at: float = inf
    until: float = inf
    hosts: frozenset[str] | None = None
    look_at: float = inf
    look: Callable[[], object] = lambda: None
    seen: object = None

    async def fetch(self, request: Request) -> FetchResult:
        result = await Server.fetch(self, request)
        if self.clock.now() >= self.look_at:
            self.look_at, self.seen = inf, self.look()
        is_cut = self.from_at <= self.clock.now() < self.until
        if not is_cut or (self.hosts is not None and host_of(request.url) not in self.hosts):
            return result
        reason, status, took = (KINDS | RUBBISH)[self.kind]
        now = self.clock.now()
        return FetchResult(request.url, "failed", now - took, took, status, reason, "words")


def host_of(url: str) -> str:
    return url.split("/")[2]


def cut_off(tmp_path: Path, kind: str, hours: float) -> tuple[Stage, Cut]:
    """Return a stage whose network fails from the second hour on."""
    stage = Stage(tmp_path / "crawl.db")
    at = stage.clock.now()
    server = Cut(
        stage.server.web, stage.clock, kind=kind,
        from_at=at + 2 * HOUR_S, until=at + (2 + hours) * HOUR_S,
    )  # fmt: skip
    stage.server = server
    return stage, server


def charged(stage: Stage, server: Cut) -> int:
    """Return the number of failures that pages are charged with."""
    sql = "SELECT count(*) FROM observation WHERE kind = 'failed' AND at >= {} AND at < {}"
    (number,) = stage.rows(sql.format(server.from_at, server.until))[0]
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize("kind", first(1, EACH))
async def test_after_an_hour_without_a_network_requests_flow_within_a_minute(
    tmp_path: Path, kind: str
) -> None:
    stage, server = cut_off(tmp_path, kind, 1.0)
    await stage.keep(4 * 1_440.0, 3.5 / 24)
    times = [at for at, _ in server.asked]
    meanwhile = [at for at in times if server.from_at <= at < server.until]
    assert 60 <= len(meanwhile) <= 1.05 * 4 * 60
    assert len(times) <= 4 * 60 * 3.5 + 2
    first_hosts = {host_of(url) for at, url in server.asked if 0 <= at - server.until <= 5 * 60}
    assert len(first_hosts) >= 5
    assert min(at for at in times if at >= server.until) - server.until <= 60
    assert len([at for at in times if 0 <= at - server.until < 600]) >= 38
    assert charged(stage, server) == 0
    assert stage.rows("SELECT count(*) FROM host WHERE failures > 0") == [(0,)]


async def test_status_says_since_when_there_is_no_network(tmp_path: Path) -> None:
    stage, server = cut_off(tmp_path, "reset", 1.0)
    server.look_at = server.from_at + 0.5 * HOUR_S
    server.look = lambda: stage.rows("SELECT since FROM no_network")[0][0]
    await stage.keep(4 * 1_440.0, 3.5 / 24)
    assert isinstance(server.seen, float)
    assert 0 <= server.seen - server.from_at <= 60
    assert stage.rows("SELECT since FROM no_network") == []


async def test_after_six_hours_hosts_are_held_responsible(tmp_path: Path) -> None:
    stage, server = cut_off(tmp_path, "refused", 9.0)
    await stage.keep(4 * 1_440.0, 10.5 / 24)
    meanwhile = [at for at, _ in server.asked if server.from_at <= at < server.until]
    early = [at for at in meanwhile if at < server.from_at + 5.9 * HOUR_S]
    assert len(early) <= 5.9 * 120 + 20
    first_charged = stage.rows("SELECT min(at) FROM observation WHERE reason = 'connect'")[0][0]
    assert isinstance(first_charged, float)
    assert 6 * HOUR_S <= first_charged - server.from_at <= 6.1 * HOUR_S


@pytest.mark.parametrize(
    "names",
    [
        ("news", "docs", "wiki"),
        pytest.param(("news", "docs", "wiki", "zoo"), marks=pytest.mark.long),
    ],
)
async def test_of_fewer_hosts_all_must_fail(tmp_path: Path, names: tuple[str, ...]) -> None:
    stage, server = cut_off(tmp_path, "reset", 1.0)
    await stage.keep(4 * 1_440.0, 3.5 / 24, names)
    assert charged(stage, server) == 0
    assert min(at for at, _ in server.asked if at >= server.until) - server.until <= 60


@pytest.mark.parametrize("kind", each_of(["refused", "reset", "silent", "gateway"], ["gateway"]))
async def test_hosts_that_fail_while_others_answer_are_held_responsible(
    tmp_path: Path, kind: str
) -> None:
    stage, server = cut_off(tmp_path, kind, 1.0)
    server.hosts = frozenset({"news.localhost", "docs.localhost", "wiki.localhost"})
    server.look_at = server.from_at + 0.5 * HOUR_S
    server.look = lambda: stage.rows("SELECT since FROM no_network")
    await stage.keep(4 * 1_440.0, 3.5 / 24)
    assert server.seen == []
    times = [at for at, _ in server.asked]
    assert max(b - a for a, b in pairwise(times)) <= 60
    assert stage.rows(
        f"SELECT count(*) FROM observation WHERE kind = 'failed' AND at >= {server.from_at}"
    ) > [(2,)]


async def crawled_until_cut_off(stage: Stage, server: Cut) -> str:
    """Crawl all sites; the network fails after two minutes."""
    server.from_at = stage.clock.now() + 120.0
    settings = quick(politeness__delay_s=5.0, crawl__patience_s=300.0)
    seeds = seeds_from_arguments([f"http://{name}.localhost/" for name in stage.web.sites]).seeds
    report = await crawl(
        settings, CrawlOrder(stage.db, seeds), watch=unwatched, fetcher=server, clock=stage.clock
    )
    return report.ending


@pytest.mark.parametrize("kind", EACH)
async def test_a_crawl_waits_for_its_patience_and_ends_cut_off(tmp_path: Path, kind: str) -> None:
    stage, server = cut_off(tmp_path, kind, 24.0)
    assert await crawled_until_cut_off(stage, server) == "cut off"
    assert charged(stage, server) == 0
    assert 300.0 <= stage.clock.now() - server.from_at <= 420.0


@pytest.mark.parametrize("kind", RUBBISH)
async def test_a_crawl_of_hosts_that_send_rubbish_goes_on_to_its_end(
    tmp_path: Path, kind: str
) -> None:
    stage, server = cut_off(tmp_path, kind, 24.0)
    assert await crawled_until_cut_off(stage, server) == "nothing due"
    assert charged(stage, server) >= 5
