"""Which of a store's seeds a daemon keeps fresh: those that it is given, or all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite
import numpy as np

from freshet.crawler.admission.scope import Scope, ScopeKind
from freshet.crawler.admission.sites import Seed
from freshet.scheduler.arrays import Bools
from freshet.storage.records import StoredSeed
from freshet.storage.tables import runs


@dataclass(frozen=True, slots=True)
class ChosenSites:
    """The seeds that are kept, and the scope of the others of the store."""

    seeds: list[StoredSeed]
    left_out: Scope

    def left_out_of(self, urls: Sequence[str], scope: Scope) -> Bools:
        """(m,), whether pages belong to a seed that is not kept, and to none in ``scope``."""
        if not self.left_out.roots():
            return np.zeros(len(urls), np.bool_)
        return np.array(
            [self.left_out.contains(url) and not scope.contains(url) for url in urls], np.bool_
        )

    def beside(self, before: ChosenSites) -> str:
        """How many seeds came and went, as part of a sentence; "" if they are the same."""
        now, then = ({seed.url for seed in each.seeds} for each in (self, before))
        came, went = len(now - then), len(then - now)
        return f", {came:,} seeds more, {went:,} left out" if came or went else ""


async def chosen_sites(
    connection: aiosqlite.Connection, named: Sequence[Seed], scope: str
) -> ChosenSites:
    """The stored seeds that are ``named``; all of them if none is."""
    stored = await runs.load(connection)
    urls = {seed.url for seed in named} or {seed.url for seed in stored}
    others = [seed.root_url or seed.url for seed in stored if seed.url not in urls]
    return ChosenSites(
        [seed for seed in stored if seed.url in urls], Scope(ScopeKind(scope), others)
    )
