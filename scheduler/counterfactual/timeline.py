"""What is known of pages from capture to capture, without the visits that failed.

Each capture is preceded by a *gap*, from the day until which the capture before it stood. A gap
*holds a change* where the contents before and after it differ: it came somewhere in the gap, once
as far as anybody knows. Gaps between equal contents are *open*: whether the page was another one
meanwhile is not known. Time counts while there is content at both ends: not while a page was gone,
not before its first capture, not after its last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from freshet.scheduler.arguments import Bools, Floats, Ints
from freshet.scheduler.counterfactual.captures import FAILED, Captures
from freshet.scheduler.simulate.ragged import offsets_of


@dataclass(frozen=True, slots=True)
class Timeline:
    """The k captures of n pages that did not fail; see the module's text.

    Attributes:
        offsets: (n + 1,), where those of each page begin, and where the last ones end.
        since: (k,), the day on which the gap before the capture begins; ``at`` where there is none.
        at: (k,), the day of the capture, and ``until`` (k,) how long it stood.
        appears: (k,), whether it is the first content of its page.
        changed: (k,), whether the gap holds a change.
        counts: (k,), whether its time counts: it is content. The gap's, if ``gap_counts`` (k,).
    """

    offsets: Ints
    since: Floats
    at: Floats
    until: Floats
    appears: Bools
    changed: Bools
    counts: Bools
    gap_counts: Bools

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def first_content(self) -> Floats:
        """(n,), the day of each page's first content; inf where it has none."""
        day = np.full(len(self), np.inf)
        page = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        day[page[self.appears]] = self.at[self.appears]
        return day

    @classmethod
    def of(cls, captures: Captures) -> Timeline:
        """The timeline of an archive."""
        told = captures.content != FAILED
        page, at = captures.page[told], captures.at[told]
        until, content = captures.until[told], captures.content[told]
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
    """(k,), the last content of the page before each capture; −1: there was none."""
    place = np.where(content >= 0, np.arange(len(page)), -1)
    last = np.append(-1, np.maximum.accumulate(place)[:-1]) if len(page) else place
    found = last >= 0
    found[found] = page[last[found]] == page[found]
    return np.where(found, content[last], -1) if len(page) else last
