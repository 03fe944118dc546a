"""A cover of a site's new pages: what is chosen, why, and what it would have found before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from freshet.crawler.commands.sources.site_history import SiteHistory
from freshet.scheduler.arrays import Floats, Ints
from freshet.scheduler.discovery.covers import Past, greedy, historical_limit
from freshet.scheduler.discovery.judging import Record, judged
from freshet.scheduler.discovery.reveals import Reveals, yields
from freshet.scheduler.discovery.thesis import ALGORITHMS, Algorithm, clusters

#: What the algorithms are set beside: who knew, and whoever looks at all that ever revealed any.
KNEW: Final = "greedy, knowing"
EVER: Final = "all that ever did"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A page of a cover.

    ``share`` is that of the site's new pages that it reveals (p_x), ``expected`` how many it would
    reveal now, ``revealed`` how many it has, ``cluster`` a number that pages share which revealed
    nearly the same in the last step, None where it revealed nothing then.
    """

    url: str
    role: str
    share: float
    expected: float
    revealed: int
    looks: int
    looked_at: float
    cluster: int | None


@dataclass(frozen=True, slots=True)
class Cover:
    """A cover, and what all algorithms would have been worth; ``past`` is empty without a past."""

    history: SiteHistory
    algorithm: str
    budget: int
    pages: list[Chosen]
    past: Mapping[str, Record]

    @property
    def orphans(self) -> int:
        """New pages to which no link led: found by whoever knew them otherwise."""
        return sum(each.orphans for each in self.history.recrawls)

    @property
    def new(self) -> int:
        """Pages that were found since the first crawl."""
        return sum(each.new for each in self.history.recrawls)


def cover_of(history: SiteHistory, algorithm: str, budget: int) -> Cover:
    """Choose a cover of at most ``budget`` pages for the next step."""
    recrawls = history.recrawls
    pages = history.sightings.found_at.size
    past = Past(
        pages, float(len(recrawls)), list(map(float, range(len(recrawls)))), recrawls
    ).of_living(history.alive_now)
    cover = ALGORITHMS[algorithm](past, budget)
    return Cover(
        history, algorithm, budget, _chosen(history, cover, past.fractions()),
        _judged(history, budget),
    )  # fmt: skip


def _judged(history: SiteHistory, budget: int) -> Mapping[str, Record]:
    recrawls = history.recrawls
    if not any(each.new for each in recrawls[1:]):
        return {}
    alive = [history.alive(step) for step in range(len(recrawls))]
    found = {
        name: judged(recrawls, _choosing(choose, budget), alive)
        for name, choose in ALGORITHMS.items()
    }
    found[EVER] = judged(recrawls, lambda past, _now: historical_limit(past), alive)
    found[KNEW] = judged(recrawls, lambda _past, now: greedy(now, budget=budget))
    return found


def _choosing(choose: Algorithm, budget: int) -> Callable[[Past, Reveals], Ints]:
    return lambda past, _now: choose(past, budget)


def _chosen(history: SiteHistory, cover: Ints, share: Floats) -> list[Chosen]:
    told = yields(history.sightings)
    revealed = told.revealed if history.new_sites is None else _revealed(history)
    pages, now = history.pages, float(history.times[-1]) if history.times.size else 0.0
    looked_at = history.sightings.looked_before(cover, np.full(cover.size, np.inf))
    cluster_of = _clusters(history, cover)
    return [
        Chosen(
            pages.url[page], pages.role[page], float(share[page]),
            float(share[page]) * history.new_per_day * max(now - float(at), 0.0),
            int(revealed[page]), int(told.looks[page]) + 1, float(at), cluster,
        )
        for page, at, cluster in zip(cover.tolist(), looked_at, cluster_of, strict=True)
    ]  # fmt: skip


def _revealed(history: SiteHistory) -> Ints:
    """How many new things each page led to, in all steps."""
    found = np.zeros(history.sightings.found_at.size, np.int64)
    for each in history.recrawls:
        found[: each.old] += each.degrees
    return found


def _clusters(history: SiteHistory, cover: Ints) -> list[int | None]:
    """The cluster of each page in the last step that brought anything new."""
    last = next((each for each in reversed(history.recrawls) if each.members.size), None)
    if last is None:
        return [None] * cover.size
    of_set = clusters(last)
    sets = [int(last.set_of[page]) if page < last.old else -1 for page in cover.tolist()]
    return [int(of_set[number]) if number >= 0 else None for number in sets]
