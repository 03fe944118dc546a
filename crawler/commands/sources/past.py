"""What a store has seen of its pages, as captures that policies are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from freshet.config.settings import Daemon
from freshet.crawler.commands.sources.areas import Areas
from freshet.crawler.commands.sources.page_rules import terms
from freshet.crawler.commands.sources.weighing import weigh
from freshet.scheduler.evaluate.captures import Captures, contents_of
from freshet.storage.queries import columns, page
from freshet.storage.tables import hosts

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Past:
    """The captures of a store; days are Unix days.

    ``url`` are those of the pages, in the order of the rows; ``origin`` those of the hosts, in the
    order of their codes.
    """

    captures: Captures
    url: Sequence[str]
    origin: Sequence[str]


async def read_past(db: Path, daemon: Daemon) -> Past:
    """All that a store saw; pages weigh what they would weigh to a ``daemon`` of these settings.

    Raises:
        StoreError: there is no such file, or it is not a store of this schema.
    """
    async with page.snapshot(db) as connection:
        pages, visits = await columns.read(connection)
        ids, host = np.unique(pages.host_id, return_inverse=True)
        known = {each.host_id: each.origin for each in await hosts.load(connection, ids.tolist())}
        weighing = await weigh(connection, daemon.importance)
    origins = [known[each] for each in ids.tolist()]
    areas = Areas().codes(pages.url)
    own = weighing.importances(pages.page_id, pages.url, host, origins)
    weights = terms(pages.url, areas, own, daemon.rules).importance
    order = np.argsort(pages.found_at, kind="stable")
    row_of = np.empty(len(order), np.intp)
    row_of[order] = np.arange(len(order))
    row = row_of[visits.page]
    # Within a page visits stay in the order in which they were made.
    by_page = np.argsort(row, kind="stable")
    content = contents_of(row[by_page], visits.kind[by_page], visits.digest[by_page])
    captures = Captures.of(
        row[by_page],
        visits.at[by_page] / _DAY_S,
        content,
        found=pages.found_at[order] / _DAY_S,
        importance=weights[order],
        host=host[order],
        area=areas[order],
    )
    return Past(captures, [pages.url[k] for k in order.tolist()], origins)
