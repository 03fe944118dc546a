"""The work of one valuation: learn from new observations, value all pages, choose the best.

It is one piece of work on arrays, which may run in a thread. Besides the ranker it changes the
price of a request and the set of open hosts.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from freshet.scheduler.arrays import Ints
from freshet.scheduler.queue.history import NewEvidence
from freshet.scheduler.queue.hooks import AgendaHooks
from freshet.scheduler.queue.learner import Learner
from freshet.scheduler.queue.ready import DiscoveryQuota, EmptyQuota
from freshet.scheduler.queue.sessions import Sessions, begin_sessions
from freshet.scheduler.queue.site_clock_ranker import SiteClockRanker
from freshet.scheduler.queue.valuer import Valuation, VisitValuer, best_rows
from freshet.scheduler.sources import Rows

#: Factor that ranks non-favoured pages after all favoured ones, urgent pages included.
_AFTER: Final = 1e-150


@dataclass(frozen=True, slots=True)
class ChoiceBounds:
    """The limits of a choice.

    Attributes:
        free: (H,), the number of pages of each host that may be chosen.
        room: the number of pages that may be chosen in all.
        favoured: True if visits for discovery rank before all others, False if after; None:
            neither.
        sampling: whether audit samples are drawn.
        saved: the saved requests of the budget.
        budget: requests a day.
    """

    free: Ints
    room: int
    favoured: bool | None
    sampling: bool
    saved: float
    budget: float


@dataclass(frozen=True, slots=True)
class Appraiser:
    """The appraisal of a learner's pages, with the sessions of hosts and the quotas."""

    learner: Learner
    sessions: Sessions
    quota: DiscoveryQuota
    empty: EmptyQuota
    hooks: AgendaHooks

    def __call__(self, evidence: NewEvidence, now: float, choice: ChoiceBounds) -> Valuation:
        """Learn from visits, value all pages and choose the best pages that may be requested."""
        ranker, pages, sessions = self.learner.ranker, self.learner.pages, self.sessions
        with self.hooks.timed("learn"):
            evidence.teach(ranker)
        with self.hooks.timed("value"):
            fresh = ranker.values(now)
        valuer = VisitValuer(
            pages=pages,
            hubs=self.learner.hubs,
            hosts=self.learner.hosts,
            ranker=ranker,
            terms=self.quota.terms,
            budget=choice.budget,
            now=now,
        )
        values = valuer.values(fresh)
        self._price(valuer)
        empty_above = inf if self.empty.is_spent else sessions.price
        left, targets = valuer.offers(values, empty_above, self._spent_lists())
        silent = sessions.tried & valuer.unvisited()
        may_try = not self.empty.is_spent and sessions.pays_for_silent(choice.saved, choice.budget)
        opened = begin_sessions(
            sessions, valuer, values, left,
            saved=choice.saved, silent=np.zeros_like(silent) if may_try else silent,
        )  # fmt: skip
        for _ in range(int(np.count_nonzero(silent[opened]))):
            # A silent host costs one more request, for its robots.txt.
            self.empty.took(is_empty=True)
        left[sessions.closed[pages["host"]]] = 0.0
        if choice.favoured is not None:
            left[values.discovers != choice.favoured] *= _AFTER
        chosen = best_rows(left, pages["host"], choice.free, choice.room)
        return Valuation(
            at=now,
            worth=values.value,
            discovers=values.discovers,
            chosen=chosen,
            has_all=len(chosen) < choice.room,
            sources=values.sources,
            arrivals=values.arrivals,
            urgent=values.urgent,
            reveals=values.revealing.pages,
            hazard=ranker.beliefs(now).hazard if choice.sampling else np.empty(0),
            unknown=values.revealing.unknown,
            per_day=values.revealing.per_day,
            opened=opened,
            targets=targets,
        )

    def _price(self, valuer: VisitValuer) -> None:
        """Compute the price of a request if the ranker's values can be compared with a price."""
        sessions, now = self.sessions, valuer.now
        if valuer.has_price and sessions.should_reprice(now):
            held, rate = valuer.held, valuer.ranker.beliefs(now).rate
            importance = valuer.pages["importance"]
            sessions.reprice(rate[held], importance[held], valuer.budget, now)

    def _spent_lists(self) -> Rows:
        """Return the rows of sitemaps and feeds without announcements whose share is spent."""
        ranker, pages, ids = self.learner.ranker, self.learner.pages, self.learner.hosts.ids
        silent_lists = pages.lists()
        if isinstance(ranker, SiteClockRanker):
            silent_lists = np.union1d(silent_lists, ranker.polled(confirmed=False))
            silent_lists = np.setdiff1d(silent_lists, ranker.polled(confirmed=True))
        else:
            silent_lists = silent_lists[~pages["captured"][silent_lists]]
        hosts = [ids[code] for code in pages["host"][silent_lists].tolist()]
        return self.quota.aside.spent(silent_lists, hosts)
