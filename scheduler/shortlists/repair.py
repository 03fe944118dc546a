"""Drawing anew what no longer tells the best source of all."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from freshet.scheduler.arrays import Bools
from freshet.scheduler.shortlists.ranks import HeldBack, Rank, outranks
from freshet.scheduler.shortlists.shortlist import LongList, Shortlist
from freshet.scheduler.shortlists.whole import Whole

#: Of more hosts at once, letting each in costs more than drawing the list anew.
_MANY_HOSTS = 8


class Repair:
    """What one question to the queue has to mend, step by step.

    Level 0 is the list that is drawn from the whole table, the last level the front. Each step
    mends the first of these faults: a window has passed (longest list first, for the shorter
    ones are drawn from it); a list has run short (shortest first, for it may only be that);
    hosts that were held back may have something better.

    It ends, whatever the rounding of a policy's index: a list that is short again was drawn for
    this very moment, and each host is let in once.
    """

    def __init__(
        self,
        whole: Whole,
        lists: Sequence[Shortlist],
        now: float,
        crawls: int,
        ready: Bools | None,
    ) -> None:
        self._longer: list[LongList] = [whole, *lists[:-1]]
        self._lists = lists
        self._now = now
        self._crawls = crawls
        self._ready = ready
        self._drawn: set[int] = set()
        self._for_now: set[int] = set()
        self._let_in: set[tuple[int, int]] = set()

    def step(self, leader: Rank) -> bool:
        """Mend one fault, if there is one; ``leader`` is the front's best."""
        return self._pass_on() or self._fill_up(leader) or self._let_hosts_in(leader)

    def _pass_on(self) -> bool:
        for level, each in enumerate(self._lists):
            if self._now > each.until:
                if each.until > -inf:
                    each.window.passed()
                self._draw(level)
                return True
        return False

    def _fill_up(self, leader: Rank) -> bool:
        for level, each in reversed(list(enumerate(self._lists))):
            if level not in self._for_now and outranks(each.bar, leader):
                if level in self._drawn:
                    each.window.failed()
                else:
                    each.window.ran_short()
                self._draw(level)
                return True
        return False

    def _let_hosts_in(self, leader: Rank) -> bool:
        for level, each in reversed(list(enumerate(self._lists))):
            above = each.held_back.above(leader, self._ready).tolist()
            hosts = [host for host in above if (level, host) not in self._let_in]
            if len(hosts) > _MANY_HOSTS and level not in self._drawn:
                # They were not ready, and are: they count as all others do.
                each.held_back = HeldBack()
                self._draw(level)
                return True
            for host in hosts:
                self._let_in.add((level, host))
                rows = each.let_in(self._longer[level], host, self._now)
                for shorter in self._lists[level:]:
                    shorter.admit(rows)
            if hosts:
                return True
        return False

    def _draw(self, level: int) -> None:
        again = level in self._drawn
        for lower in range(level, len(self._lists)):
            self._lists[lower].draw(self._longer[lower], self._now, self._crawls, self._ready)
            self._drawn.discard(lower)
            self._for_now.discard(lower)
            self._let_in = {each for each in self._let_in if each[0] != lower}
        self._drawn.add(level)
        if again:
            self._for_now.add(level)
