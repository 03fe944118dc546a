"""Sources of a plan from a store: its pages, with change rates learned from their histories."""

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
from freshet.crawler.capacities import exchange_of, numbered
from freshet.crawler.importance import Weighing, terms, weigh
from freshet.crawler.lab.plan_files import Sources
from freshet.scheduler import estimate
from freshet.scheduler.agenda.ephemeral import VisitSpans, decays, sources
from freshet.scheduler.agenda.new_pages import Churning, appearing
from freshet.scheduler.arrays import Bools, Floats, rows_among
from freshet.scheduler.estimate.evidence import evidence_of
from freshet.scheduler.sources import Rows
from freshet.storage.queries import columns, page
from freshet.storage.queries.columns import KeptPages, PastObservations
from freshet.storage.tables import links as links_tables

# -- appearing ---------------------------------------------------------------
#
# The ephemeral sources of a store: what appears there, how fast, and what others show, too.

_DAY_S: Final = 86_400.0
_DAY_HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class EphemeralPages:
    """The k pages of a store that are ephemeral sources; every column has length k.

    Attributes:
        row: of the page.
        rate: Λ, new items a day.
        own: the share of them that count here: each is divided among the sources that show it.
        decay: μ, per day.
        declared: whether the site list or a rule says so.
        last_look: Unix days.
    """

    row: Rows
    rate: Floats
    own: Floats
    decay: Floats
    declared: Bools
    last_look: Floats

    def __len__(self) -> int:
        return len(self.row)

    @property
    def half_life_hours(self) -> Floats:
        """(k,), in which an item loses half of its worth."""
        hours: Floats = np.log(2) / self.decay * _DAY_HOURS
        return hours


async def ephemeral_pages(
    connection: aiosqlite.Connection,
    pages: KeptPages,
    weighing: Weighing,
    daemon: Daemon,
    said: Ephemeral,
) -> EphemeralPages:
    """Those that a daemon of these settings takes for such."""
    n = len(pages)
    listed = weighing.half_lives(pages.page_id, pages.url)
    half_life = terms(pages.url, pages.host, np.ones(n), daemon.rules, listed).half_life_days
    on, since = exchange_of(said, daemon), pages.checked_at / _DAY_S
    churning = await _churning(connection, pages)
    looked = VisitSpans(pages.found_at / _DAY_S, since, np.ones(n, np.bool_))
    row, rate = sources(half_life, looked, churning, on)
    links = await links_tables.shown(connection, pages.page_id[row].tolist())
    return EphemeralPages(
        row, rate, _own_share(pages.page_id[row], links), decays(half_life[row], on),
        half_life[row] > 0, since[row],
    )  # fmt: skip


async def _churning(connection: aiosqlite.Connection, pages: KeptPages) -> Churning:
    known = Churning()
    rows_of = partial(rows_among, pages.page_id)
    known.learn(await appearing(connection, rows_of, pages.found_at / _DAY_S))
    return known


def _own_share(page_id: NDArray[np.int64], links: NDArray[np.int64]) -> Floats:
    """(k,), the mean over the items of each page of one over the pages that show it."""
    _, item, count = np.unique(links[:, 1], return_inverse=True, return_counts=True)
    place = np.searchsorted(page_id, links[:, 0])
    total = np.bincount(place, 1 / count[item], minlength=len(page_id))
    number = np.bincount(place, minlength=len(page_id))
    return np.where(number > 0, total / np.maximum(number, 1), 1.0)


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """What a store knew at one moment."""

    pages: KeptPages
    observations: PastObservations
    weighing: Weighing
    ephemeral: EphemeralPages


@dataclass(frozen=True, slots=True)
class Learning:
    """What the change rates of a store's pages were estimated from.

    ``without_evidence`` pages have not one interval between two captures: they get what the
    estimator takes to be likely. ``gone`` pages are left out of the plan.
    """

    estimator: str
    observations: int
    intervals: int
    without_evidence: int
    gone: int


async def read_history(db: Path, daemon: Daemon, said: Ephemeral) -> StoredHistory:
    """The pages that are kept up to date, and what a daemon would know of them, from one snapshot.

    Of the settings of ``daemon`` those count that say what pages weigh, and of ``ephemeral`` all.

    Raises:
        StoreError: there is no such file, or it is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        pages = await columns.page_histories(connection)
        observed = await columns.observations(connection, pages.page_id)
        weighing = await weigh(connection, daemon.importance)
        fading = await ephemeral_pages(connection, pages, weighing, daemon, said)
        return StoredHistory(pages, observed, weighing, fading)


def sources_of(
    stored: StoredHistory, estimator: str, rules: Sequence[PageRule] = ()
) -> tuple[Sources, Learning]:
    """The pages as sources, with their change rates by the estimator of this name.

    Of the ``rules`` (``daemon.rules``) those count that say an importance.

    Their hosts are lanes: what shares one delay. A lane is also the group in which the
    estimator takes pages to be alike.
    """
    pages = stored.pages
    lane, lanes = numbered(host.lane or host.origin for host in pages.hosts)
    host = lane[pages.host]
    observed = stored.observations
    evidence = evidence_of(observed.page, observed.at, observed.kind).evidence
    learner = estimate.load(estimator, host)
    learner.observe(evidence)
    origins = [place.origin for place in pages.hosts]
    own = stored.weighing.importances(pages.page_id, pages.url, pages.host, origins)
    learned = Sources(
        pages.url,
        terms(pages.url, pages.host, own, rules).importance,
        learner.change_rate(),
        np.zeros(len(pages), np.bool_),
        host,
        lanes,
    )
    known = np.bincount(evidence.source, minlength=len(pages)) > 0
    return learned, Learning(
        estimator, len(observed), len(evidence), int((~known).sum()), pages.gone
    )


def lane_delays_s(pages: KeptPages) -> list[float | None]:
    """The delay of each lane, in the order of :func:`sources_of`; None where it is not known."""
    return list({host.lane or host.origin: host.delay_s for host in pages.hosts}.values())
