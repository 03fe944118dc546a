"""What the looks of former runs revealed, from the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import aiosqlite
import numpy as np

from freshet.scheduler.arguments import Floats
from freshet.scheduler.discovery.sightings import looked_before
from freshet.scheduler.recrawl.churning import Appearing
from freshet.scheduler.recrawl.discovering import Discovering
from freshet.scheduler.recrawl.looks import Looks
from freshet.scheduler.recrawl.unlearnt import RowsOf
from freshet.scheduler.recrawl.watchlist import Watchlist
from freshet.scheduler.sources import Rows
from freshet.storage.queries import columns, link_columns
from freshet.storage.tables import links

_DAY_S: Final = 86_400.0
#: Pages that are asked for at once.
_AT_ONCE: Final = 10_000


async def recall(
    reader: aiosqlite.Connection, discovering: Discovering, pages: Watchlist, looks: Looks
) -> None:
    """Learn which of these pages revealed new ones, by all looks at them."""
    newest = np.array(discovering.newest, np.intp)
    moved = await columns.moves(reader)
    found_at: Any = pages["found_at"]
    discovering.churning.learn(await appearing(reader, pages.rows, found_at))
    order = np.argsort(looks.at, kind="stable")
    shown = order[~looks.gone[order]]
    for first in range(0, len(newest), _AT_ONCE):
        ids = pages["page_id"][newest[first : first + _AT_ONCE]].tolist()
        found = await link_columns.leading_to(reader, ids)
        by, is_watched = pages.rows(columns.where_now(found.source, moved))
        row, _ = pages.rows(found.target[is_watched])
        at = found.seen_at[is_watched] / _DAY_S
        before = looked_before(looks.row[order], looks.at[order], by, at)
        # A page that was never more than gone was not looked at before.
        ever = looked_before(looks.row[shown], looks.at[shown], by, at)
        before[np.isneginf(ever)] = -np.inf
        _tell(discovering, pages, Sighted(by, row, at, before))


async def appearing(reader: aiosqlite.Connection, rows_of: RowsOf, found_at: Floats) -> Appearing:
    """What the store has of churn, of pages that are found on the days ``found_at`` (n,).

    Those that have moved are the pages where they stand now.
    """
    stored, moved = await links.load(reader), await columns.moves(reader)
    row, known = rows_of(columns.where_now(stored.page_id, moved))
    return Appearing(
        row, stored.at[known] / _DAY_S, found_at[row], stored.appeared[known],
        stored.dropped[known], stored.stayed[known],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sighted:
    """m looks at the pages of rows ``by`` that first showed a link to those of ``row``.

    Days; ``before`` is that of the look before, -inf where there was none.
    """

    by: Rows
    row: Rows
    at: Floats
    before: Floats


def _tell(discovering: Discovering, pages: Watchlist, it: Sighted) -> None:
    found_at = pages["found_at"][it.row].astype(np.float64, copy=False)
    is_first = np.isneginf(it.before)
    tells = np.where(is_first, found_at == it.at, found_at > it.before) & (it.by != it.row)
    for k in np.flatnonzero(tells)[np.argsort(it.at[tells], kind="stable")].tolist():
        before = None if is_first[k] else float(it.before[k])
        discovering.shown(
            int(it.by[k]), before, float(it.at[k]), int(it.row[k]), float(found_at[k])
        )
