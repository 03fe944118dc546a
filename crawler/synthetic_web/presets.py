"""Webs for a purpose each: to show everything, to be of a given size, to be plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from freshet.crawler.synthetic_web.chance import DAY_S
from freshet.crawler.synthetic_web.site import Clutter, Site, Trap
from freshet.crawler.synthetic_web.sites.bazaar import bazaar
from freshet.crawler.synthetic_web.sites.board import board
from freshet.crawler.synthetic_web.sites.documentation import documentation
from freshet.crawler.synthetic_web.sites.events import EVENT_TRAPS, events
from freshet.crawler.synthetic_web.sites.guarded import guarded
from freshet.crawler.synthetic_web.sites.news import news
from freshet.crawler.synthetic_web.sites.newsroom import newsroom as newsroom_site
from freshet.crawler.synthetic_web.sites.notes import notes
from freshet.crawler.synthetic_web.sites.plain import plain as plain_site
from freshet.crawler.synthetic_web.sites.plot import Plot
from freshet.crawler.synthetic_web.sites.shop import shop
from freshet.crawler.synthetic_web.sites.statuses import statuses
from freshet.crawler.synthetic_web.sites.wiki import wiki
from freshet.crawler.synthetic_web.sites.zoo import zoo
from freshet.crawler.synthetic_web.web import SyntheticWeb

#: 2026-01-01, 00:00 UTC: when webs start to change.
START_AT = 1_767_225_600.0

Builder = Callable[[Plot], Site]
_LARGE: dict[str, Builder] = {
    "news": news,
    "docs": documentation,
    "shop": shop,
    "wiki": wiki,
}


@dataclass(frozen=True, slots=True)
class WebSpec:
    """How large a web is, and for how many days it changes.

    Raises:
        ValueError: if there would be no host, page or day.
    """

    hosts: int = 4
    pages_per_host: int = 40
    seed: int = 1
    span_days: float = 60.0

    def __post_init__(self) -> None:
        if min(self.hosts, self.pages_per_host, self.span_days) <= 0:
            raise ValueError("a web has at least one host, one page and one day")

    def plot(self, name: str, pages: int | None = None) -> Plot:
        """The ground for one site of the web."""
        end_at = START_AT + self.span_days * DAY_S
        return Plot(name, self.seed, pages or self.pages_per_host, START_AT, end_at)

    def web(self, sites: list[Site]) -> SyntheticWeb:
        """The web of these sites."""
        return SyntheticWeb.of(self.seed, sites, START_AT, START_AT + self.span_days * DAY_S)


def mixed(spec: WebSpec) -> SyntheticWeb:
    """News, documentation, shop and wiki in turn: ``news docs shop wiki news2 docs2 …``."""
    sites = []
    for n in range(spec.hosts):
        name = list(_LARGE)[n % len(_LARGE)]
        suffix = str(n // len(_LARGE) + 1) if n >= len(_LARGE) else ""
        sites.append(_LARGE[name](spec.plot(name + suffix)))
    return spec.web(sites)


def labelled(spec: WebSpec) -> SyntheticWeb:
    """The mixed web and beside it boards: each kind of noise alone, all, and none."""
    boards = [
        board(spec.plot(f"board-{name}"), clutter)
        for name, clutter in (
            ("stamps", {Clutter.STAMPS}),
            ("adverts", {Clutter.ADVERTS}),
            ("variants", {Clutter.VARIANTS}),
            ("all", set(Clutter)),
            ("none", set[Clutter]()),
        )
    ]
    return spec.web([*mixed(spec).sites.values(), *boards])


def plain(hosts: int, pages_per_host: int, seed: int = 1) -> SyntheticWeb:
    """Tiny well-behaved hosts ``h1 h2 …`` that never change."""
    spec = WebSpec(hosts, pages_per_host, seed)
    return spec.web([plain_site(spec.plot(f"h{n}")) for n in range(1, hosts + 1)])


def endless(spec: WebSpec, *, traps: bool = True) -> SyntheticWeb:
    """One shop, ``bazaar``, whose calendars, filters, sessions and depth never end.

    Without ``traps`` it has its ordinary pages only.
    """
    return spec.web([bazaar(spec.plot("bazaar"), traps=tuple(Trap) if traps else ())])


def newsroom(spec: WebSpec, items: float) -> SyntheticWeb:
    """Two hosts of news, ``courier`` with 3/4 of so many items a day, and ``gazette``; ``docs``.

    The pages of the spec are those of ``docs``, which hardly changes.

    Raises:
        ValueError: if there are no items.
    """
    if not 0 < items < inf:
        raise ValueError(f"items is {items:g}; accepted is a number above 0, of a day")
    sites = [
        newsroom_site(spec.plot("courier"), items * 3 / 4),
        newsroom_site(spec.plot("gazette"), items / 4),
        documentation(spec.plot("docs")),
    ]
    return spec.web(sites)


def showcase(seed: int = 1, *, traps: bool = True, span_days: float = 60.0) -> SyntheticWeb:
    """Ten hosts of every character with some 220 pages.

    ``old`` redirects as a whole to ``docs``. Without ``traps`` there are no endless sets.
    """
    spec = WebSpec(hosts=10, seed=seed, span_days=span_days)
    sites = [build(spec.plot(name)) for name, build in _LARGE.items()]
    sites += [
        Site(name="old", title="Old Handbook", moved_to="docs"),
        statuses(spec.plot("status")),
        guarded(spec.plot("guarded", pages=14)),
        notes(spec.plot("notes", pages=18)),
        zoo(spec.plot("zoo")),
        events(spec.plot("events", pages=10), traps=EVENT_TRAPS if traps else ()),
    ]
    return spec.web(sites)
