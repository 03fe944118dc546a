from collections.abc import AsyncIterator

import pytest

from freshet.crawler.extensions.lab.synthetic_web.content import DAY_S
from freshet.crawler.extensions.lab.synthetic_web.fetcher import SyntheticFetcher
from freshet.crawler.extensions.lab.synthetic_web.web import showcase
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver
from freshet.crawler.fetch.client import Fetcher, FetchLimits, NetworkFetcher, Request
from freshet.storage.records import FetchResult, Validators
from scripts.synthetic_server import WebServer, serve

WEB = showcase()


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with serve(WEB) as running:
        yield running


@pytest.fixture
async def network() -> AsyncIterator[NetworkFetcher]:
    resolver = CachingResolver()
    guard = AddressGuard(allow_private=True)
    fetcher = NetworkFetcher("freshet-test", FetchLimits(), guard, resolver)
    yield fetcher
    await fetcher.close()
    await resolver.close()


def essence(result: FetchResult) -> tuple[object, ...]:
    """What the two fetchers must agree on: all but the transport's own headers and times."""
    headers = {
        name.lower(): value
        for name, value in result.headers
        if name.lower() not in {b"server", b"content-length"}
    }
    return (
        result.url, result.outcome, result.status, result.reason, result.location,
        result.retry_after_s, result.body, headers,
    )  # fmt: skip


async def test_the_fetcher_answers_as_the_server_does(
    server: WebServer, network: NetworkFetcher
) -> None:
    local = SyntheticFetcher(WEB, server.clock.now, server.addresses)
    at = server.clock.advance(3 * DAY_S)
    urls = [server.addresses.url(place) for place in sorted(WEB.crawlable(at))[::4]]
    urls += [server.url("status", target) for target in WEB.sites["status"].resources]
    urls += [server.url("zoo", target) for target in ("/files/pixel.png", "/charset/utf-16")]
    urls += [server.url("old"), server.url("notes", "/robots.txt"), server.url("docs", "/nowhere")]
    for url in urls:
        one, other = [await fetcher.fetch(Request(url)) for fetcher in (local, network)]
        assert essence(one) == essence(other)
        known = Validators(one.header("ETag"), one.header("Last-Modified"))
        again = Request(url, validators=known)
        one, other = [await fetcher.fetch(again) for fetcher in (local, network)]
        assert essence(one) == essence(other)


@pytest.fixture
def fetcher() -> SyntheticFetcher:
    return SyntheticFetcher(WEB, lambda: WEB.start_at)


async def test_it_is_a_fetcher(fetcher: SyntheticFetcher) -> None:
    one: Fetcher = fetcher
    result = await one.fetch(Request("http://docs.localhost/"))
    assert result.outcome == "fetched"
    assert result.started_at == WEB.start_at


async def test_other_hosts_do_not_exist(fetcher: SyntheticFetcher) -> None:
    result = await fetcher.fetch(Request("http://example.org/"))
    assert (result.outcome, result.reason) == ("failed", "no_such_host")


async def test_a_body_beyond_the_limit_fails_and_a_robots_txt_is_cut(
    fetcher: SyntheticFetcher,
) -> None:
    page = await fetcher.fetch(Request("http://docs.localhost/", max_body_bytes=100))
    assert (page.outcome, page.reason, page.body) == ("failed", "too_large", b"")
    url = "http://guarded.localhost/robots.txt"
    robots = await fetcher.fetch(Request(url, "robots", max_body_bytes=10))
    assert (robots.outcome, robots.body) == ("fetched", b"# Rules of")
