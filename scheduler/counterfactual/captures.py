"""What an archive shows of pages, as columns.

A capture is what one visit found: a content, that the page was gone, or a failure. Contents of a
page have equal numbers where they are equal, by the significance with which they were compared.
An archive knows a page at the moments of its captures; a complete history knows each content
``until`` it went. What happened between two captures is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from freshet.scheduler import arguments
from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.simulate.ragged import offsets_of, places
from freshet.scheduler.sources import Rows

#: In place of a content's number: the page was gone; the visit failed.
GONE: Final = -1
FAILED: Final = -2


@dataclass(frozen=True, slots=True)
class Captures:
    """The m captures of n pages, those of a page together and in the order of time.

    Make one with :meth:`of`, which checks.

    Attributes:
        offsets: (n + 1,), where the captures of each page begin, and where the last ones end.
        at: (m,), day.
        until: (m,), the day until which nothing changed since, as far as that is known; ``at``
            where it was one visit.
        content: (m,), number of the content, from 0; :data:`GONE` or :data:`FAILED`.
        found: (n,), ascending; the day on which the archive first shows that there is the page:
            by a link, or by its first capture.
        importance: (n,), μ, at least 0.
        host: (n,), code of the page's host.
        area: (n,), code of its area within the host.
    """

    offsets: Ints
    at: Floats
    until: Floats
    content: Ints
    found: Floats
    importance: Floats
    host: Rows
    area: Rows

    def __len__(self) -> int:
        return len(self.found)

    @classmethod
    def of(
        cls,
        page: ArrayLike,
        at: ArrayLike,
        content: ArrayLike,
        *,
        until: ArrayLike | None = None,
        found: ArrayLike | None = None,
        importance: ArrayLike,
        host: ArrayLike | None = None,
        area: ArrayLike | None = None,
    ) -> Captures:
        """Checked captures in any order; of several of a page at one moment the last one counts.

        Args:
            page: (m,), row of the page.
            at: (m,), as in the attributes; so are those that follow.
            content: (m,).
            until: (m,); left out: all are single visits.
            found: (n,), ascending; left out, or where it is later, the page's first capture.
            importance: (n,).
            host: (n,); left out: there is one.
            area: (n,); left out: there is one.

        Raises:
            ValueError: naming the argument, the row and what is accepted; also where a page
                is known until after its next capture.
        """
        day = arguments.finite("at", at)
        mu = arguments.non_negative("importance", importance)
        m, n = len(day), len(mu)
        row = arguments.codes("page", page, m, n)
        number = np.asarray(content, np.int64)
        _refuse(number < FAILED, "content", number, "a number from 0, GONE or FAILED")
        stood = day if until is None else arguments.finite("until", until, m)
        _refuse(stood < day, "until", stood, "its capture's day or later")
        order = np.lexsort((day, row))
        row, day, number, stood = row[order], day[order], number[order], stood[order]
        again = (row[:-1] == row[1:]) & (day[:-1] == day[1:])
        kept = np.append(~again, np.ones(min(m, 1), np.bool_))
        row, day, number, stood = row[kept], day[kept], number[kept], stood[kept]
        overlong = np.append((row[:-1] == row[1:]) & (stood[:-1] > day[1:]), False)[: len(row)]
        _refuse(overlong, "until", stood, "at most the day of the page's next capture")
        offsets = offsets_of(np.bincount(row, minlength=n))
        known = _found(found, offsets, day, n)
        none = np.zeros(n, np.intp)
        return cls(
            offsets, day, stood, number, known, mu,
            none if host is None else arguments.codes("host", host, n),
            none if area is None else arguments.codes("area", area, n),
        )  # fmt: skip

    @property
    def page(self) -> Rows:
        """(m,), row of the page."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def latest(self, rows: Rows, days: Floats) -> Rows:
        """(k,), the last capture of each page at or before each day; −1 where there is none."""
        begin = self.offsets[rows]
        place = places(self.at, begin, self.offsets[rows + 1], days) - 1
        return np.where(place >= begin, place, -1)

    def thinned(self, kept: Bools) -> Captures:
        """Those of the captures (m,), as visits: nothing is known between them.

        Pages keep their rows and the day on which they were found.
        """
        number = np.bincount(self.page[kept], minlength=len(self))
        return Captures(
            offsets_of(number), self.at[kept], self.at[kept], self.content[kept],
            self.found, self.importance, self.host, self.area,
        )  # fmt: skip


def _found(found: ArrayLike | None, offsets: Ints, at: Floats, n: int) -> Floats:
    first = np.full(n, np.inf)
    some = offsets[:-1] < offsets[1:]
    first[some] = at[offsets[:-1][some]]
    known = first if found is None else np.minimum(np.asarray(found, np.float64), first)
    _refuse(~np.isfinite(known), "found", known, "a day, or a page that has captures")
    fallen = np.append(False, np.diff(known) < 0)[:n]
    _refuse(fallen, "found", known, "the day of the page before, or later")
    return known


def _refuse(bad: Bools, name: str, column: Floats | Ints, accepted: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}: row {row} is {column[row]}; accepted is {accepted}")
