"""Secrets go with the requests that Freshet has chosen, not with those that others have."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from freshet.crawler.fetch.client import Request
from freshet.storage.records import FetchResult
from tests.integration.hubs import Hub
from tests.integration.test_push import hub, kept
from tests.integration.test_requisites import Site

HOME, CDN = "http://site.localhost", "http://cdn.localhost"
#: What a page of HOME and what it needs name, by URL, and whether its own user may ask for it.
NEEDED = {
    f"{HOME}/own.css": True,
    f"{HOME}/own.png": True,
    f"{HOME}/by-own-style.png": True,
    f"{HOME}/moved.png": True,
    f"{HOME}/moved-here.png": True,
    f"{CDN}/style.css": False,
    f"{CDN}/far.png": False,
    f"{HOME}/by-far-style.png": False,
    f"{CDN}/by-far-style.png": False,
    f"{HOME}/leaves.png": True,
    f"{CDN}/comes-back.png": False,
    f"{HOME}/logout?by=redirect": False,
    f"{HOME}:8080/other-port.png": False,
    "https://site.localhost/other-scheme.png": False,
}
FILES = {
    f"{HOME}/": "<link rel=stylesheet href=/own.css><link rel=stylesheet "
    f"href={CDN}/style.css><img src=/own.png><img src=/moved.png><img src={CDN}/far.png>"
    f"<img src=/leaves.png><img src={HOME}:8080/other-port.png>"
    "<img src=https://site.localhost/other-scheme.png><p>The text of a page.",
    f"{HOME}/own.css": "p {background: url(/by-own-style.png)}",
    f"{CDN}/style.css": f"p {{background: url({HOME}/by-far-style.png)}} "
    "b {background: url(/by-far-style.png)}",
    f"{HOME}/robots.txt": "User-agent: *\nAllow: /\n",
    **{url: "picture" for url in NEEDED if url.endswith(".png")},
    f"{HOME}/logout?by=redirect": "picture",
}
MOVED = {
    f"{HOME}/moved.png": f"{HOME}/moved-here.png",
    f"{HOME}/leaves.png": f"{CDN}/comes-back.png",
    f"{CDN}/comes-back.png": f"{HOME}/logout?by=redirect",
}


@dataclass(slots=True)
class Watched(Site):
    """Notes whose requests tell who asks."""

    told: dict[str, bool] = field(default_factory=dict)

    async def fetch(self, request: Request) -> FetchResult:
        self.told[request.url] = not request.is_anonymous
        return await Site.fetch(self, request)


async def test_what_a_page_needs_of_other_origins_is_asked_for_by_nobody(tmp_path: Path) -> None:
    site = Watched(files=dict(FILES), moved=dict(MOVED))
    await site.crawl(tmp_path)
    assert {url: told for url, told in site.told.items() if url in NEEDED} == NEEDED
    assert site.told[f"{HOME}/"]


@pytest.mark.parametrize(
    ("hops", "told"),
    [
        ([f"{HOME}/robots"], [True]),
        ([f"{CDN}/robots"], [False]),
        ([f"{HOME}:8080/robots"], [False]),
        (["https://site.localhost/robots.txt"], [False]),
        ([f"{CDN}/robots", f"{HOME}/logout"], [False, False]),
        ([f"{HOME}/one", f"{CDN}/two", f"{CDN}/three"], [True, False, False]),
    ],
)
async def test_where_a_robots_txt_leads_is_asked_for_by_nobody(
    tmp_path: Path, hops: list[str], told: list[bool]
) -> None:
    chain = [f"{HOME}/robots.txt", *hops]
    site = Watched(
        files={f"{HOME}/": "<p>The text of a page.", hops[-1]: "User-agent: *\nAllow: /\n"},
        moved=dict(zip(chain, hops, strict=False)),
    )
    await site.crawl(tmp_path)
    assert [site.told[url] for url in hops] == told


@dataclass
class Listened(Hub):
    """Notes whose requests tell who asks: pages, and what is posted."""

    told: dict[bool, bool] = field(default_factory=dict)

    async def fetch(self, request: Request) -> FetchResult:
        self.told[request.form is not None] = not request.is_anonymous
        return await Hub.fetch(self, request)


async def test_a_hub_that_a_page_names_is_not_told_who_asks(tmp_path: Path) -> None:
    it = hub()
    it = Listened(it.web, it.clock, it.topics)
    await kept(it, tmp_path / "crawl.db", 0.5)
    assert it.told == {True: False, False: True}
