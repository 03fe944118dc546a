"""The next crawl of an index policy, among millions of sources.

*Invariant.* :meth:`IndexQueue.best` is the source of the largest index among those whose host is
ready, ties by the lowest row: what ``argmax(policy.index(table, now))`` would give (to the
rounding of ``index``), for every policy that keeps the law of :class:`~.policy.IndexPolicy`: an
index does not fall between two events of its source, and depends on no other row.

*Method.* A chain of shortlists, each about a twentieth of the one before: of ten million sources
560,000, then 32,000, 1,800 and 100. Each list is drawn for a window of about as many crawls as it
has places and promises that until the window ends no source left out outranks its bar
(:mod:`scheduler.shortlists.shortlist` has the argument). So a crawl costs a look at the last
list, the *front*: if its best reaches all bars, it is the best of all. Otherwise a list has run
short or its window has passed, and that list and the shorter ones are drawn anew from the next
longer one. Events are written into the lists as they happen, or at the latest before one is drawn.

*Cost.* O(front) a crawl, and each list's drawing spread over its window: about 20 valuations a
crawl and list, with about log(n/100)/log 20 lists. Where many sources grow in step, as do sources
with equal columns, no bound parts them and a crawl costs up to O(n); a little jitter does part
them.

*Hosts.* Sources whose hosts are seldom ready rise far above all others and would fill every
list. So hosts that are not ready when a list is drawn get a few places on it and a bar of their
own: when such a host is ready, and its bar is above the best, its next few sources are let in.

*Why no heap of due times.* An index policy has no due times without a price, and the price is
what comes out of the policy; keyed by the present price, a heap is out of date with each change
of price, budget, rate or readiness, and it does not know ties and order beyond the price. Its
O(log n) also misses the processor's cache at each step; the lists are read from end to end.
"""

from __future__ import annotations

from math import inf, log

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools
from freshet.scheduler.policies.greedy_index import valuation
from freshet.scheduler.policy import IndexPolicy
from freshet.scheduler.shortlists.front import Front
from freshet.scheduler.shortlists.ranks import NOBODY, Rank, outranks
from freshet.scheduler.shortlists.repair import Repair
from freshet.scheduler.shortlists.shortlist import Shortlist
from freshet.scheduler.shortlists.whole import Whole
from freshet.scheduler.sources import SourceTable

#: About the sources of a list for each of the next shorter one, and the places of the front.
_RATIO = 20
_FRONT = 100

#: So many events the longer lists are told together, at the latest.
_NEWS = 1_000


