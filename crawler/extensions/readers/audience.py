"""Lists of pages shown to people: ranking by past openings, and the record of openings.

The score of a page is its relevance times the index of its appeal (:mod:`.appeal`).
Before the first opening, a list keeps its order except for promoted pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from sqlite3 import Connection
from typing import Final

import numpy as np
from aiosqlite import Connection as Reader

from freshet.config.settings import Settings
from freshet.crawler.extensions.readers import tables
from freshet.crawler.extensions.readers.appeal import Appeal, Attention
from freshet.crawler.extensions.readers.promotion import critical_degree, first_places
from freshet.crawler.extensions.readers.settings import PresentationSettings
from freshet.crawler.extensions.readers.tables import Openings
from freshet.crawler.read.lists import Impression, MadeFor, RankedPage, note
from freshet.crawler.run.importance import section
from freshet.crawler.urls import site_key
from freshet.scheduler.arrays import Floats, Ints

#: Promotion begins at the second place: the first keeps the page that most people seek.
_PROMOTED_FROM: Final = 2
#: Of "auto": so much more than just empties the pool, and at most.
_ABOVE_CRITICAL: Final = 1.1
_MOST_PROMOTED: Final = 0.2
_HOUR_S: Final = 3_600
_DAY_S: Final = 86_400
#: Places that count for the views that a list gives.
_PLACES: Final = np.arange(1, 11)


class _Sections:
    """Codes of the sites and sections of pages that were shown."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._sites, self._sections = dict[str, int](), dict[str, int]()
        for url in urls:
            self._sites.setdefault(site_key(url), len(self._sites))
            self._sections.setdefault(section(url), len(self._sections))

    def of(self, urls: Sequence[str]) -> tuple[Ints, Ints]:
        """Return (n,) each: the codes of the pages' sections and sites; −1 if never shown."""
        sections = [self._sections.get(section(url), -1) for url in urls]
        sites = [self._sites.get(site_key(url), -1) for url in urls]
        return np.array(sections, np.int64), np.array(sites, np.int64)


