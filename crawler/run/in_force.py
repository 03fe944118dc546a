"""The order and the settings by which a daemon goes until it is told to read them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.config.sites import with_stored
from freshet.crawler.admission.admit import Scope
from freshet.crawler.run import default_budget
from freshet.crawler.run.rules import scope_at
from freshet.storage.tables import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import aiosqlite

    from freshet.config.settings import Settings
    from freshet.crawler.run.orders import DaemonOrder
    from freshet.scheduler.arrays import Bools
    from freshet.storage.records import StoredSeed

#: Settings that map hosts to host queues cannot change while the queues are in use.
_OF_QUEUES: Final = ("key", "groups")


@dataclass(frozen=True, slots=True)
class ChosenSites:
    """The seeds that a daemon keeps fresh, and the scope of the store's other seeds."""

    seeds: Sequence[StoredSeed]
    others: Scope

    @property
    def named(self) -> str:
        """Return the roots that are left out, as text."""
        return repr(sorted(self.others.roots()))

    def left_out_of(self, urls: Sequence[str], scope: Scope) -> Bools:
        """Return a mask (m,) of the pages that belong to other seeds only."""
        if not self.others.roots():
            return np.zeros(len(urls), np.bool_)
        return np.array(
            [self.others.contains(url) and not scope.contains(url) for url in urls], np.bool_
        )

    def beside(self, before: ChosenSites) -> str:
        """Return the change in the number of seeds for a log line, or ""."""
        now, then = ({seed.url for seed in each.seeds} for each in (self, before))
        came, went = len(now - then), len(then - now)
        return f", {came:,} seeds added, {went:,} removed" if came or went else ""


async def chosen_sites(
    connection: aiosqlite.Connection, named: Sequence[StoredSeed], settings: Settings
) -> ChosenSites:
    """Return the stored seeds that are ``named``; all of them if none is."""
    stored = await runs.load(connection)
    urls = {seed.url for seed in named} or {seed.url for seed in stored}
    others = [seed.root_url or seed.url for seed in stored if seed.url not in urls]
    return ChosenSites(
        [seed for seed in stored if seed.url in urls], Scope(scope_at(settings), others)
    )


@dataclass(frozen=True, slots=True)
class InForce:
    """The order of a daemon with its settings, the sites that it chooses, and two budgets.

    Attributes:
        per_day: requests a day.
        learns_by: the budget by which the ranker learns.
    """

    order: DaemonOrder
    settings: Settings
    sites: ChosenSites
    per_day: float
    learns_by: float

    @property
    def of_ranker(self) -> Settings:
        """Return the settings with the budget by which the ranker learns."""
        return with_budget(self.settings, self.order, self.learns_by)


def learning_budget(order: DaemonOrder, per_day: float) -> float:
    """Return the budget by which a ranker learns: a default one is followed in steps."""
    return default_budget.for_ranker(per_day) if order.budget is None else per_day


def with_budget(settings: Settings, order: DaemonOrder, per_day: float) -> Settings:
    """Return the settings with this budget and the policy of the order."""
    said = {"budget": f"{per_day:.12g}/day", "policy": order.policy}
    daemon = settings.daemon.model_copy(update=said)
    return settings.model_copy(update={"daemon": daemon})


def for_store(settings: Settings) -> str:
    """Return the settings as a run's row keeps them, without those of the store itself."""
    return with_stored(settings, ()).model_dump_json()


# -- reload ------------------------------------------------------------------


def taken_over(running: Settings, wanted: Settings) -> Settings:
    """Return the running settings with the groups that a reload can change."""
    keys = {name: getattr(running.politeness, name) for name in _OF_QUEUES}
    politeness = wanted.politeness.model_copy(update=keys)
    groups = {name: it for name, it in wanted.groups().items() if it.RELOADED}
    return running.model_copy(update={**groups, "sites": wanted.sites, "politeness": politeness})


def waiting_for_a_restart(running: Settings, wanted: Settings) -> str:
    """Return the changed settings that need a restart, for a log line, or ""."""
    now, then = running.model_dump(), wanted.model_dump()
    names = [
        f"{group}.{key}"
        for group, values in then.items()
        if isinstance(values, dict)
        for key, value in values.items()
        if value != now[group][key]
    ]
    return f"; restart the daemon to apply {', '.join(names)}" if names else ""