class IndexQueue:
    """Tells what to crawl next, and takes what happens to the sources.

    Attributes:
        table: the sources. The queue owns the columns: it writes crawls, signals and rates into
            them, and others change them through it only.

    Args:
        policy: what the sources are worth.
        table: the sources.
        now: the day from which on the queue is asked; none of the days may go backwards.
        jitter: every index is multiplied with a factor from 1 − jitter to 1 + jitter, fixed
            from one crawl of the source to the next, so that crawls do not keep step with the
            pages' own clocks (0: none; less than 1).
        seed: decides the factors.

    Raises:
        ValueError: if the jitter is out of range or a last crawl is after ``now``.

    >>> from freshet.scheduler.policies.greedy_index import GreedyIndex
    >>> queue = IndexQueue(GreedyIndex(), SourceTable.of([1, 3, 2], [1, 1, 1]), 0.0)
    >>> queue.best(1.0)
    1
    >>> queue.crawled(1, 1.0)
    >>> queue.best(1.5)
    2
    """

    def __init__(
        self,
        policy: IndexPolicy,
        table: SourceTable,
        now: float,
        *,
        jitter: float = 0.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter: is {jitter!r}; accepted is a number from 0 to below 1")
        self.table = table
        self._now = -inf
        self._pass(now)
        _refuse_later_crawls(table, now)
        self._whole = Whole(table, valuation(policy, len(table)), jitter, seed)
        sizes = _sizes(len(table))
        self._front = Front(self._whole, sizes[-1])
        self._lists = [*(Shortlist(self._whole, size) for size in sizes[:-1]), self._front]
        self._crawls = 0
        self._news: list[int] = []
        self._sum_up()

    def best(self, now: float, ready: Bools | None = None) -> int | None:
        """The row of the largest index among sources whose host is ready.

        None if no such source is worth a crawl. ``ready`` is (H,), indexed by host code; without
        it all hosts are.

        Raises:
            ValueError: if ``now`` goes backwards or ``ready`` has another length or type.
        """
        self._pass(now)
        if ready is not None and not self._is_any(ready):
            return None
        leader = self._front.leader(now, ready)
        if (
            now > self._until
            or outranks(self._bar, leader)
            or (self._holding_back and self._hosts_above(leader, ready))
        ):
            leader = self._repaired(now, ready)
        return None if leader == NOBODY else leader[1]

    def crawled(self, source: int, now: float) -> None:
        """``source`` was crawled, whether it was the best or not: its signals are answered.

        Raises:
            ValueError: if ``now`` goes backwards or there is no such source.
        """
        self._pass(now)
        self._refuse_unknown(source)
        self.table.last_crawl[source] = now
        self.table.pending_signals[source] = 0
        self._crawls += 1
        self._admit([source])

    def signalled(self, source: int, now: float, count: int = 1) -> None:
        """``count`` more signals of ``source`` were heard.

        Raises:
            ValueError: as for :meth:`crawled`, or if the count is not positive.
        """
        self._pass(now)
        self._refuse_unknown(source)
        if count < 1:
            raise ValueError(f"count: is {count}; accepted is a whole number of at least 1")
        self.table.pending_signals[source] += count
        self._admit([source])

    def learnt(self, rows: ArrayLike, change_rate: ArrayLike, now: float) -> None:
        """The change rates of some sources are known better now; their indices may fall.

        Raises:
            ValueError: if ``now`` goes backwards, a row is none of the table or a rate is
                negative or not finite.
        """
        self._pass(now)
        sources = arrays.codes("rows", rows, len(np.asarray(rows)), len(self.table))
        rates = arrays.non_negative("change_rate", change_rate, len(sources))
        self.table.change_rate[sources] = rates
        # Where observations are complete the signals are the changes.
        complete = self.table.complete_observations[sources]
        self.table.signal_rate[sources[complete]] = rates[complete]
        self._admit(sources.tolist())

    def _pass(self, now: float) -> None:
        if not self._now <= now < inf:
            raise ValueError(f"now: is {now!r}; accepted is a finite day from {self._now!r} on")
        self._now = now

    def _is_any(self, ready: Bools) -> bool:
        hosts = len(self.table.host_capacity)
        if ready.shape != (hosts,) or ready.dtype != np.bool_:
            raise ValueError(f"ready: accepted are {hosts} truth values (bool), one a host")
        return bool(ready.any())

    def _refuse_unknown(self, source: int) -> None:
        if not 0 <= source < len(self.table):
            raise ValueError(
                f"source: is {source}; accepted is a row from 0 to {len(self.table) - 1}"
            )

    def _admit(self, rows: list[int]) -> None:
        """The front takes events in at once, as it is asked first; the other lists, together."""
        self._take_in(self._front, rows)
        self._news.extend(rows)
        if len(self._news) > _NEWS:
            self._spread_news()

    def _spread_news(self) -> None:
        for each in self._lists[:-1]:
            self._take_in(each, self._news)
        self._news.clear()

    def _take_in(self, each: Shortlist, rows: list[int]) -> None:
        # What must be drawn anew will find them in the longer list.
        if each.until > -inf:
            if each.would_overgrow(len(rows)):
                each.give_up()
                self._until = -inf
            else:
                each.admit(rows)

    def _hosts_above(self, leader: Rank, ready: Bools | None) -> bool:
        return any(len(each.held_back.above(leader, ready)) for each in self._holding_back)

    def _repaired(self, now: float, ready: Bools | None) -> Rank:
        """The best of all, after drawing what must be drawn."""
        self._spread_news()
        repair = Repair(self._whole, self._lists, now, self._crawls, ready)
        while True:
            leader = self._front.leader(now, ready)
            if not repair.step(leader):
                self._sum_up()
                return leader

    def _sum_up(self) -> None:
        self._until = min(each.until for each in self._lists)
        self._bar = NOBODY
        for each in self._lists:
            if outranks(each.bar, self._bar):
                self._bar = each.bar
        self._holding_back = [each for each in self._lists if len(each.held_back)]


def _sizes(n: int) -> list[int]:
    """The places of the shortlists of n sources, each as many times those of the next."""
    whole = max(n / _FRONT, 1.0)
    lists = max(round(log(whole) / log(_RATIO)), 1)
    return [round(_FRONT * whole ** (each / lists)) for each in reversed(range(lists))]


def _refuse_later_crawls(table: SourceTable, now: float) -> None:
    later = table.last_crawl > now
    if later.any():
        row = int(np.argmax(later))
        raise ValueError(
            f"last_crawl: row {row} is {table.last_crawl[row]}; accepted is a day up to now ({now})"
        )
