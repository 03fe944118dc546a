"""What a daemon knows that was killed and went on, beside one that was fed the same at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from freshet.crawler.run.importance import Areas
from freshet.scheduler.arrays import Floats
from freshet.scheduler.estimate import evidence as recrawl
from freshet.scheduler.queue.ranker import Ranker
from freshet.scheduler.queue.rankers import ranker_of
from freshet.scheduler.sources import Rows
from freshet.storage.database import reading
from freshet.storage.queries import columns as columns_queries
from freshet.storage.queries.columns import VisitColumns, WatchedPages

_DAY_S = 86_400.0
#: Values below count as 0.
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Differences:
    """Of the worth of a visit and the probability of being stale, over all pages.

    ``worth`` and ``stale`` are the largest relative differences, ``agreement`` is the rank
    correlation (Spearman's) of the worths: 1 where both would look at the same pages.
    """

    pages: int
    worth: float
    stale: float
    agreement: float


async def replayed(store: Path, policy: str, budget: float, split: float) -> Differences:
    """Compare a daemon that was killed after a part (``split``) of the visits with a new one.

    The first one opens the store as it was then, and takes in what came later visit by visit, each
    page when it was found; the second one takes in all at once.
    """
    async with reading(store) as connection:
        pages = await columns_queries.pages(connection)
        visits = await columns_queries.visit_columns(connection)
    return differences(
        _interrupted(pages, visits, policy, budget, split),
        learnt_at_once(pages, visits, policy, budget),
        float(visits.at.max()) / _DAY_S + 0.01,
    )


def differences(one: Ranker, other: Ranker, now: float) -> Differences:
    """Compare what two know of the same rows on this day."""
    worths = [each.values(now) for each in (one, other)]
    stale = [-np.expm1(-each.beliefs(now).hazard) for each in (one, other)]
    return Differences(
        len(worths[0]),
        _apart(worths[0], worths[1]),
        _apart(stale[0], stale[1]),
        _agreement(worths[0], worths[1]),
    )


def _agreement(one: Floats, other: Floats) -> float:
    if len(one) < 2:
        return 1.0
    return float(spearmanr(one, other).statistic)


def _apart(one: Floats, other: Floats) -> float:
    if not len(one):
        return 0.0
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), _TINY)
    return float((np.abs(one - other) / size).max())


class _Columns:
    """The rows of a store for a ranker, and the visits to them."""

    def __init__(self, pages: WatchedPages, visits: VisitColumns) -> None:
        hosts = {host: code for code, host in enumerate(dict.fromkeys(pages.host_id.tolist()))}
        self.site = np.array([hosts[host] for host in pages.host_id.tolist()], np.intp)
        self.area = Areas()(pages.url)
        self.found = pages.found_at / _DAY_S
        place = np.minimum(np.searchsorted(pages.page_id, visits.page_id), len(pages) - 1)
        known = pages.page_id[place] == visits.page_id
        self.visits = recrawl.VisitResults(
            place[known].astype(np.intp), visits.at[known] / _DAY_S, visits.compared[known],
            visits.changed[known], visits.gone[known], visits.moved[known],
        )  # fmt: skip

    def add(self, to: Ranker, rows: Rows) -> None:
        to.add(self.site[rows], self.area[rows], np.ones(len(rows)), self.found[rows])


def learnt_at_once(pages: WatchedPages, visits: VisitColumns, policy: str, budget: float) -> Ranker:
    """What is known of pages of which all visits are learnt at once."""
    columns, found = _Columns(pages, visits), ranker_of(policy, budget)
    columns.add(found, np.arange(len(pages)))
    found.learn(columns.visits)
    return found


def _interrupted(
    pages: WatchedPages, visits: VisitColumns, policy: str, budget: float, split: float
) -> Ranker:
    it, found = _Columns(pages, visits), ranker_of(policy, budget)
    end = int(len(it.visits) * split)
    known = int(it.visits.row[:end].max()) + 1 if end else 0
    it.add(found, np.arange(known))
    found.learn(it.visits.take(slice(end)))
    for place in range(end, len(it.visits)):
        row = int(it.visits.row[place])
        if row >= known:
            it.add(found, np.arange(known, row + 1))
            known = row + 1
        found.learn(it.visits.take(slice(place, place + 1)))
    it.add(found, np.arange(known, len(pages)))
    return found
