"""New pages that visits of a daemon reveal. Days are Unix days.

A visit to a page reveals another page if it shows a link to it that the previous visit did not
show. The pages that a first visit reveals count as revealed by the pages that led to it. Only the
newest pages of each site are remembered by their URLs
(:mod:`freshet.scheduler.discovery.hub_yield`).
"""

from collections.abc import Iterable, Sequence
from typing import Final

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arrays import Arrays, Bools, Column, Floats, Ints
from freshet.scheduler.discovery.hub_covers import AREAS, Discovery, HubCovers
from freshet.scheduler.discovery.hub_yield import ExpectedReveals, PageSnapshot, Precedents
from freshet.scheduler.discovery.reveal_graph import visited_before
from freshet.scheduler.ephemeral.sources import HALF_LIFE_DAYS, PRIOR_DAYS, PRIOR_ITEMS, Arrivals
from freshet.scheduler.estimate.evidence import VisitResults
from freshet.scheduler.queue.history import RowsOf
from freshet.scheduler.queue.pages import PageTable, url_key
from freshet.scheduler.sources import Rows
from freshet.storage.queries import columns as columns_queries
from freshet.storage.queries import link_columns
from freshet.storage.records import Churn

# -- churn: pages with a high turnover of links, and their rates --
# A *source* is a page that repeatedly shows links to new pages while old ones drop off: a front
# page, a list of the newest, a feed.
# :mod:`scheduler.ephemeral.sources` learns the rate of its items; if no link of a visit remains at
# the next one, more items may have appeared in between. A source counts as *churning* if
#
#     occasions  visits at which links appeared, and former links stayed                at least 4
#     items      links that appeared at all visits                                      at least 8
#     dropped    links that dropped off, per link that appeared                         at least 1/2
#     largest    largest share of the items that appeared at one visit                  at most 1/2
#     rate       items a day                                                            at least 1
#
# A page that is rewritten shows many links at once; an archive keeps its links; a list with other
# links at each visit keeps none; and links drawn from known pages are not new. All counts decay
# with the half-life of the arrivals.
#
# Reference: ours. The thresholds are guesses; a wrong one costs little, because a churning page is
# visited at least as often as any other.

_LEAST_OCCASIONS: Final = 4.0
_LEAST_ITEMS: Final = 8.0
_LEAST_DROPPED: Final = 0.5
_LARGEST: Final = 0.5
_LEAST_RATE: Final = 1.0
#: Tolerance for counts that have decayed a little since.
_ROUNDING: Final = 0.9
#: Minimum time between two visits.
_MOMENT_DAYS: Final = 1e-6

_EVIDENCE: Final = ("occasions", "appeared", "dropped", "largest")
_SOURCE: Final = np.dtype(
    [("row", np.intp), *((name, np.float64) for name in ("at", "items", "days", *_EVIDENCE))]
)


class Churning:
    """The churn of links; rows are rows of the page table.

    *Contract.* The state depends on the visits and their order, not on their division into calls.
    """

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        self._sources = Column[np.void](_SOURCE)

    def saw(self, row: int, at: float, began: float, links: tuple[int, int, int]) -> None:
        """Learn from a visit on a day that saw new links on a page visited since ``began``.

        ``links`` counts the appeared, dropped and remaining links; see
        :mod:`freshet.storage.tables.links`.
        """
        appeared, dropped, stayed = links
        place = self._place.get(row)
        is_first = place is None
        if place is None:
            place = self._place[row] = len(self._sources)
            fresh = np.zeros(1, _SOURCE)
            fresh["row"], fresh["at"] = row, began
            self._sources.extend(fresh)
        it = self._sources.rows[place : place + 1]
        elapsed = max(at - float(it["at"][0]), _MOMENT_DAYS)
        known = Arrivals(float(it["items"][0]), float(it["days"][0])).after(
            appeared, elapsed, at_least=stayed == 0 and not is_first
        )
        kept = 0.5 ** (elapsed / HALF_LIFE_DAYS)
        for name in _EVIDENCE:
            it[name] *= kept
        it["at"], it["items"], it["days"] = at, known.items, known.days
        it["occasions"] += is_first or stayed > 0
        it["appeared"] += appeared
        it["dropped"] += dropped
        it["largest"] = np.maximum(it["largest"], appeared)

    def inherit(self, old: int, new: int) -> None:
        """Copy the state of one row to another, unless that has a state."""
        place = self._place.get(old)
        if place is not None and new not in self._place:
            self._place[new] = self._place.pop(old)
            self._sources.rows["row"][place] = new

    def written(self) -> NDArray[np.void]:
        """Return the whole state."""
        return self._sources.rows

    def read(self, written: NDArray[np.void]) -> None:
        """Restore a written state."""
        self._sources.extend(written)
        rows = self._sources.rows["row"].tolist()
        self._place = {row: place for place, row in enumerate(rows)}

    def rates(self, since: Floats) -> tuple[Rows, Floats, Bools]:
        """Return (k,) each: the rows of the pages with any new links, Λ, and whether they churn.

        The last visits to the pages were on the days ``since`` (n,).
        """
        it = self._sources.rows
        quiet = np.maximum(since[it["row"]] - it["at"], 0.0)
        kept = 0.5 ** (quiet / HALF_LIFE_DAYS)
        rate = _rate(it["items"] * kept, it["days"] * kept, quiet)
        appeared = it["appeared"]
        churns: Bools = it["occasions"] * kept >= _LEAST_OCCASIONS * _ROUNDING
        churns &= appeared * kept >= _LEAST_ITEMS * _ROUNDING
        churns &= it["dropped"] >= _LEAST_DROPPED * appeared
        churns &= it["largest"] <= _LARGEST * appeared
        churns &= rate >= _LEAST_RATE
        return it["row"].copy(), rate, churns


