"""Daemons with few requests a day, end to end: what they spend on what is no page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from freshet.config.loading import load
from freshet.crawler.admission.site_lists import seeds_from_arguments
from freshet.crawler.fetch.client import Request
from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.run.crawl import CrawlOrder, crawl
from freshet.crawler.run.daemon import keep
from freshet.crawler.run.orders import DaemonOrder
from freshet.storage.records import FetchResult
from tests.integration.quick import unwatched

DAY_S = 86_400.0
PAGES = 40
HTML = ((b"Content-Type", b"text/html"),)


@dataclass(slots=True)
class Small:
    """Hosts of forty pages; /old/N of them redirects for good, other hosts do not exist.

    An exchange takes no time; each page changes every 50 days. All of an origin that ``leads`` to
    another one redirects there for good, robots.txt, too. A ``late`` link is on a page,
    after the crawl.
    """

    clock: VirtualClock
    hosts: tuple[str, ...]
    links: tuple[str, ...] = ()
    leads: Mapping[str, str] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    asked: list[tuple[float, str]] = field(default_factory=list)

    async def fetch(self, request: Request) -> FetchResult:
        now, parts = self.clock.now(), urlsplit(request.url)
        self.asked.append((now, request.url))
        path = parts.path
        if other := self.leads.get(f"{parts.scheme}://{parts.hostname}"):
            return FetchResult(
                request.url, "redirected", now, 0.0, 301, location=other + path,
                headers=((b"Location", (other + path).encode()),),
            )  # fmt: skip
        if parts.hostname not in self.hosts:
            return FetchResult(request.url, "failed", now, 0.0, None, "no_such_host", "no address")
        if path.startswith("/old/"):
            to = f"http://{parts.hostname}/{int(path[5:]) % PAGES}"
            return FetchResult(
                request.url, "redirected", now, 0.0, 301, location=to,
                headers=((b"Location", to.encode()),),
            )  # fmt: skip
        number = 0 if path == "/" else int(path[1:]) if path[1:].isdigit() else PAGES
        if number >= PAGES:
            return FetchResult(request.url, "gone", now, 0.0, 404, "http_404", "gone")
        version = int(now / DAY_S + number) // 50
        links = [f"/{n}" for n in range(1, PAGES)] + list(self.links) if number == 0 else []
        links += [to for to, page in self.late.items() if number == page]
        words = " ".join(f"word{version * 31 + n}of{number}" for n in range(60))
        body = f"<p>{words}</p>" + "".join(f'<p><a href="{to}">{to}</a></p>' for to in links)
        return FetchResult(
            request.url, "fetched", now, 0.0, 200, headers=HTML,
            wire_body=body.encode(), body=body.encode(),
        )  # fmt: skip


async def kept(
    db: Path,
    site: Small,
    *,
    days: float,
    budget: float,
    delay_s: float = 1.0,
    policy: str = "site_clock",
    scheme: str = "http",
    late: Mapping[str, int] | None = None,
) -> Counter[str]:
    """Crawl the hosts, keep them for some days; count the daemon's requests by what they met."""
    seeds = seeds_from_arguments([f"{scheme}://{host}/" for host in site.hosts]).seeds
    settings, _ = load(
        None, {"crawl.contact": "https://example.org/bot", "politeness.delay_s": delay_s}
    )
    await crawl(settings, CrawlOrder(db, seeds), watch=unwatched, fetcher=site, clock=site.clock)
    site.asked.clear()
    site.late = late or {}
    order = DaemonOrder(db, seeds, budget, policy, days * DAY_S)
    await keep(settings, order, watch=unwatched, fetcher=site, clock=site.clock, rng=Random(1))
    return Counter(_kind(site, url) for _, url in site.asked)


def _kind(site: Small, url: str) -> str:
    parts = urlsplit(url)
    if parts.hostname not in site.hosts:
        return "dead host"
    if parts.path == "/robots.txt":
        return "robots.txt"
    return "alias" if parts.path.startswith("/old/") else "page"


