"""Sites: the map and the table of where the budget goes, and all of one site."""

import re
import time
from collections.abc import AsyncIterator
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.crawler.extensions.dashboard.plots import treemap
from tests.crawler.extensions.dashboard.test_pages import Reader, shown
from tests.storage.small_store import SmallStore

OTHER = 'https://b"><script>alert(1)</script>.example'
NOW = time.time()
DAY = int(NOW // 86_400)


@given(st.lists(st.floats(1, 1_000), min_size=1, max_size=40), st.floats(100, 1_000))
def test_areas_of_a_map_are_in_proportion_and_fill_it(values: list[float], width: float) -> None:
    places = treemap(values, width, 300)
    for value, (x, y, across, down) in zip(values, places, strict=True):
        assert across * down == pytest.approx(value / sum(values) * width * 300)
        assert -1e-6 <= x <= x + across <= width + 1e-6
        assert -1e-6 <= y <= y + down <= 300 + 1e-6


@pytest.fixture
async def reader(small: SmallStore) -> AsyncIterator[Reader]:
    small.run(0.0)
    one, other = small.host(exchanges=30), small.host(OTHER, exchanges=10)
    for host, requests in ((one, 30), (other, 10)):
        small.insert(
            "site_day", day=DAY, host_id=host, requests=requests, robots=3, unchanged=6, gone=2
        )
        small.insert("site_day", day=DAY - 40, host_id=host, requests=999)
    small.insert(
        "site_outlook", host_id=one, at=NOW, captured=9, waiting=0, gone=0, stale=0.25, wanted=50.0,
        most=20.0, capped=1,
    )  # fmt: skip
    hostile = b"User-agent: *\n# </pre><script>alert(1)</script>\xff"
    small.insert("robots", host_id=other, standing="parsed", fetched_at=NOW, body=hostile)
    page = small.page("/a", checked_at=NOW)
    for n, kind in enumerate(("new", "changed", "changed")):
        small.observe(page, NOW - 60 + n, kind)
    async with shown(small.path) as url, aiohttp.ClientSession() as client:
        yield Reader(url, client, None)  # type: ignore[arg-type] # no site is crawled here


async def test_the_map_and_the_table_tell_where_the_budget_went(reader: Reader) -> None:
    body = await reader.page("/sites")
    assert "one.example 75.0 % of requests, 75.0 % fresh" in body
    assert "only 20" in body
    # A quarter is stale: the second colour of a logarithmic scale.
    assert re.search(r'<g class="f1"><a href="/site\?origin=http%3A%2F%2Fone.example">', body)
    assert re.findall(r"\d+ to \d+ %|\d+ % and more|under \d+ %", body) == [
        "30 % and more", "10 to 30 %", "3 to 10 %", "1 to 3 %", "under 1 %"
    ]  # fmt: skip
    assert body.index(">one.example<") < body.index("&lt;/script&gt;.example")
    assert "<script>alert" not in body
    last = await reader.page("/sites?order=origin")
    rows = re.findall(r"<tr><td><a[^>]*>([^<]+)<", last)
    assert rows == ["one.example", "b&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;.example"]
    assert 'aria-sort="ascending"' in last
    further = await reader.page("/sites?order=requests&value=30.0&after=http://one.example")
    assert ">one.example</a></td>" not in further
    for query in ("order=;drop", "value=x&after=y"):
        assert (await reader.ask(f"/sites?{query}"))[0] == 400


async def test_a_site_shows_its_clock_its_robots_txt_and_its_changes(reader: Reader) -> None:
    body = await reader.page("/site?origin=http://one.example")
    assert len(re.findall(r'<rect class="h\d"', body)) == 168
    assert len(re.findall('<rect class="h4"', body)) == 1
    assert 'class="kind changed"' in body
    assert "politeness allows 20 only" in body
    body = await reader.page(f"/site?origin={quote(OTHER)}")
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in body
    assert "<script>alert" not in body
    assert (await reader.ask("/site?origin=http://none.example"))[0] == 404
    assert (await reader.ask("/site"))[0] == 404
