"""What the pages of each host have shown: which blocks of main text are new on a page.

A list of filtered products is made of blocks that other lists show as well, an empty month of a
calendar of what stands on every month; their texts differ all the same, be it in the heading.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.crawler.detection.sketch import Sketch

#: Blocks that are held, at 16 bytes each; a power of two.
_PLACES: Final = 1 << 18
_SCATTER: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(64 - 18)


class Shown:
    """The blocks that pages have shown, each with the page that showed it first.

    Memory is fixed: of two blocks that meet in a place the later one stays. What is forgotten looks
    new, never the other way round.
    """

    def __init__(self) -> None:
        self._marks = np.zeros(_PLACES, np.uint64)
        self._pages = np.zeros(_PLACES, np.int64)

    def take(self, host_id: int, page_id: int, text: Sketch) -> tuple[int, int | None]:
        """Take a page's text in.

        How many of its blocks no other page had shown, and the page that had shown most of the
        others (the oldest of several), None if none had.
        """
        marks = np.unique(text.block_digests) * _SCATTER + np.uint64(host_id)
        marks = np.unique(marks * _SCATTER | np.uint64(1))
        places = (marks >> _SHIFT).astype(np.intp)
        owners = np.where(self._marks[places] == marks, self._pages[places], page_id)
        others = owners[owners != page_id]
        self._marks[places] = marks
        self._pages[places] = owners
        return len(owners) - len(others), _most_frequent(others)


def _most_frequent(pages: NDArray[np.int64]) -> int | None:
    if not len(pages):
        return None
    found, counts = np.unique(pages, return_counts=True)
    return int(found[np.argmax(counts)])