@pytest.mark.long
async def test_aliases_and_a_dead_subdomain_take_little_of_a_small_budget(tmp_path: Path) -> None:
    clock = VirtualClock(1_800_000_000.0)
    old = [f"/old/{n}" for n in range(300)]
    dead = [f"http://dead.a.example/{n}" for n in range(50)]
    site = Small(clock, ("a.example",), tuple(old + dead))
    kinds = await kept(tmp_path / "crawl.db", site, days=90.0, budget=PAGES / 30)
    spent = sum(kinds.values())
    # What is saved for the next session is not spent yet.
    assert spent > 90 * PAGES / 30 - 2 * PAGES**0.5 - 2
    assert kinds["page"] > 0.85 * spent
    assert kinds["alias"] + kinds["dead host"] < 0.05 * spent


@pytest.mark.long
async def test_a_host_whose_robots_txt_redirects_takes_the_budget_of_no_other(
    tmp_path: Path,
) -> None:
    # A session ends with this page: the host that it names opens when little is saved.
    clock, link = VirtualClock(1_800_000_000.0), "http://a.example/old/3"
    site = Small(clock, ("a.example",), leads={"http://a.example": "https://a.example"})
    kinds = await kept(
        tmp_path / "crawl.db", site, days=45, budget=0.9, scheme="https", late={link: 11}
    )
    assert kinds["page"] > 0.6 * sum(kinds.values())
    assert any(url == link for _, url in site.asked)


@pytest.mark.long
async def test_hosts_that_are_gone_share_what_urls_without_content_get(tmp_path: Path) -> None:
    clock = VirtualClock(1_800_000_000.0)
    dead = {f"{scheme}://www.a.example/x": 0 for scheme in ("http", "https")}
    site = Small(clock, ("a.example",))
    kinds = await kept(tmp_path / "crawl.db", site, days=180, budget=PAGES / 60, late=dead)
    # A fiftieth of the requests, and each host twice at first.
    assert kinds["dead host"] <= 0.02 * sum(kinds.values()) + 2 * 2 + 1


@pytest.mark.long
async def test_two_slow_hosts_share_a_budget_and_leave_none_of_it(tmp_path: Path) -> None:
    clock = VirtualClock(1_800_000_000.0)
    site = Small(clock, ("a.example", "b.example"))
    kinds = await kept(tmp_path / "crawl.db", site, days=50.0, budget=PAGES / 10, delay_s=3_600.0)
    spent = sum(kinds.values())
    assert spent > 50 * PAGES / 10 - 2 * PAGES**0.5 - 2
    assert kinds["page"] > 0.8 * spent
    pages = Counter(url for _, url in site.asked if not url.endswith("robots.txt"))
    visits = [pages[f"http://{host}/{n}"] for host in site.hosts for n in range(1, PAGES)]
    assert min(visits) >= 1


def alone(asked: Sequence[tuple[float, str]]) -> list[str]:
    """Return the hosts whose robots.txt was requested and no page before the next time."""
    waiting, found = set[str](), []
    for _, url in asked:
        host = url.split("/")[2]
        if not url.endswith("/robots.txt"):
            waiting.discard(host)
        elif host in waiting:
            found.append(host)
        else:
            waiting.add(host)
    return found


@pytest.mark.parametrize("policy", ["site_clock", "uniform"])
# Hosts, and days in which one request comes in.
@pytest.mark.long
@pytest.mark.parametrize(("hosts", "days"), [(1, 2.0), (5, 0.5)])
async def test_however_few_requests_there_are_no_robots_txt_is_requested_without_a_page(
    tmp_path: Path, hosts: int, days: float, policy: str
) -> None:
    site = Small(VirtualClock(1_800_000_000.0), tuple(f"h{n}.example" for n in range(hosts)))
    kinds = await kept(tmp_path / "crawl.db", site, days=16 * days, budget=1 / days, policy=policy)
    assert alone(site.asked) == []
    assert kinds["page"] >= kinds["robots.txt"] - 1
    assert kinds["page"] >= 3


@pytest.mark.long
async def test_an_origin_that_only_redirects_is_asked_for_nothing(tmp_path: Path) -> None:
    clock, name = VirtualClock(1_800_000_000.0), "http://www.a.example"
    site = Small(clock, ("a.example",), (f"{name}/", f"{name}/3"), {name: "http://a.example"})
    kinds = await kept(tmp_path / "crawl.db", site, days=70.0, budget=2.0)
    assert [url for _, url in site.asked if url.startswith(name)] == []
    assert kinds["page"] > 70
