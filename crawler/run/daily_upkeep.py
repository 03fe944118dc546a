"""The daily upkeep of a daemon, during which no page is visited."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final

from freshet.crawler.run.crawl import COMPARED
from freshet.crawler.run.importance import interests
from freshet.crawler.run.upkeep import Grouping, catch_up, correct, retention_of
from freshet.scheduler.policies.greedy_index import SearchQuality
from freshet.scheduler.queue.rankers import ranker_of
from freshet.storage import maintenance
from freshet.storage.extensions import recorders
from freshet.storage.queries import columns
from freshet.storage.tables import observations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from freshet.crawler.frontier.politeness import Pacer
    from freshet.crawler.run.daemon_settings import InForce
    from freshet.crawler.run.hooks import Companions
    from freshet.crawler.run.pool import FetchPool
    from freshet.crawler.run.state import DaemonState
    from freshet.crawler.run.wiring import RunContext

log = logging.getLogger(__name__)

#: One day.
EVERY_S: Final = 86_400.0
#: Unused share of the budget that is not worth a log line.
_UNLOGGED: Final = 0.02
#: With more observations, learning from scratch takes over a minute; it waits for the next start.
_RELEARNT: Final = 1_000_000


@dataclass(slots=True)
class DailyUpkeep:
    """Corrects verdicts by later visits, and deletes old data.

    Attributes:
        since: the time of the last upkeep, or of the first visit.
        ends_at: when the visits end.
    """

    context: RunContext
    state: DaemonState
    companions: Companions
    pacer: Pacer
    pool: FetchPool
    since: float
    ends_at: float = inf
    #: Requests spent and unused at the last report.
    _reported: tuple[int, float] = field(default=(0, 0.0), init=False)

    def shift(self, by: float) -> None:
        """Adapt to a jump of the clock."""
        self.since += by
        self.ends_at += by

    def until(self) -> float:
        """Return the time of the next upkeep."""
        return min(self.since + EVERY_S, self.ends_at)

    async def keep_up(self, force: InForce) -> None:
        """Do the upkeep of a day; it may be repeated if the store was unavailable."""
        context, database, now = self.context, self.context.database, self.context.clock.now()
        comparing = Grouping(lambda: self.pool.stopping)
        self._report_unused()
        await self.state.agenda.rest()
        telling = [*recorders(force.settings), context.index]
        corrections = await correct(database, context.run_id, self.since, now, telling)
        await context.index.keep_up(database, context.parser, force.settings, now)
        self.companions.committed()
        if await observations.any_since(database.reader, self.since):
            await self._relearn(force, [each.page_id for each in corrections if each.was == "new"])
        await maintenance.prune(database, retention_of(context.settings.store), now)
        if comparing.stopping():
            return
        await catch_up(database, context.clock.now, batch=COMPARED, watch=comparing)
        if isinstance(self.state.policy, SearchQuality) and (known := interests()) is not None:
            await known.judge_next(database, now)
        await self.state.agenda.learner.reweigh(await self.state.weigh())

    async def _relearn(self, force: InForce, moved: Sequence[int]) -> None:
        """Learn from scratch with the corrected verdicts, unless that would take long."""
        if await columns.visits(self.context.database.reader) > _RELEARNT:
            await self.state.agenda.learner.inherit(moved)
            return
        await self.state.relearn(ranker_of(force.order.policy, force.learns_by))

    def _report_unused(self) -> None:
        """Log the allowed requests since the last report that no host could take."""
        pacer, (spent, forgone) = self.pacer, self._reported
        spent, forgone = pacer.spent - spent, pacer.forgone - forgone
        self._reported = pacer.spent, pacer.forgone
        if forgone >= max(1.0, _UNLOGGED * (spent + forgone)):
            log.warning(
                "%.0f of %.0f requests of the budget were not used: the delays of hosts with due "
                "pages allow no more; add sites, or lower the delay or the budget",
                forgone,
                spent + forgone,
            )
