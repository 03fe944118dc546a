"""Plain strategies of a crawler on a recorded site: the requests that they make, all counted.

Each gets so many requests, at even times, but for *recrawl*, which saves them for a whole crawl.
Robots.txt is asked again when 24 hours have passed since, together with the next page. The first
crawl is free. A URL that leads elsewhere, or to nothing, is asked again after 60 days, three
times at most; new links are asked at once. Where a sitemap names all pages, the *follower* asks it
with every tenth request, and then first what by its stamps has changed since the last visit. Two
know what no crawler does: *rates known* the true changes a day of each page, and *clairvoyant* all
changes and births so far: it visits what costs most at the moment and needs nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import inf, sqrt
from random import Random
from typing import TypeAlias
from urllib.parse import urlsplit

import numpy as np

from freshet.crawler.frontier.clock import VirtualClock
from freshet.crawler.reduce.page import parse
from freshet.crawler.urls import canonical, resolve
from freshet.scheduler.policies.adaptive_intervals import NutchAdaptive, StormCrawlerAdaptive
from freshet.scheduler.policies.greedy_index import GreedyIndex
from freshet.scheduler.policy import IntervalPolicy, Pace, Revisit
from freshet.scheduler.sources import SourceTable
from scripts.benchmarks.recorded_web import Answer, RecordedWeb
from scripts.benchmarks.site_windows import DAY_S, Window

_ROBOTS_DAYS = 1.0
_DEAD_DAYS = 60.0
_MOST_TRIES = 3
_ASK_SITEMAP_EVERY = 10
_STAMPED = re.compile(r"<loc>(.*?)</loc><lastmod>(.*?)</lastmod>")

#: The days of the visits to each page.
Visits: TypeAlias = Mapping[int, Sequence[float]]


class Links:
    """The links that pages of a recording show within it, read once for each URL and body."""

    def __init__(self, window: Window) -> None:
        self._hosts = window.site.hosts
        self._read: dict[tuple[str, int], tuple[Sequence[str], bool]] = {}

    def of(self, answer: Answer | None, url: str) -> Sequence[str]:
        """The links of an answer: where it leads, or what its page shows."""
        if answer is None or answer.status >= 400:
            return ()
        if answer.blob is None:
            location = dict(answer.headers).get("Location", "")
            return self._inside([resolve(location, url) or url])
        return self._look(answer, url)[0]

    def leads_on(self, answer: Answer, url: str) -> bool:
        """Whether an answer is a page that only leads to another one of the site."""
        return answer.blob is not None and self._look(answer, url)[1]

    def _look(self, answer: Answer, url: str) -> tuple[Sequence[str], bool]:
        """The links of a page, and whether the first of them is where it leads."""
        if answer.blob is None:
            return (), False
        key = url, answer.blob
        if key not in self._read:
            self._read[key] = (), False
            kind = dict(answer.headers)["Content-Type"]
            if kind.startswith("text/html"):
                found = parse(answer.body, url, kind)
                to = self._inside(found.meta_refresh[1:] if found.meta_refresh else ())
                urls = self._inside(found.links.urls)
                self._read[key] = tuple(dict.fromkeys([*to, *urls])), bool(to)
        return self._read[key]

    def _inside(self, urls: Sequence[str]) -> Sequence[str]:
        inside = (url for url in urls if urlsplit(url).hostname in self._hosts)
        return tuple(dict.fromkeys(canonical(url) for url in inside))


@dataclass(slots=True)
class _Known:
    """A URL: when it was asked last, and how often in vain; ``page`` is what it showed last."""

    asked: float
    tries: int = 0
    page: int | None = None


class Crawler:
    """A crawler of one window that knows the URLs it has seen, and asks as it is told.

    Attributes:
        web: what it asks, with its counts.
        known: the URLs that were asked.
        new: those not asked yet, in the order of discovery.
        day: of the window.
    """

    def __init__(self, window: Window, links: Links, sitemap: str = "own") -> None:
        self.window = window
        self._links = links
        self._clock = VirtualClock(window.begin)
        self.web = RecordedWeb(window.site, self._clock, sitemap=sitemap)
        self.known: dict[str, _Known] = {}
        self.new: dict[str, None] = {}
        self.day = self._robots_at = 0.0
        self.crawl()
        order = list(self.known.items())
        Random(window.seed).shuffle(order)
        self.known = dict(order)
        self.web.forget()

    @property
    def requests(self) -> int:
        """How many requests there were after the first crawl."""
        return len(self.web.asked)

    def at(self, day: float) -> None:
        """Let time pass."""
        self.day = day
        self._clock.go_on_from(self.window.begin + day * DAY_S)

    def ask_robots(self) -> None:
        """Ask for robots.txt."""
        self._robots_at = self.day
        self.web.answer(f"{self.window.site.origin}/robots.txt")

    @property
    def needs_robots(self) -> bool:
        """Whether robots.txt is too old for a visit."""
        return self.day >= self._robots_at + _ROBOTS_DAYS

    def ask(self, url: str) -> Sequence[str]:
        """Request a URL; return its links."""
        answer = self.web.answer(url)
        self.new.pop(url, None)
        it = self.known.setdefault(url, _Known(self.day))
        nothing = answer is None or self._links.leads_on(answer, url)
        it.asked, it.page = self.day, None if nothing or answer is None else answer.page
        it.tries = 0 if it.page is not None else it.tries + 1
        return self._links.of(answer, url)

    def explore(self, url: str) -> None:
        """Request a URL, and note its links."""
        self.new |= dict.fromkeys(link for link in self.ask(url) if link not in self.known)

    def ask_sitemap(self) -> dict[str, float]:
        """Ask for the sitemap of all pages: the days on which they changed last, by URL."""
        answer = self.web.answer(f"{self.window.site.origin}/sitemap.xml")
        return {
            canonical(url): (datetime.fromisoformat(stamp).timestamp() - self.window.begin) / DAY_S
            for url, stamp in _STAMPED.findall(answer.body.decode() if answer else "")
        }

    def crawl(self) -> None:
        """Crawl the whole site from its start page."""
        waiting, seen = [canonical(self.window.site.start)], set[str]()
        while waiting:
            url = waiting.pop(0)
            if url not in seen:
                seen.add(url)
                waiting += self.ask(url)

    @property
    def due(self) -> list[str]:
        """The known URLs that may be asked: pages, and what was nothing long ago."""
        return [
            url
            for url, it in self.known.items()
            if it.tries == 0 or (it.tries <= _MOST_TRIES and self.day >= it.asked + _DEAD_DAYS)
        ]

    @property
    def visits(self) -> Visits:
        """The days of the visits to each page."""
        found = defaultdict(list)
        for page, at in self.web.shown:
            found[page].append((at - self.window.begin) / DAY_S)
        return found


#: Which of the known URLs is asked next.
_Choice: TypeAlias = Callable[[Crawler], str]


def _evenly(
    window: Window, links: Links, requests: int, choose: _Choice, *, explores: bool = True
) -> Crawler:
    """Ask at even times what is new, or else what is chosen."""
    crawler, saved = Crawler(window, links), 0
    for number in range(1, requests + 1):
        crawler.at(number * window.days / requests)
        if crawler.needs_robots:
            # It is asked together with the page that it is asked for.
            saved = 1 - saved
            if saved:
                continue
            crawler.ask_robots()
        if explores:
            crawler.explore(next(iter(crawler.new), None) or choose(crawler))
        else:
            crawler.ask(choose(crawler))
    return crawler


def _oldest(crawler: Crawler) -> str:
    return min(crawler.due, key=lambda url: crawler.known[url].asked)


def rotation(window: Window, links: Links, requests: int) -> Crawler:
    """All in turn."""
    return _evenly(window, links, requests, _oldest)


def fixed(window: Window, links: Links, requests: int) -> Crawler:
    """The pages of the first crawl in turn."""
    return _evenly(window, links, requests, _oldest, explores=False)


def recrawl(window: Window, links: Links, requests: int) -> Crawler:
    """A whole crawl in one go, whenever there are requests for one as large as the last."""
    crawler = Crawler(window, links)
    size = len(crawler.known) + 1
    while (day := (crawler.requests + size) * window.days / requests) < window.days:
        crawler.at(day)
        before = crawler.requests
        crawler.ask_robots()
        crawler.crawl()
        size = crawler.requests - before
    return crawler


def careful_rotation(window: Window, links: Links, requests: int) -> Crawler:
    """All living pages in turn, in sessions of 2√n requests."""
    return _in_sessions(window, links, requests, lambda living: int(2 * sqrt(living)))


def careful_recrawl(window: Window, links: Links, requests: int) -> Crawler:
    """All living pages in sessions of all."""
    return _in_sessions(window, links, requests, lambda living: living + 1)


def _in_sessions(
    window: Window, links: Links, requests: int, size_of: Callable[[int], int]
) -> Crawler:
    """Save requests for a session, ask robots.txt, then what is new, then the oldest living."""
    crawler, a_day = Crawler(window, links), requests / window.days
    dead = {url for url, it in crawler.known.items() if it.page is None}
    while True:
        living = [url for url in crawler.known if url not in dead]
        size = max(2, min(size_of(len(living)), requests))
        day = (crawler.requests + size) / a_day
        if day >= window.days:
            return crawler
        crawler.at(day)
        end = crawler.requests + size
        crawler.ask_robots()
        while crawler.requests < end:
            url = next(iter(crawler.new), None) or min(
                (it for it in crawler.known if it not in dead),
                key=lambda it: crawler.known[it].asked,
            )
            crawler.explore(url)
            if crawler.known[url].page is None:
                dead.add(url)


class _ByPace:
    """The URL due first by an interval policy that sees significant changes."""

    def __init__(self, window: Window, policy: IntervalPolicy) -> None:
        self._policy, self._pages = policy, window.pages
        self._paces: dict[str, tuple[float, Pace, float]] = {}

    def __call__(self, crawler: Crawler) -> str:
        return min(crawler.due, key=partial(self._due_at, crawler))

    def _due_at(self, crawler: Crawler, url: str) -> float:
        asked = crawler.known[url].asked
        last, pace, modified = self._paces.get(url, (None, None, asked))
        if last != asked or pace is None:
            page = self._pages.get(crawler.known[url].page or -1)
            days = () if page is None or last is None else page.changes
            changed = last is not None and bisect_right(days, last) < bisect_right(days, asked)
            modified = asked if changed else modified
            pace = self._policy.next_interval(pace, Revisit(asked, changed, modified))
            self._paces[url] = asked, pace, modified
        return pace.due_at


def _paced(policy: Callable[[], IntervalPolicy]) -> Strategy:
    return lambda window, links, requests: _evenly(
        window, links, requests, _ByPace(window, policy())
    )


def follower(window: Window, links: Links, requests: int, sitemap: str) -> Crawler:
    """What has changed since its last visit by an ``honest`` or ``daily`` sitemap, then the rest.

    Pages that were never visited come first, then those visited the longest ago.
    """
    crawler, stamps, again = Crawler(window, links, sitemap), dict[str, float](), 0
    for number in range(1, requests + 1):
        crawler.at(number * window.days / requests)
        if crawler.needs_robots:
            crawler.ask_robots()
        elif number >= again:
            stamps, again = crawler.ask_sitemap(), number + _ASK_SITEMAP_EVERY
        else:
            seen = {url: it.asked for url, it in crawler.known.items()}
            due = [url for url, day in stamps.items() if day > seen.get(url, -inf)]
            first = min(due, key=lambda url: seen.get(url, -inf), default=None)
            crawler.explore(first or next(iter(crawler.new), None) or _oldest(crawler))
    return crawler


def rates_known(window: Window, links: Links, requests: int) -> Crawler:
    """The greedy index on the true rates."""

    def worthiest(crawler: Crawler) -> str:
        due = crawler.due
        known = [crawler.known[url] for url in due]
        rate = [window.rates.get(it.page or -1, 0.0) for it in known]
        asked = np.array([it.asked for it in known])
        table = SourceTable.of(np.ones(len(due)), rate, last_crawl=asked)
        worth = GreedyIndex().index(table, crawler.day)
        return due[int(np.lexsort((asked, -worth))[0])]

    return _evenly(window, links, requests, worthiest)


def clairvoyant(window: Window, links: Links, requests: int) -> Crawler:
    """What costs most at the moment."""
    crawler = Crawler(window, links)
    seen = {page: days[-1] for page, days in crawler.visits.items()}
    for number in range(1, requests + 1):
        crawler.at(day := number * window.days / requests)
        worst, most = None, 0.0
        for number_, page in window.pages.items():
            if page.start <= day < page.end:
                since = seen.get(number_, -1.0)
                missed = bisect_right(page.changes, day) - bisect_right(page.changes, since)
                cost = missed + (number_ not in seen)
                if cost > most:
                    worst, most = number_, cost
        if worst is not None:
            seen[worst] = day
            crawler.web.shown.append((worst, window.begin + day * DAY_S))
    return crawler


#: A strategy: the crawler after so many requests in a window.
Strategy: TypeAlias = Callable[[Window, Links, int], Crawler]

#: The best of what a careful crawler does without learning.
RIVALS: Mapping[str, Strategy] = {
    "careful rotation": careful_rotation,
    "careful recrawl": careful_recrawl,
}
PLAIN: Mapping[str, Strategy] = {
    "rotation": rotation,
    "recrawl": recrawl,
    "fixed set": fixed,
    "Nutch": _paced(NutchAdaptive),
    "StormCrawler": _paced(StormCrawlerAdaptive),
}
ORACLES: Mapping[str, Strategy] = {"rates known": rates_known, "clairvoyant": clairvoyant}