@dataclass(frozen=True, slots=True)
class OpenedLists:
    """The openings of a store's lists so far, from :meth:`of`.

    Attributes:
        attention: the probability that a place is seen.
        appeal: of the pages that were shown; None before the first opening.
        links: whether lists that are sent link to where openings are noted.
        degree: r, the probability that a place is given by chance.
        rows: of these pages, by id.
        seen: the pages that somebody will have seen.
        sections: their sections and sites.
    """

    attention: Attention
    appeal: Appeal | None
    degree: float
    rows: Mapping[int, int]
    seen: frozenset[int]
    sections: _Sections
    links: bool = False

    @classmethod
    async def of(cls, db: Reader, settings: PresentationSettings, now: float) -> OpenedLists | None:
        """Read what was shown and opened until the last full hour; None if it is not recorded.

        So the next page of a list continues the one before, which counts as shown by now.
        """
        if not settings.record:
            return None
        found = await cls.learnt(db, now // _HOUR_S * _HOUR_S)
        degree = await _degree(db, settings.promotion, found.attention, now)
        return replace(found, degree=degree, links=settings.links)

    @classmethod
    async def learnt(cls, db: Reader, before: float = inf) -> OpenedLists:
        """Read the showings and openings before a time, without promotion."""
        attention = await attention_of(db, before)
        known = await tables.openings(db, partial(views_at, attention), before)
        # Of many pages it takes a while.
        sections = await asyncio.to_thread(_Sections, known.url)
        appeal = None
        if known.opens.any():
            counts = await tables.counts(db)
            lists = 0 if counts is None else counts.lists
            appeal = await asyncio.to_thread(_learned, known, sections, lists)
        seen = known.page_id[(known.opens > 0) | (known.views >= 1)]
        rows = {page_id: row for row, page_id in enumerate(known.page_id.tolist())}
        return cls(
            attention, appeal, 0.0, rows=rows, seen=frozenset(seen.tolist()), sections=sections
        )

    @classmethod
    def nobody(cls) -> OpenedLists:
        """Return the audience that has not opened anything."""
        return cls(Attention(), None, 0.0, rows={}, seen=frozenset(), sections=_Sections(()))

    @property
    def arranges(self) -> bool:
        """Return whether a list may be shown in another order than by relevance."""
        return self.appeal is not None or self.degree > 0

    def appeals(self, page_ids: Sequence[int], urls: Sequence[str]) -> tuple[Floats, Floats]:
        """Return (n,) each: expected appeal and its index; all 1 before the first opening."""
        if self.appeal is None:
            return np.ones(len(urls)), np.ones(len(urls))
        row = np.array([self.rows.get(page_id, -1) for page_id in page_ids], np.intp)
        mean, index = self.appeal.prior_of(*self.sections.of(urls))
        was_shown = row >= 0
        return (
            np.where(was_shown, self.appeal.mean[row], mean),
            np.where(was_shown, self.appeal.index[row], index),
        )

    def recording(
        self, made_for: MadeFor, at: float, listed: Sequence[Impression]
    ) -> Callable[[Connection], bool]:
        """Return what notes a list that was shown, in a transaction of the store."""
        view = partial(views_at, self.attention)
        return partial(tables.record, made_for=made_for, at=at, shown=listed, views_at=view)

    def _ranked(self, found: Sequence[RankedPage]) -> list[RankedPage]:
        """Return pages by score within their tiers; keep their order if no appeal was learnt."""
        if self.appeal is None:
            return list(found)
        _, index = self.appeals([it.page_id for it in found], [it.url for it in found])
        worth = {each.page_id: each.worth * i for each, i in zip(found, index, strict=True)}
        return sorted(found, key=lambda each: (each.tier, -worth[each.page_id], each.page_id))

    def arranged(self, found: Sequence[RankedPage], count: int, seed: int) -> list[RankedPage]:
        """Return the first ``count`` pages of a list, in the order in which they are shown.

        Unseen pages of the first tier are promoted. The same ``seed`` promotes the same pages:
        a longer list begins with the shorter one.
        """
        ranked = self._ranked(found)
        if not self.degree:
            return ranked[:count]
        pool = [it.page_id for it in ranked if it.tier == 0 and it.page_id not in self.seen]
        order = [each.page_id for each in ranked]
        by_id = {each.page_id: each for each in found}
        placed = first_places(order, pool, count, k=_PROMOTED_FROM, r=self.degree, seed=seed)
        return [replace(by_id[page_id], promoted=promoted) for page_id, promoted in placed]


def _learned(known: Openings, sections: _Sections, lists: int) -> Appeal:
    section, site = sections.of(known.url)
    return Appeal.learned(known.views, known.opens, section, site, lists=lists)


async def attention_of(db: Reader, before: float = inf) -> Attention:
    """Return the attention that places get, as learnt in the store before a time."""
    promoted = await tables.promoted_places(db, before)
    return Attention.fitted(promoted.place, promoted.shown, promoted.opened)


def views_at(attention: Attention, place: int) -> float:
    """Return the probability that a place, from 1 on, is seen."""
    return float(attention.of(np.array([place]))[0])


async def _degree(db: Reader, promotion: str, attention: Attention, now: float) -> float:
    """Return r, as the settings say; "auto" needs what came and what was seen lately.

    In a store's first week that is not known, and all of its pages are still to be seen.
    """
    if promotion == "off":
        return 0.0
    if promotion != "auto":
        return float(promotion)
    lately = await tables.recent(db, now)
    if lately is None:
        return _MOST_PROMOTED
    births, lists = lately
    attended = attention.of(_PLACES)
    views = lists * float(attended.sum())
    critical = critical_degree(births, views, attended, k=_PROMOTED_FROM)
    return min(_ABOVE_CRITICAL * critical, _MOST_PROMOTED)


async def note_opening(path: Path, showing_id: int, at: float) -> None:
    """Note that a page of a list was opened, beside whoever writes the store."""
    await note(path, partial(tables.note_opening, showing_id=showing_id, at=at))


async def audience_of(db: Reader, settings: Settings, now: float) -> OpenedLists | None:
    """Return the audience of a store; None if lists are not recorded."""
    return await OpenedLists.of(db, settings.group(PresentationSettings), now)


def nobody(settings: Settings) -> OpenedLists | None:
    """Return an audience that has not opened anything; None if lists are not recorded."""
    said = settings.group(PresentationSettings)
    return replace(OpenedLists.nobody(), links=said.links) if said.record else None