def rate_of_silent(watched: Floats) -> Floats:
    """Return (n,), Λ of pages without new links in this number of days."""
    return _rate(np.zeros(len(watched)), np.zeros(len(watched)), np.maximum(watched, 0.0))


def _rate(items: Floats, days: Floats, quiet: Floats) -> Floats:
    # The same as ``Arrivals.after`` for a visit without new links after that many days.
    more = -HALF_LIFE_DAYS / np.log(2) * np.expm1(-quiet * (np.log(2) / HALF_LIFE_DAYS))
    rate: Floats = (PRIOR_ITEMS + items) / (PRIOR_DAYS + days + more)
    return rate


_DAY_S: Final = 86_400.0


class HubPages:
    """The watched pages that reveal new ones, and those with churning links.

    Attributes:
        churning: the churn of the pages' links.
    """

    def __init__(self) -> None:
        self._precedents = Precedents()
        self.churning = Churning()
        self._covers = HubCovers()
        # Keys are hashes of URLs: half of the memory, and two of a million pages share one in one
        # of ten million runs.
        self._row_of: dict[int, int] = {}
        self._keys = Column[np.int64](np.int64)

    def watch(self, rows: Rows, site: Rows, urls: Sequence[str], found_at: Floats) -> None:
        """Append pages, in the order of their rows."""
        for row, code, url, at in zip(
            rows.tolist(), site.tolist(), urls, found_at.tolist(), strict=True
        ):
            key = url_key(url)
            self._keys.append(max(0, row + 1 - len(self._keys)))
            self._row_of[key], self._keys.rows[row] = row, key
            displaced = self._precedents.admit(row, code, at)
            if displaced is not None:
                self._row_of.pop(int(self._keys.rows[displaced]), None)

    def visited(
        self,
        by: int,
        before: float | None,
        at: float,
        urls: Iterable[str],
        found_at: NDArray[np.generic],
    ) -> None:
        """Learn from a visit to the page of row ``by`` that saw links to these URLs.

        ``before`` is the day of its previous visit, None for the first one; ``found_at`` (n,) are
        the days on which the pages were found.
        """
        for url in urls:
            row = self._row_of.get(url_key(url))
            if row is not None and row != by:
                self.shown(by, before, at, row, float(found_at[row]))

    def shown(self, by: int, before: float | None, at: float, row: int, found_at: float) -> None:
        """Learn from a visit that saw a link to a row's page; ``before`` is the previous visit."""
        if before is None:
            if found_at == at:
                for each in self._precedents.revealers(by):
                    self._precedents.reveal(row, each)
        elif found_at > before:
            self._precedents.reveal(row, by)

    def churned(self, pages: PageTable, seen: Sequence[tuple[int, float, Churn]]) -> list[int]:
        """Learn churn of pages (ids) on these days; return the rows."""
        rows = []
        for page_id, at, it in seen:
            row = pages.row(page_id)
            if row is not None:
                began = float(pages["found_at"][row])
                self.churning.saw(row, at, began, (it.appeared, it.dropped, it.stayed))
                rows.append(row)
        return rows

    @property
    def newest(self) -> Rows:
        """Return the rows of the pages remembered as new, in the order of discovery."""
        return self._precedents.newest

    def written(self) -> Arrays:
        """Return the whole state."""
        keys = np.stack([self.newest, self._keys.rows[self.newest]], axis=1)
        return {"keys": keys, "churning": self.churning.written(), **self._precedents.written()}

    def read(self, written: Arrays) -> None:
        """Restore a written state."""
        row, key = written["keys"].T
        self._keys.append(int(row.max(initial=-1)) + 1)
        self._keys.rows[row] = key
        self._row_of = dict(zip(key.tolist(), row.tolist(), strict=True))
        self.churning.read(written["churning"])
        self._precedents.read(written)

    def inherit(self, old: int, new: int) -> None:
        """Copy the state of one row to another."""
        self._precedents.move(old, new)
        self.churning.inherit(old, new)

    def revealing(
        self, pages: PageTable, now: float, discovery: Discovery = AREAS
    ) -> ExpectedReveals:
        """Return the expected new pages that a visit to each page reveals on this day.

        Their value is 0 for pages that ``discovery`` does not choose.
        """
        names = ("host", "importance", "found_at", "since", "captured")
        found = self._precedents.value(PageSnapshot(*(pages[name] for name in names)), now)
        if discovery != AREAS:
            there = pages["captured"] & (pages["gone"] == 0)
            site, at, item, by = self._precedents.revealed
            known = (site[there[by]], at[there[by]], item[there[by]], by[there[by]])
            found.value[~self._covers.chosen(discovery, known, pages["host"], now)] = 0.0
        return found


