"""Sources of a plan from a store: its pages, with change rates learned from their histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from freshet.config.settings import Daemon, Ephemeral, PageRule
from freshet.crawler.commands.sources.appearing import EphemeralPages, ephemeral_pages
from freshet.crawler.commands.sources.columns import Sources, numbered
from freshet.crawler.commands.sources.page_rules import terms
from freshet.crawler.commands.sources.weighing import Weighing, weigh
from freshet.scheduler import estimate
from freshet.scheduler.estimate.evidence import evidence_of
from freshet.storage.queries import columns, page
from freshet.storage.queries.columns import KeptPages, PastObservations


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
