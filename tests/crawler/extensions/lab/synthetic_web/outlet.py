"""A shop that gives each of its pages many URLs: orders, printer versions and sessions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from freshet.crawler.extensions.lab.synthetic_web.content import Content, ContentHistory, Link
from freshet.crawler.extensions.lab.synthetic_web.site import Resource, SyntheticSite
from freshet.crawler.extensions.lab.synthetic_web.sites import NOTHING_FORBIDDEN, Plot

#: What is appended to the URL of a page of an outlet: none of it makes a page of its own.
ORDERS: Final = ("&sort=name", "&sort=price", "&sort=new")
PRINTED: Final = ("&print=1",)
_SESSIONS: Final = 3
_PER_CATEGORY: Final = 3


def _reordered(history: ContentHistory) -> ContentHistory:
    """The blocks of another history from the last to the first."""

    def content(version: int) -> Content:
        found = history.content(version)
        return replace(found, blocks=found.blocks[::-1])

    return replace(history, content=content)


def outlet(plot: Plot) -> SyntheticSite:
    """Build a shop that gives each page many URLs, beside pages of news; without validators.

    ``plot.pages`` are the pages that there are, under however many URLs: orders, printer
    versions and sessions.
    """
    news = max(2, plot.pages // 5)
    categories = max(1, (plot.pages - news - 1) // (_PER_CATEGORY + 1))
    resources: dict[str, Resource] = {}
    for n in range(categories):
        targets = {
            f"Product {i}": f"/product?id={i}"
            for i in range(n * _PER_CATEGORY, (n + 1) * _PER_CATEGORY)
        }
        shelf = [plot.link(text, target) for text, target in targets.items()]
        resources |= _variants(plot, f"/list?category={n}", (*ORDERS, *PRINTED), shelf)
        for target in targets.values():
            resources |= _variants(plot, target, PRINTED, ())
    for n in range(1, news + 1):
        older = [plot.link("Older news", f"/news?page={n + 1}")] if n < news else []
        resources |= _variants(plot, f"/news?page={n}", (), older, sessions=0)
    links = [plot.link(f"Category {n}", f"/list?category={n}") for n in range(categories)]
    links.append(plot.link("News", "/news?page=1"))
    resources["/"] = plot.page("home", title="Outlet", links=links)
    return SyntheticSite(
        name=plot.name, title="Outlet", resources=resources, validation="none",
        robots=NOTHING_FORBIDDEN,
    )  # fmt: skip


def _variants(
    plot: Plot,
    target: str,
    suffixes: Sequence[str],
    links: Sequence[Link],
    sessions: int = _SESSIONS,
) -> Iterator[tuple[str, Resource]]:
    """Yield a page, and the same under other URLs, all of which it links to."""
    tokens = (f"&sid={plot.rng(target, n).getrandbits(128):032x}" for n in range(sessions))
    others = [target + suffix for suffix in (*suffixes, *tokens)]
    links = [*links, *(plot.link("See also", each) for each in others)]
    page = plot.page(target, links=links, in_sitemap=False)
    for each in (target, *others):
        yield each, replace(page, history=_reordered(page.history)) if "sort=" in each else page


def is_variant(target: str) -> bool:
    """Return whether a target of an outlet is another URL of a page, and no page of its own."""
    return any(name in target for name in ("&sort=", "&print=", "&sid="))