# -- new pages that former runs revealed, from the store ---------------------

#: Pages that are queried at once.
_AT_ONCE: Final = 10_000


async def recall(
    reader: aiosqlite.Connection, hubs: HubPages, pages: PageTable, visits: VisitResults
) -> None:
    """Learn from all visits which of these pages revealed new ones."""
    newest = hubs.newest
    moved = await columns_queries.moves(reader)
    await recall_churn(reader, hubs.churning, pages.rows, pages["found_at"])
    for first in range(0, len(newest), _AT_ONCE):
        ids = pages["page_id"][newest[first : first + _AT_ONCE]].tolist()
        source, target, seen_at = await link_columns.leading_to(reader, ids)
        source = columns_queries.where_now(source, moved)
        _show(hubs, pages, visits, source=source, target=target, at=seen_at / _DAY_S)


def _show(
    hubs: HubPages,
    pages: PageTable,
    visits: VisitResults,
    *,
    source: Ints,
    target: Ints,
    at: Floats,
) -> None:
    """Learn links (k,) that some of these visits saw for the first time on the days ``at``."""
    order = np.argsort(visits.at, kind="stable")
    shown = order[~visits.gone[order]]
    by, is_watched = pages.rows(source)
    row, is_known = pages.rows(target[is_watched])
    by, at = by[is_known], at[is_watched][is_known]
    before = visited_before(visits.row[order], visits.at[order], by, at)
    # A page that was gone at all visits was not visited before.
    ever = visited_before(visits.row[shown], visits.at[shown], by, at)
    before[np.isneginf(ever)] = -np.inf
    found_at = pages["found_at"][row]
    is_first = np.isneginf(before)
    reveals = np.where(is_first, found_at == at, found_at > before) & (by != row)
    for k in np.flatnonzero(reveals)[np.argsort(at[reveals], kind="stable")].tolist():
        last = None if is_first[k] else float(before[k])
        hubs.shown(int(by[k]), last, float(at[k]), int(row[k]), float(found_at[k]))


async def recall_since(
    reader: aiosqlite.Connection,
    hubs: HubPages,
    pages: PageTable,
    visits: VisitResults,
    before: Arrays,
) -> Rows:
    """Learn from these visits alone; ``before`` are columns (n,) of the pages before the visits.

    Return the rows of pages with new links to them.
    """
    rows = np.unique(visits.row)
    ids = pages["page_id"][rows]
    asked = np.full(len(rows), -np.inf)
    was = rows < len(before["asked"])
    asked[was] = before["asked"][rows[was]]
    await recall_churn(reader, hubs.churning, pages.rows, pages["found_at"], since=(ids, asked))
    source, target, at = await link_columns.seen_by(reader, ids.tolist())
    by, known = pages.rows(source)
    target, at = target[known], at[known] / _DAY_S
    is_new = at > asked[np.searchsorted(rows, by)]
    by, target, at = by[is_new], target[is_new], at[is_new]
    had = rows[was][before["captured"][rows[was]] | np.isfinite(before["absent"][rows[was]])]
    first = VisitResults(
        row=had, at=before["since"][had], compared=np.zeros(len(had), np.bool_),
        changed=np.zeros(len(had), np.bool_), gone=~before["captured"][had],
        moved=np.zeros(len(had), np.bool_),
    )  # fmt: skip
    both = VisitResults(
        **{
            name: np.concatenate([getattr(first, name), getattr(visits, name)])
            for name in ("row", "at", "compared", "changed", "gone", "moved")
        }
    )
    _show(hubs, pages, both, source=pages["page_id"][by], target=target, at=at)
    return pages.rows(np.unique(target))[0]


async def recall_churn(
    reader: aiosqlite.Connection,
    churning: Churning,
    rows_of: RowsOf,
    found_at: Floats,
    *,
    since: tuple[Ints, Floats] | None = None,
) -> None:
    """Learn the stored churn of pages that were found on the days ``found_at`` (n,).

    Moved pages are resolved to their present pages. ``since`` has pages (ids, ascending) and the
    days after which churn counts; None: all.
    """
    ids = None if since is None else since[0].tolist()
    stored, moved = await link_columns.churn(reader, ids), await columns_queries.moves(reader)
    rows, known = rows_of(columns_queries.where_now(stored.page_id, moved))
    days = (stored.at[known] / _DAY_S).tolist()
    links = np.stack([stored.appeared, stored.dropped, stored.stayed], axis=1)[known].tolist()
    after = np.full(len(rows), -np.inf)
    if since is not None:
        after = since[1][np.searchsorted(since[0], stored.page_id[known])]
    for row, at, began, counts in zip(rows.tolist(), days, after.tolist(), links, strict=True):
        if at > began:
            churning.saw(row, at, float(found_at[row]), tuple(counts))
