"""What looks of a daemon reveal: pages that were not known. Pure; days are Unix days.

A look at a page reveals another one where it shows a link to it that was not there at the look
before; what a first look reveals is revealed by what led there. Only the newest pages of each site
are remembered by their URLs (:mod:`freshet.scheduler.discovery.precedents`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Floats
from freshet.scheduler.discovery.precedents import Precedents, Revealing, Standing
from freshet.scheduler.recrawl.churning import Appearing, Churning
from freshet.scheduler.recrawl.watchlist import Watchlist
from freshet.scheduler.sources import Rows
from freshet.storage.records import Churn

_DAY_S: Final = 86_400.0


class Discovering:
    """Learns of all watched pages which of them reveal new ones, and whose links churn.

    Attributes:
        churning: which pages' links do.
    """

    def __init__(self) -> None:
        self._precedents = Precedents()
        self.churning = Churning()
        # By the hashes of URLs: a half of the memory, and two of a million pages share one once in
        # ten million runs.
        self._row_of: dict[int, int] = {}
        self._key_of: dict[int, int] = {}

    def watch(self, rows: Rows, site: Rows, urls: Sequence[str], found_at: Floats) -> None:
        """Pages are found, in the order of their rows."""
        for row, code, url, at in zip(
            rows.tolist(), site.tolist(), urls, found_at.tolist(), strict=True
        ):
            key = hash(url)
            self._row_of[key], self._key_of[row] = row, key
            displaced = self._precedents.admit(row, code, at)
            if displaced is not None:
                self._row_of.pop(self._key_of.pop(displaced), None)

    def looked(
        self,
        by: int,
        before: float | None,
        at: float,
        urls: Iterable[str],
        found_at: NDArray[np.generic],
    ) -> None:
        """A look at the page of row ``by`` shows links to these URLs.

        ``before`` is when it was looked at before, None for the first time; ``found_at`` (n,) when
        each page was found.
        """
        for url in urls:
            row = self._row_of.get(hash(url))
            if row is not None and row != by:
                self.shown(by, before, at, row, float(found_at[row]))

    def shown(self, by: int, before: float | None, at: float, row: int, found_at: float) -> None:
        """A look shows a link to the page of a row; ``before`` is when it was looked at before."""
        if before is None:
            if found_at == at:
                for each in self._precedents.revealers(by):
                    self._precedents.reveal(row, each)
        elif found_at > before:
            self._precedents.reveal(row, by)

    def churned(self, pages: Watchlist, seen: Sequence[tuple[int, float, Churn]]) -> list[int]:
        """Looks at pages (ids), on these days, at which something appeared; the rows."""
        known = [(row, at, it) for page, at, it in seen if (row := pages.row(page)) is not None]
        self.churning.learn(
            Appearing(
                np.array([row for row, _, _ in known], np.intp),
                np.array([at for _, at, _ in known], np.float64),
                np.array([pages["found_at"][row] for row, _, _ in known], np.float64),
                np.array([it.appeared for _, _, it in known], np.int64),
                np.array([it.dropped for _, _, it in known], np.int64),
                np.array([it.stayed for _, _, it in known], np.int64),
            )
        )
        return [row for row, _, _ in known]

    @property
    def newest(self) -> list[int]:
        """The rows of the pages that are remembered as new, in the order of their coming."""
        return sorted(self._key_of)

    def inherit(self, old: int, new: int) -> None:
        """The page of one row stands at another one now."""
        self._precedents.move(old, new)
        self.churning.inherit(old, new)

    def revealing(self, pages: Watchlist, now: float) -> Revealing:
        """What a look at each page is expected to reveal on this day."""
        names = ("host", "importance", "found_at", "since", "captured")
        columns: Any = [pages[name] for name in names]
        return self._precedents.value(Standing(*columns), now)
