"""Sources of a plan from a store: pages with change rates learned from their histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.config.settings import Daemon, Ephemeral, PageRule
from freshet.crawler.capacities import exchange_of, key_of, numbered
from freshet.crawler.importance import Weighing, terms, weigh
from freshet.crawler.lab.plan_files import PlanSources
from freshet.scheduler import estimate
from freshet.scheduler.agenda.ephemeral import decays, sources
from freshet.scheduler.agenda.new_pages import Churning, recall_churn
from freshet.scheduler.arrays import Bools, Floats, rows_among
from freshet.scheduler.estimate.evidence import evidence_of
from freshet.scheduler.sources import Rows
from freshet.storage.queries import columns, page
from freshet.storage.queries.columns import KeptPages, PastObservations
from freshet.storage.tables import links as links_tables

# -- appearing ---------------------------------------------------------------
_DAY_S: Final = 86_400.0
_DAY_HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class EphemeralPages:
    """The k pages of a store that are ephemeral sources; every column has length k.

    Attributes:
        row: of the page.
        rate: Λ, new items a day.
        own: the share of them that count here: an item is divided among the sources that show it.
        decay: μ, per day.
        declared: whether the site list or a rule says so.
        last_visit: Unix days of the last visit.
    """

    row: Rows
    rate: Floats
    own: Floats
    decay: Floats
    declared: Bools
    last_visit: Floats

    def __len__(self) -> int:
        return len(self.row)

    @property
    def half_life_hours(self) -> Floats:
        """(k,), the half-life of an item."""
        hours: Floats = np.log(2) / self.decay * _DAY_HOURS
        return hours


async def ephemeral_pages(
    connection: aiosqlite.Connection,
    pages: KeptPages,
    weighing: Weighing,
    daemon: Daemon,
    said: Ephemeral,
) -> EphemeralPages:
    """Return the ephemeral sources as a daemon of these settings sees them."""
    n = len(pages)
    listed = weighing.half_lives(pages.page_id, pages.url)
    half_life = terms(pages.url, pages.host, np.ones(n), daemon.rules, listed).half_life_days
    on, since = exchange_of(said, daemon), pages.checked_at / _DAY_S
    churning, found_at = Churning(), pages.found_at / _DAY_S
    await recall_churn(connection, churning, partial(rows_among, pages.page_id), found_at)
    row, rate = sources(
        half_life, churning, on, found_at=found_at, since=since, held=np.ones(n, np.bool_)
    )
    links = await links_tables.shown(connection, pages.page_id[row].tolist())
    return EphemeralPages(
        row=row, rate=rate, own=_own_share(pages.page_id[row], links),
        decay=decays(half_life[row], on), declared=half_life[row] > 0, last_visit=since[row],
    )  # fmt: skip


def _own_share(page_id: NDArray[np.int64], links: NDArray[np.int64]) -> Floats:
    """Return (k,), the mean over the items of each page of 1 / the pages that show it."""
    _, item, count = np.unique(links[:, 1], return_inverse=True, return_counts=True)
    place = np.searchsorted(page_id, links[:, 0])
    total = np.bincount(place, 1 / count[item], minlength=len(page_id))
    number = np.bincount(place, minlength=len(page_id))
    return np.where(number > 0, total / np.maximum(number, 1), 1.0)


@dataclass(frozen=True, slots=True)
class _StoredHistory:
    """The history of a store at one moment."""

    pages: KeptPages
    observations: PastObservations
    weighing: Weighing
    ephemeral: EphemeralPages


@dataclass(frozen=True, slots=True)
class RateLearning:
    """The evidence for the change rates of a store's pages.

    ``without_evidence`` pages have no interval between two captures: they get the estimator's
    prior. ``gone`` pages are left out of the plan.
    """

    estimator: str
    observations: int
    intervals: int
    without_evidence: int
    gone: int


async def read_history(db: Path, daemon: Daemon, said: Ephemeral) -> _StoredHistory:
    """Read pages and their histories as a daemon would, from one snapshot.

    The settings of ``daemon`` weight the pages; those of ``ephemeral`` all count.

    Raises:
        StoreError: the file does not exist, or is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        pages = await columns.page_histories(connection)
        observed = await columns.observations(connection, pages.page_id)
        weighing = await weigh(connection, daemon.importance)
        decaying = await ephemeral_pages(connection, pages, weighing, daemon, said)
        return _StoredHistory(pages, observed, weighing, decaying)


def sources_of(
    stored: _StoredHistory, estimator: str, rules: Sequence[PageRule] = ()
) -> tuple[PlanSources, RateLearning]:
    """Return the pages as sources, with their change rates by the named estimator.

    The ``rules`` (``daemon.rules``) may set importances. A host of the result is a host queue,
    whose URLs share one delay; the estimator takes its pages to be alike.
    """
    pages = stored.pages
    queue, queues = numbered(map(key_of, pages.hosts))
    host = queue[pages.host]
    observed = stored.observations
    evidence = evidence_of(observed.page, observed.at, observed.kind)
    learner = estimate.load(estimator, host)
    learner.observe(evidence)
    origins = [place.origin for place in pages.hosts]
    own = stored.weighing.importances(pages.page_id, pages.url, pages.host, origins)
    learned = PlanSources(
        url=pages.url,
        importance=terms(pages.url, pages.host, own, rules).importance,
        change_rate=learner.change_rate(),
        complete_observations=np.zeros(len(pages), np.bool_),
        host=host,
        hosts=queues,
    )
    known = np.bincount(evidence.source, minlength=len(pages)) > 0
    return learned, RateLearning(
        estimator, len(observed), len(evidence), int((~known).sum()), pages.gone
    )


def queue_delays_s(pages: KeptPages) -> list[float | None]:
    """Return the delay of each host queue, in the order of :func:`sources_of`; None if unknown."""
    delays = {
        key_of(host): None if host.state is None else host.state.delay_s for host in pages.hosts
    }
    return list(delays.values())
