"""A policy: ``freshet.policies``."""

from dataclasses import dataclass

from freshet.scheduler.arrays import Floats
from freshet.scheduler.sources import SourceTable


@dataclass(frozen=True, slots=True)
class MostStale:
    """The changes expected since the last visit, by importance, per what a visit costs."""

    def index(self, table: SourceTable, now: float) -> Floats:
        """Return what visits are worth now."""
        changes = table.change_rate * (now - table.last_crawl)
        return table.importance * changes / table.host_cost[table.host]
