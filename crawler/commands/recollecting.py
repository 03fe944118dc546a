"""What the daemon of the last run went by, read from the store: settings, pages, terms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiosqlite
import numpy as np

from freshet.config.settings import Daemon, Ephemeral
from freshet.crawler.commands.budget import parsed
from freshet.crawler.commands.refreshing import refresher_of
from freshet.crawler.commands.sources.areas import Areas
from freshet.crawler.commands.sources.exchange import exchange_of
from freshet.crawler.commands.sources.page_rules import terms
from freshet.crawler.commands.sources.spacing import Spacing
from freshet.crawler.commands.sources.weighing import Weighing, weigh
from freshet.scheduler.agenda.ephemeral import Exchange
from freshet.scheduler.agenda.history import stored_news
from freshet.scheduler.agenda.pages import Terms
from freshet.scheduler.agenda.rankers import Guarded
from freshet.scheduler.arrays import Ints, rows_among
from freshet.scheduler.sources import Rows
from freshet.storage.entries import Host
from freshet.storage.queries import columns
from freshet.storage.queries.columns import WatchedPages
from freshet.storage.tables import hosts, runs

_DAY_S: Final = 86_400.0
#: What runs went by of before there was a choice.
_BEFORE: Final = {
    "importance": "list", "new_page_worth": 1.0, "least_discovery": 0.0, "most_discovery": 1.0
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a daemon of this order has learnt; ``sites`` are the codes of hosts by their origins."""

    order: Daemon
    refresher: Guarded
    sites: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LastOrder:
    """What the daemon of the last run went by.

    Attributes:
        daemon, exchange: its settings, and on which terms ephemeral sources compete.
        spacing: how it spares hosts.
        recheck_days: after which it asks old URLs again.
        takes_in: whether it takes in pages that nobody named.
    """

    daemon: Daemon
    exchange: Exchange
    spacing: Spacing
    recheck_days: float
    takes_in: bool


def order_of(text: str | None) -> LastOrder | None:
    """The order in the settings of a run, if it was a daemon's."""
    said = json.loads(text) if text else {}
    if not said.get("daemon", {}).get("budget"):
        return None
    polite, daemon = said["politeness"], Daemon.model_validate(_BEFORE | said["daemon"])
    # Before there was a choice no page was taken for a source.
    ephemeral = said.get("ephemeral")
    return LastOrder(
        daemon,
        exchange_of(Ephemeral.model_validate(ephemeral), daemon)
        if ephemeral
        else Exchange(recognise=False),
        Spacing(polite["delay_s"], polite["connections_per_host"]),
        said["crawl"]["permanent_recheck_days"],
        said["crawl"].get("scope") != "list",
    )


def hosts_of(pages: WatchedPages, known: Mapping[int, Host]) -> tuple[Ints, Rows, list[str]]:
    """The ids of the pages' hosts, the place among these of each page's, and their origins."""
    host_ids, codes = np.unique(pages.host_id, return_inverse=True)
    return host_ids, codes.astype(np.intp), [known[each].origin for each in host_ids.tolist()]


def terms_of(
    pages: WatchedPages, codes: Rows, origins: Sequence[str], weighing: Weighing, order: Daemon
) -> Terms:
    """On which terms the pages are kept."""
    weights = weighing.importances(pages.page_id, pages.url, codes, origins)
    half_lives = weighing.half_lives(pages.page_id, pages.url)
    return terms(pages.url, Areas().codes(pages.url), weights, order.rules, half_lives)


async def relearnt(connection: aiosqlite.Connection) -> Learnt | None:
    """What the daemon of the last run has learnt; None if that was no daemon, or knows no page."""
    order = order_of(await runs.settings_of_latest(connection))
    pages = await columns.pages(connection)
    if order is None or not len(pages):
        return None
    known = await hosts.load(connection, np.unique(pages.host_id).tolist())
    _, codes, origins = hosts_of(pages, {host.host_id: host for host in known})
    weighing = await weigh(connection, order.daemon.importance)
    on_terms = terms_of(pages, codes, origins, weighing, order.daemon)
    refresher = refresher_of(order.daemon.policy)
    refresher.replan(parsed(order.daemon.budget), 0.0)
    refresher.add(codes, on_terms.area, on_terms.importance, pages.found_at / _DAY_S)
    (await stored_news(connection, partial(rows_among, pages.page_id))).teach(refresher)
    return Learnt(order.daemon, refresher, {origin: code for code, origin in enumerate(origins)})
