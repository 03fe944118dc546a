"""Bringing chosen pages from the store into the window."""

from __future__ import annotations

from dataclasses import replace

import aiosqlite
import numpy as np

from freshet.scheduler.recrawl.appraisal import Appraisal
from freshet.scheduler.recrawl.watchlist import Watchlist
from freshet.scheduler.recrawl.window import Window
from freshet.scheduler.sources import Rows
from freshet.storage.queries import columns
from freshet.storage.words import Reason


async def bring(
    reader: aiosqlite.Connection,
    pages: Watchlist,
    window: Window,
    rows: Rows,
    found: Appraisal,
    now: float,
) -> set[int]:
    """Put the pages of these rows into the window, as they were valued; their hosts.

    What may not be fetched any more is watched no longer.
    """
    page_ids = pages["page_id"][rows].tolist()
    pages["taken"][rows] = True
    by_page = {due.page_id: due for due in await columns.due_urls(reader, page_ids, now)}
    hosts = set()
    for row, page_id in zip(rows.tolist(), page_ids, strict=True):
        due = by_page.get(page_id)
        if due is None:
            pages.drop(np.array([row]))
            continue
        reason = Reason.DISCOVERY if found.discovers[row] else Reason.REFRESH
        due = replace(due, attempt=int(pages["failures"][row]), reason=reason)
        window.add(float(found.worth[row]), due)
        hosts.add(due.host_id)
    return hosts
