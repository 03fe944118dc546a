"""A web: its sites, its truth, its clock, and the webs for tests, simulations and the demo."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from freshet.crawler.synthetic_web.content import DAY_S, Place
from freshet.crawler.synthetic_web.difficult_sites import (
    EVENT_TRAPS,
    bazaar,
    board,
    events,
    guarded,
    notes,
    statuses,
    zoo,
)
from freshet.crawler.synthetic_web.site import Clutter, SyntheticSite, Trap
from freshet.crawler.synthetic_web.sites import Plot, documentation, news, shop, wiki
from freshet.crawler.synthetic_web.sites import newsroom as newsroom_site
from freshet.crawler.synthetic_web.sites import plain as plain_site
from freshet.crawler.synthetic_web.truth import Truth, reachable


@dataclass(frozen=True, slots=True)
class SyntheticWeb:
    """Sites that change between two times (Unix seconds); afterwards they stand still."""

    seed: int
    sites: Mapping[str, SyntheticSite]
    start_at: float
    end_at: float
    truth: Truth = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", Truth(self.sites))

    @classmethod
    def of(
        cls, seed: int, sites: Iterable[SyntheticSite], start_at: float, end_at: float
    ) -> SyntheticWeb:
        """Return a web of these sites."""
        return cls(seed, {site.name: site for site in sites}, start_at, end_at)

    def crawlable(self, at: float, names: Iterable[str] | None = None) -> frozenset[Place]:
        """Return the pages (200, text) that a complete polite crawl from the roots finds.

        See :func:`~freshet.crawler.synthetic_web.truth.reachable`. ``names`` are the sites whose
        roots are the seeds, None for all; they are also the scope.
        """
        return reachable(self.sites, self.sites if names is None else names, at)

    def is_trap(self, place: Place) -> bool:
        """Return whether a place belongs to an endless set of pages."""
        site = self.sites.get(place.host)
        return site is not None and site.trap(place.target) is not None


# -- presets -----------------------------------------------------------------
#: 2026-01-01, 00:00 UTC: when webs start to change.
START_AT = 1_767_225_600.0

Builder = Callable[[Plot], SyntheticSite]
_LARGE: dict[str, Builder] = {
    "news": news,
    "docs": documentation,
    "shop": shop,
    "wiki": wiki,
}


@dataclass(frozen=True, slots=True)
class WebSpec:
    """The size of a web, and the number of days for which it changes.

    Raises:
        ValueError: the web would have no host, page or day.
    """

    hosts: int = 4
    pages_per_host: int = 40
    seed: int = 1
    span_days: float = 60.0

    def __post_init__(self) -> None:
        if min(self.hosts, self.pages_per_host, self.span_days) <= 0:
            raise ValueError("a web has at least one host, one page and one day")

    def plot(self, name: str, pages: int | None = None) -> Plot:
        """Return the plot of one site of the web."""
        end_at = START_AT + self.span_days * DAY_S
        return Plot(name, self.seed, pages or self.pages_per_host, START_AT, end_at)

    def web(self, sites: list[SyntheticSite]) -> SyntheticWeb:
        """Return the web of these sites."""
        return SyntheticWeb.of(self.seed, sites, START_AT, START_AT + self.span_days * DAY_S)


def mixed(spec: WebSpec) -> SyntheticWeb:
    """Make news, documentation, shop and wiki in turn: ``news docs shop wiki news2 docs2 …``."""
    sites = []
    for n in range(spec.hosts):
        name = list(_LARGE)[n % len(_LARGE)]
        suffix = str(n // len(_LARGE) + 1) if n >= len(_LARGE) else ""
        sites.append(_LARGE[name](spec.plot(name + suffix)))
    return spec.web(sites)


def labelled(spec: WebSpec) -> SyntheticWeb:
    """Make the mixed web and boards beside it: each kind of noise alone, all, and none."""
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
    """Make tiny well-behaved hosts ``h1 h2 …`` that never change."""
    spec = WebSpec(hosts, pages_per_host, seed)
    return spec.web([plain_site(spec.plot(f"h{n}")) for n in range(1, hosts + 1)])


def endless(spec: WebSpec, *, traps: bool = True) -> SyntheticWeb:
    """Make one shop, ``bazaar``, whose calendars, filters, sessions and depth never end.

    Without ``traps`` it has its ordinary pages only.
    """
    return spec.web([bazaar(spec.plot("bazaar"), traps=tuple(Trap) if traps else ())])


def newsroom(spec: WebSpec, items: float) -> SyntheticWeb:
    """Make two hosts of news, ``courier`` with 3/4 of the items a day, and ``gazette``; ``docs``.

    The pages of the spec are those of ``docs``, which hardly changes.

    Raises:
        ValueError: the web would have no items.
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
    """Make ten hosts of every character with some 220 pages.

    ``old`` redirects as a whole to ``docs``. Without ``traps`` there are no endless sets.
    """
    spec = WebSpec(hosts=10, seed=seed, span_days=span_days)
    sites = [build(spec.plot(name)) for name, build in _LARGE.items()]
    sites += [
        SyntheticSite(name="old", title="Old Handbook", moved_to="docs"),
        statuses(spec.plot("status")),
        guarded(spec.plot("guarded", pages=14)),
        notes(spec.plot("notes", pages=18)),
        zoo(spec.plot("zoo")),
        events(spec.plot("events", pages=10), traps=EVENT_TRAPS if traps else ()),
    ]
    return spec.web(sites)


# -- clock -------------------------------------------------------------------
class WebClock:
    """Virtual Unix seconds that stand still, or run ``speed`` times as fast as real time.

    Time never goes back; ``monotonic`` is the source of real time.
    """

    def __init__(
        self, at: float, *, speed: float = 0.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._at = at
        self._speed = speed
        self._monotonic = monotonic
        self._since = monotonic()

    def now(self) -> float:
        """Return the virtual time in Unix seconds."""
        if self._speed == 0:
            return self._at
        return self._at + (self._monotonic() - self._since) * self._speed

    def advance(self, seconds: float) -> float:
        """Advance the time by some virtual seconds and return it.

        Raises:
            ValueError: the time would go back.
        """
        if seconds < 0:
            raise ValueError(f"the web's time does not go back by {-seconds} s")
        self._at += seconds
        return self.now()

    def set(self, at: float) -> float:
        """Set the time to Unix seconds and return it.

        Raises:
            ValueError: the time would go back.
        """
        return self.advance(at - self.now())
