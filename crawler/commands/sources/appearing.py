"""The ephemeral sources of a store: what appears there, how fast, and what others show, too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.config.settings import Daemon, Ephemeral
from freshet.crawler.commands.sources.exchange import exchange_of
from freshet.crawler.commands.sources.page_rules import terms
from freshet.crawler.commands.sources.weighing import Weighing
from freshet.scheduler.agenda.ephemeral import Looked, decays, sources
from freshet.scheduler.agenda.new_pages import Churning, appearing
from freshet.scheduler.arrays import Bools, Floats, rows_among
from freshet.scheduler.sources import Rows
from freshet.storage.queries.columns import KeptPages
from freshet.storage.tables import links as links_tables

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
    looked = Looked(pages.found_at / _DAY_S, since, np.ones(n, np.bool_))
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
