"""Which content each visit of a page showed, by what was observed of it.

A visit that found a page new or changed shows another content than the one before, one that found
it unchanged the same. Where it changed back to what it was before, by the digest of that, it is
that content again. One that led elsewhere found it gone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.scheduler.arguments import Bools, Ints
from freshet.scheduler.counterfactual.captures import FAILED, GONE
from freshet.scheduler.sources import Rows
from freshet.storage.words import KINDS, Kind

_GONE: Final = [KINDS.index(Kind.GONE), KINDS.index(Kind.REDIRECTED)]
_UNCHANGED: Final = KINDS.index(Kind.UNCHANGED)
_ANOTHER: Final = [KINDS.index(Kind.NEW), KINDS.index(Kind.CHANGED)]


def contents_of(page: Rows, kind: NDArray[np.int8], digest: NDArray[np.uint64]) -> Ints:
    """(m,), the numbers of :attr:`~freshet.scheduler.counterfactual.captures.Captures.content`.

    Args:
        page: (m,), row of the page, ascending.
        kind: (m,), place in :data:`storage.records.KINDS`, in the order of visits within a page.
        digest: (m,), of the content that a visit showed for the first time; 0: not known.
    """
    another = np.isin(kind, _ANOTHER)
    content = another | (kind == _UNCHANGED)
    number = np.where(np.isin(kind, _GONE), GONE, FAILED).astype(np.int64)
    page_of, begins = page[content], another[content]
    # The first content of a page is another one, whatever it was compared with.
    begins = begins | (np.diff(page_of, prepend=-1) != 0)
    codes = _codes(page_of[begins], digest[content][begins])
    number[content] = codes[np.cumsum(begins) - 1]
    return number


def _codes(page: Rows, digest: NDArray[np.uint64]) -> Ints:
    """(k,), equal for equal contents of a page, but never for two that follow one another."""
    if not len(page):
        return np.empty(0, np.int64)
    keys = np.rec.fromarrays([page, digest])
    _, codes = np.unique(keys, return_inverse=True)
    follows: Bools = np.append(False, np.diff(page) == 0)
    alone = (digest == 0) | (follows & (np.diff(codes, prepend=-1) == 0))
    fresh = np.where(alone, len(page) + np.arange(len(page)), codes)
    return np.asarray(fresh, np.int64)
