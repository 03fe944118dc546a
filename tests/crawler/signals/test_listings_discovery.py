"""Where feeds are looked for, and how often."""

import pytest

from freshet.crawler.admission.admit import Admission, Scope
from freshet.crawler.admission.traps import TrapLimits
from freshet.crawler.signals.listings import (
    FEEDS_SHAPE,
    WELL_KNOWN_FEEDS,
    SourceDiscovery,
    header_feeds,
)
from freshet.storage.records import DueUrl, Targets

SITE = "https://a.example"


def discovery(*, most: int = 10, well_known: bool = True) -> SourceDiscovery:
    admission = Admission(Scope("host", [SITE]), TrapLimits())
    return SourceDiscovery(admission, most=most, well_known=well_known)


def found(
    page: str, *linked: str, headers: tuple[str, ...] = (), by: SourceDiscovery | None = None
) -> Targets:
    targets = Targets()
    due = DueUrl(1, SITE + page, SITE + page, 1, 0.0)
    (by or discovery()).feeds(targets, due, linked, headers)
    return targets


def test_a_feed_that_a_page_names_is_asked_for() -> None:
    targets = found("/", f"{SITE}/news.atom", "https://elsewhere.example/feed")
    assert (targets.urls, targets.column("roles")) == ([f"{SITE}/news.atom"], ["feed"])


def test_so_many_feeds_of_a_host_at_most() -> None:
    targets = found("/post", f"{SITE}/post/feed", by=discovery(most=3))
    assert (targets.column("trap_shapes"), targets.column("trap_caps")) == ([FEEDS_SHAPE], [3])
    assert len(found("/post", f"{SITE}/post/feed", by=discovery(most=0))) == 0


def test_the_usual_places_are_tried_where_the_home_page_names_no_feed() -> None:
    assert found("/").urls == [SITE + path for path in WELL_KNOWN_FEEDS]
    assert set(found("/").column("roles")) == {"feed"}
    assert found("/about").urls == []
    assert found("/", by=discovery(well_known=False)).urls == []


def test_the_usual_sitemap_is_tried_only_if_wanted() -> None:
    for wanted in (True, False):
        targets = Targets()
        discovery(well_known=wanted).sitemap(targets, SITE)
        assert targets.urls == ([f"{SITE}/sitemap.xml"] if wanted else [])


@pytest.mark.parametrize(
    ("header", "feeds"),
    [
        ('</feed>; rel="alternate"; type="application/rss+xml"', ["/feed"]),
        ("</feed>;rel=alternate;type=application/atom+xml;title=x", ["/feed"]),
        ('</a,b>; title="x, <y>; rel=no"; rel="Alternate"; type="application/rss+xml"', ["/a,b"]),
        ('</css>; rel=preload, </feed>; rel="feed"', ["/feed"]),
        ('</de>; rel="alternate"; hreflang="de"', []),
        ('</feed; rel="feed"', []),
        ("<mailto:a@b.example>; rel=feed", []),
        ("", []),
    ],
)
def test_link_headers_name_feeds(header: str, feeds: list[str]) -> None:
    assert header_feeds([header], f"{SITE}/p") == [SITE + feed for feed in feeds]


def test_a_header_without_end_is_read_to_a_limit() -> None:
    assert len(header_feeds(["</f>; rel=feed, " * 100_000], SITE)) == 1
    assert header_feeds(['<a>; x="' * 10_000], SITE) == []
