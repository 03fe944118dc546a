"""What the daemon of the last run went by, read from the store: settings, pages, terms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiosqlite
import numpy as np

from config.settings import Daemon
from crawler.commands.budget import parsed
from crawler.commands.refreshing import refresher_of
from crawler.commands.sources.areas import Areas
from crawler.commands.sources.page_rules import terms
from crawler.commands.sources.spacing import Spacing
from crawler.commands.sources.weighing import Weighing, weigh
from scheduler.arguments import Bools, Ints
from scheduler.recrawl.guarded import Guarded
from scheduler.recrawl.terms import Terms
from scheduler.recrawl.unlearnt import stored_news
from scheduler.sources import Rows
from storage import hosts, runs, watched
from storage.records import Host
from storage.watched import WatchedPages

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


def order_of(text: str | None) -> tuple[Daemon, Spacing, float, bool] | None:
    """The daemon's settings in the last run, if it was one's, how it spares hosts and old URLs.

    And whether it takes in pages that nobody named.
    """
    said = json.loads(text) if text else {}
    if not said.get("daemon", {}).get("budget"):
        return None
    polite = said["politeness"]
    spacing = Spacing(polite["delay_s"], polite["connections_per_host"])
    return (
        Daemon.model_validate(_BEFORE | said["daemon"]),
        spacing,
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
    pages = await watched.pages(connection)
    if order is None or not len(pages):
        return None
    known = await hosts.load(connection, np.unique(pages.host_id).tolist())
    _, codes, origins = hosts_of(pages, {host.host_id: host for host in known})
    weighing = await weigh(connection, order[0].importance)
    on_terms = terms_of(pages, codes, origins, weighing, order[0])
    refresher = refresher_of(order[0].policy)
    refresher.replan(parsed(order[0].budget), 0.0)
    refresher.add(codes, on_terms.area, on_terms.importance, pages.found_at / _DAY_S)
    (await stored_news(connection, partial(rows_of, pages))).teach(refresher)
    return Learnt(order[0], refresher, {origin: code for code, origin in enumerate(origins)})


def rows_of(pages: WatchedPages, page_id: Ints) -> tuple[Rows, Bools]:
    """The rows of those of these pages that are watched, and which they are."""
    place = np.minimum(np.searchsorted(pages.page_id, page_id), len(pages) - 1)
    known = pages.page_id[place] == page_id
    return place[known].astype(np.intp), known
