"""Marks: the cost to searchers of a missed change of each page, as expected.

Marks (:class:`.search_quality.Marks`) multiply the importance of a host's pages
under the policy ``search_quality``, where the host's own past shows that this would have lost less
(:mod:`.search_orders`), and nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from freshet.crawler.extensions.readers import quality_tables as measures
from freshet.crawler.extensions.readers.quality_tables import (
    HostChoice,
    HostPast,
    MeasuredChanges,
    MeasuredPages,
)
from freshet.crawler.extensions.readers.search_quality import Marks, as_importance
from freshet.crawler.extensions.search import tables as search
from freshet.crawler.run.terminal import counted, moment, times
from freshet.storage.entries import KINDS

if TYPE_CHECKING:
    from aiosqlite import Connection as Reader

    from freshet.scheduler.arrays import Floats, Ints
    from freshet.storage.database import Database

_DAY_S: Final = 86_400.0
#: A host is judged anew after a week, by the visits of a year.
_JUDGED_S: Final = 7 * _DAY_S
_PAST_S: Final = 365 * _DAY_S


@dataclass(frozen=True, slots=True)
class SearchMarks:
    """The marks of the indexed pages of a store.

    Attributes:
        mark: m̂ by page, in usefulness of a query and change.
        relative: the same by page, as shares of the mean of its host.
        factor: these, where marks decide.
        measured: quality changes measured, by page: their number and sum.
        is_measured: whether any indexed page is of use to searchers.
        choices: what was judged of hosts, by host.
    """

    mark: Mapping[int, float] = field(default_factory=dict)
    relative: Mapping[int, float] = field(default_factory=dict)
    factor: Mapping[int, float] = field(default_factory=dict)
    measured: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    is_measured: bool = False
    choices: Mapping[int, HostChoice] = field(default_factory=dict)

    def said(self, page_id: int, host_id: int, now: float, *, decides: bool) -> str | None:
        """Tell in a sentence what is known of a page; ``decides``: the policy uses marks.

        None where search quality is not measured, or the page is not indexed.
        """
        if not self.is_measured or page_id not in self.mark:
            return None
        number, total = self.measured.get(page_id, (0, 0.0))
        told = "No visit that found it changed has been measured for searchers yet"
        if number:
            told = f"{counted(number, 'change')} found added {total:.3g} to the use of a search"
        mark, share = self.mark[page_id], self.relative[page_id]
        told += f"; one missed costs {mark:.3g}, {share:.2g} times the mean of its host"
        choice = self.choices.get(host_id)
        if choice is None or choice.plain is None or choice.marked is None:
            return f"{told}; the past of its host shows too little to go by that."
        by = "would go" if not decides else "goes" if choice.is_gain else "does not go"
        return (
            f"{told}; its host's last year, judged {moment(choice.at, now)}, would have lost "
            f"{times(choice.marked / choice.plain)} as much by that ({choice.changes} changes), so "
            f"its importance {by} by it" + ("." if decides else " under search_quality.")
        )


async def read_marks(db: Reader) -> SearchMarks:
    """Return the marks of a store; none without an index."""
    if await search.counts(db) is None or not await measures.are_there(db):
        return SearchMarks()
    pages, changes = await measures.measured(db)
    choices = await measures.choices(db)
    return await asyncio.to_thread(_marked, pages, changes, choices)


def _marked(
    pages: MeasuredPages, changes: MeasuredChanges, choices: Mapping[int, HostChoice]
) -> SearchMarks:
    """Return the marks of pages, learnt for each host by itself."""
    row = np.searchsorted(pages.page_id, changes.page_id)
    rate = np.nan_to_num(pages.rate)
    mark, relative = np.zeros(len(pages)), np.ones(len(pages))
    decides = np.isin(pages.host_id, [host for host, it in choices.items() if it.is_gain])
    hosts, host = np.unique(pages.host_id, return_inverse=True)
    by_host = np.argsort(host, kind="stable")
    of_host = np.argsort(host[row], kind="stable")
    ends = np.searchsorted(host[by_host], np.arange(len(hosts)), "right")
    changed = np.searchsorted(host[row[of_host]], np.arange(len(hosts)), "right")
    for own, told in zip(
        np.split(by_host, ends[:-1]), np.split(of_host, changed[:-1]), strict=True
    ):
        marks = Marks()
        marks.add(len(own))
        marks.learn(
            np.searchsorted(own, row[told]),
            hazard=rate[row[told]] * changes.gap[told],
            change=changes.change[told],
            changed=np.ones(len(told), np.bool_),
        )
        mark[own] = marks.values(
            usefulness=pages.usefulness[own], age=np.nan_to_num(pages.days[own]), rate=rate[own]
        )
        relative[own] = as_importance(mark[own])
    count = np.bincount(row, minlength=len(pages))
    total = np.bincount(row, changes.change, len(pages))
    return SearchMarks(
        mark=_by_page(pages.page_id, mark),
        relative=_by_page(pages.page_id, relative),
        factor=_by_page(pages.page_id[decides], relative[decides]),
        measured={
            int(pages.page_id[k]): (int(count[k]), float(total[k])) for k in np.flatnonzero(count)
        },
        is_measured=bool(pages.usefulness.any()),
        choices=choices,
    )


def _by_page(page_id: Ints, values: Floats) -> dict[int, float]:
    return dict(zip(page_id.tolist(), values.tolist(), strict=True))


async def judge_next(database: Database, now: float) -> HostChoice | None:
    """Judge the host that was judged longest ago, if it is time, and write what was found."""
    reader = database.reader
    if await search.counts(reader) is None or not await measures.are_there(reader):
        return None
    host_id = await measures.next_to_judge(reader, now - _JUDGED_S)
    if host_id is None:
        return None
    past = await measures.past(reader, host_id, now - _PAST_S)
    pages, _ = await measures.measured(reader)
    usefulness = _by_page(pages.page_id, pages.usefulness)
    choice = await asyncio.to_thread(_judged, host_id, past, usefulness, now)
    await database.write(partial(measures.note_choice, choice=choice))
    return choice


def _judged(
    host_id: int, past: HostPast, usefulness: Mapping[int, float], now: float
) -> HostChoice:
    # Slow to import, and few daemons need it.
    from freshet.crawler.extensions.readers.search_orders import paired_loss  # noqa: PLC0415
    from freshet.scheduler.evaluate.captures import FAILED, GONE, Captures  # noqa: PLC0415

    ids, row = np.unique(past.page_id, return_inverse=True)
    found = np.full(len(ids), np.inf)
    np.minimum.at(found, row, past.at)
    # Captures have their pages in the order in which they were found.
    order = np.argsort(found, kind="stable")
    place = np.empty(len(ids), np.intp)
    place[order] = np.arange(len(ids))
    row = place[row]
    by_page = np.lexsort((past.at, row))
    row, at = row[by_page], past.at[by_page] / _DAY_S
    kind, change = past.kind[by_page], past.change[by_page]
    content = np.cumsum(np.isin(kind, [KINDS.index("new"), KINDS.index("changed")]))
    content = np.where(kind == KINDS.index("gone"), GONE, content)
    content = np.where(kind == KINDS.index("failed"), FAILED, content)
    kept = np.append((row[:-1] != row[1:]) | (at[:-1] != at[1:]), np.ones(min(len(row), 1), bool))
    captures = Captures.of(row[kept], at[kept], content[kept], importance=np.ones(len(ids)))
    used = np.array([usefulness.get(page, 0.0) for page in ids[order].tolist()])
    judged = paired_loss(captures, change[kept], used)
    if judged is None:
        told = int((past.change > 0).sum())
        return HostChoice(host_id, now, None, None, None, changes=told, is_gain=False)
    return HostChoice(
        host_id, now, judged.plain, judged.marked, judged.error, changes=judged.changes,
        is_gain=judged.is_gain,
    )  # fmt: skip
