"""A shop that gives each of its pages many URLs: orders, printer versions and sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freshet.crawler.synthetic_web.content import Content, History, Link, Revision
from freshet.crawler.synthetic_web.resources import Document, Resource
from freshet.crawler.synthetic_web.site import Site, Validation
from freshet.crawler.synthetic_web.sites.plot import Plot

#: What is appended to the URL of a page of the shop: none of it makes a page of its own.
ORDERS = ("&sort=name", "&sort=price", "&sort=new")
PRINTED = ("&print=1",)
_SESSIONS = 3

_PER_CATEGORY = 3


@dataclass(frozen=True, slots=True)
class _Reordered:
    """The blocks of another history from the last to the first."""

    of: History

    @property
    def revisions(self) -> Sequence[Revision]:
        return self.of.revisions

    def content(self, version: int) -> Content:
        found = self.of.content(version)
        return Content(found.title, found.blocks[::-1], found.links)


def outlet(plot: Plot) -> Site:
    """Categories and products, each under many URLs, and pages of news; without validators.

    ``plot.pages`` are the pages that there are, under however many URLs.
    """
    news = max(2, plot.pages // 5)
    categories = max(1, (plot.pages - news - 1) // (_PER_CATEGORY + 1))
    resources: dict[str, Resource] = {}
    links = []
    for n in range(categories):
        products = range(n * _PER_CATEGORY, (n + 1) * _PER_CATEGORY)
        shelf = [plot.link(f"Product {i}", f"/product?id={i}") for i in products]
        resources |= _variants(plot, f"/list?category={n}", (*ORDERS, *PRINTED), shelf)
        for i in products:
            resources |= _variants(plot, f"/product?id={i}", PRINTED, ())
        links.append(plot.link(f"Category {n}", f"/list?category={n}"))
    for n in range(1, news + 1):
        older = [plot.link("Older news", f"/news?page={n + 1}")] if n < news else []
        resources |= _variants(plot, f"/news?page={n}", (), older, sessions=0)
    home = plot.story("home", title="Outlet", links=[*links, plot.link("News", "/news?page=1")])
    resources["/"] = Document(history=home, born_at=plot.earlier("home"))
    return Site(
        name=plot.name,
        title="Outlet",
        resources=resources,
        validation=Validation.NONE,
        robots="User-agent: *\nDisallow:\n",
    )


def _variants(
    plot: Plot,
    target: str,
    suffixes: Sequence[str],
    links: Sequence[Link],
    sessions: int = _SESSIONS,
) -> Iterator[tuple[str, Resource]]:
    """A page, and the same under other URLs, all of which it links to."""
    tokens = (f"&sid={plot.rng(target, n).getrandbits(128):032x}" for n in range(sessions))
    others = [target + suffix for suffix in (*suffixes, *tokens)]
    story = plot.story(target, links=[*links, *(plot.link("See also", each) for each in others)])
    for each in (target, *others):
        history: History = _Reordered(story) if "sort=" in each else story
        yield each, Document(history=history, born_at=plot.earlier(target), in_sitemap=False)


def is_variant(target: str) -> bool:
    """Whether a target of such a shop is another URL of a page, and no page of its own."""
    return any(name in target for name in ("&sort=", "&print=", "&sid="))
