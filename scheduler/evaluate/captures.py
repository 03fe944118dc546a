"""Captures of archived pages, as columns.

A capture is the result of one visit: a content, that the page was gone, or a failure. Equal
contents of a page have equal numbers, by the significance with which they were compared. An archive
knows a page at the moments of its captures; a complete history knows the end of each content
(``until``). The state between two captures is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freshet.scheduler import arrays
from freshet.scheduler.arrays import Bools, Floats, Ints
from freshet.scheduler.evaluate.changes import offsets_of, places
from freshet.scheduler.sources import Rows
from freshet.storage.entries import KINDS

#: Instead of a content's number: the page was gone; the visit failed.
GONE: Final = -1
FAILED: Final = -2


@dataclass(frozen=True, slots=True)
class Captures:
    """The m captures of n pages, grouped by page, in the order of time.

    Make one with :meth:`of`, which checks its arguments.

    Attributes:
        offsets: (n + 1,), the first capture of each page, and the end of the last.
        at: (m,), day.
        until: (m,), the day until which the content is known not to have changed; ``at`` for a
            single visit.
        content: (m,), number of the content, from 0; :data:`GONE` or :data:`FAILED`.
        found: (n,), ascending; the day on which the archive first shows that the page exists: by a
            link, or by its first capture.
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
        """Return checked captures, given in any order; the last of several at one moment counts.

        Args:
            page: (m,), row of the page.
            at: (m,), as in the attributes; so are the following arguments.
            content: (m,).
            until: (m,); by default all are single visits.
            found: (n,), ascending; by default, or where it is later, the page's first capture.
            importance: (n,).
            host: (n,); by default one host.
            area: (n,); by default one area.

        Raises:
            ValueError: naming the argument, the row and the accepted values; also if ``until`` is
                after the page's next capture.
        """
        day = arrays.finite("at", at)
        mu = arrays.non_negative("importance", importance)
        m, n = len(day), len(mu)
        row = arrays.codes("page", page, m, n)
        number = np.asarray(content, np.int64)
        refuse(number < FAILED, "content", number, "a number from 0, GONE or FAILED")
        valid_until = day if until is None else arrays.finite("until", until, m)
        refuse(valid_until < day, "until", valid_until, "its capture's day or later")
        order = np.lexsort((day, row))
        row, day, number, valid_until = row[order], day[order], number[order], valid_until[order]
        again = (row[:-1] == row[1:]) & (day[:-1] == day[1:])
        kept = np.append(~again, np.ones(min(m, 1), np.bool_))
        row, day, number, valid_until = row[kept], day[kept], number[kept], valid_until[kept]
        overlong = np.append((row[:-1] == row[1:]) & (valid_until[:-1] > day[1:]), False)[
            : len(row)
        ]
        refuse(overlong, "until", valid_until, "at most the day of the page's next capture")
        offsets = offsets_of(np.bincount(row, minlength=n))
        known = _found(found, offsets, day, n)
        none = np.zeros(n, np.intp)
        return cls(
            offsets=offsets,
            at=day,
            until=valid_until,
            content=number,
            found=known,
            importance=mu,
            host=none if host is None else arrays.codes("host", host, n),
            area=none if area is None else arrays.codes("area", area, n),
        )

    @property
    def page(self) -> Rows:
        """Return (m,), row of the page."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def latest(self, rows: Rows, days: Floats) -> Rows:
        """Return (k,), the last capture of each page up to each day; −1 without one."""
        begin = self.offsets[rows]
        place = places(self.at, begin, self.offsets[rows + 1], days) - 1
        return np.where(place >= begin, place, -1)


def _found(found: ArrayLike | None, offsets: Ints, at: Floats, n: int) -> Floats:
    first = np.full(n, np.inf)
    some = offsets[:-1] < offsets[1:]
    first[some] = at[offsets[:-1][some]]
    known = first if found is None else np.minimum(np.asarray(found, np.float64), first)
    refuse(~np.isfinite(known), "found", known, "a day, or a page that has captures")
    fallen = np.append(False, np.diff(known) < 0)[:n]
    refuse(fallen, "found", known, "the day of the page before, or later")
    return known


def refuse(bad: Bools, name: str, column: Floats | Ints, accepted: str) -> None:
    """Raise ValueError at the first bad row, if there is one."""
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{name}: row {row} is {column[row]}; accepted is {accepted}")


# -- contents: the content of each visit --
# A visit that found a page new or changed has another content than the visit before, a visit that
# found it unchanged the same one. A page that changed back to a former content, by its digest, has
# that content again. A page that redirected counts as gone.

_GONE: Final = [KINDS.index("gone"), KINDS.index("redirected")]
_UNCHANGED: Final = KINDS.index("unchanged")
_ANOTHER: Final = [KINDS.index("new"), KINDS.index("changed")]


def contents_of(page: Rows, kind: NDArray[np.int8], digest: NDArray[np.uint64]) -> Ints:
    """Return (m,), content numbers as in :attr:`Captures.content`.

    Args:
        page: (m,), row of the page, ascending.
        kind: (m,), position in :data:`storage.records.KINDS`, in the order of visits within a page.
        digest: (m,), of the content that a visit found for the first time; 0: not known.
    """
    another = np.isin(kind, _ANOTHER)
    content = another | (kind == _UNCHANGED)
    number = np.where(np.isin(kind, _GONE), GONE, FAILED).astype(np.int64)
    page_of, begins = page[content], another[content]
    # The first content of a page is a new one, even if it was compared with a former copy.
    begins = begins | (np.diff(page_of, prepend=-1) != 0)
    codes = _codes(page_of[begins], digest[content][begins])
    number[content] = codes[np.cumsum(begins) - 1]
    return number


def _codes(page: Rows, digest: NDArray[np.uint64]) -> Ints:
    """Return (k,), equal for equal contents of a page, but never for two in a row."""
    if not len(page):
        return np.empty(0, np.int64)
    _, codes = np.unique(np.rec.fromarrays([page, digest]), return_inverse=True)
    follows: Bools = np.append(False, np.diff(page) == 0)
    alone = (digest == 0) | (follows & (np.diff(codes, prepend=-1) == 0))
    return np.asarray(np.where(alone, len(page) + np.arange(len(page)), codes), np.int64)


# -- timeline from capture to capture, without failed visits --
# Each capture is preceded by a *gap* from the end (``until``) of the capture before it. A gap
# *contains a change* if the contents before and after it differ: the change happened somewhere in
# the gap, once as far as is known. Gaps between equal contents are *open*: it is not known whether
# the page had another content in between. Time counts while there is content at both ends: not
# while a page was gone, not before its first capture, not after its last.


class Timeline(NamedTuple):
    """The k captures of n pages that did not fail; see the comment above.

    Attributes:
        offsets: (n + 1,), the first capture of each page, and the end of the last.
        since: (k,), the day on which the gap before the capture begins; ``at`` without a gap.
        at: (k,), the day of the capture, and ``until`` (k,) its end.
        appears: (k,), whether it is the first content of its page.
        changed: (k,), whether the gap contains a change.
        counts: (k,), whether the time of the capture counts, because it is content; ``gap_counts``
            (k,) is the same for its gap.
    """

    offsets: Ints
    since: Floats
    at: Floats
    until: Floats
    appears: Bools
    changed: Bools
    counts: Bools
    gap_counts: Bools

    @property
    def pages(self) -> int:
        """Return n."""
        return len(self.offsets) - 1

    @property
    def first_content(self) -> Floats:
        """Return (n,), the day of each page's first content; inf without one."""
        day = np.full(self.pages, np.inf)
        page = np.repeat(np.arange(self.pages), np.diff(self.offsets))
        day[page[self.appears]] = self.at[self.appears]
        return day

    @classmethod
    def of(cls, captures: Captures) -> Timeline:
        """Return the timeline of an archive."""
        read = captures.content != FAILED
        page, at = captures.page[read], captures.at[read]
        until, content = captures.until[read], captures.content[read]
        offsets = offsets_of(np.bincount(page, minlength=len(captures)))
        follows = np.zeros(len(page), np.bool_)
        follows[1:] = page[1:] == page[:-1]
        since = at.copy()
        since[1:][follows[1:]] = until[:-1][follows[1:]]
        counts = content >= 0
        before = content_before(page, content)
        gap_counts = counts & follows
        gap_counts[1:] &= counts[:-1]
        return cls(
            offsets, since, at, until,
            appears=counts & (before < 0),
            changed=counts & (before >= 0) & (before != content),
            counts=counts,
            gap_counts=gap_counts,
        )  # fmt: skip


def content_before(page: Ints, content: Ints) -> Ints:
    """Return (k,), the last content of the page before each capture; −1 without one."""
    place = np.where(content >= 0, np.arange(len(page)), -1)
    last = np.append(-1, np.maximum.accumulate(place)[:-1]) if len(page) else place
    found = last >= 0
    found[found] = page[last[found]] == page[found]
    return np.where(found, content[last], -1) if len(page) else last
